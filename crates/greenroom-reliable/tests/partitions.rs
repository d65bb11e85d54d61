//! Partitions over a real journal, with owners that die at any point, and a network that loses, repeats and overtakes:
//! money is moved exactly once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Action, Answer, Call, Config, Delivery, Destination, Effects, Envelope, Event, Outcome, Outgoing, Partition,
    PartitionId, Sealed, TurnId, Wire,
};
use greenroom_protocols::reminders::Wall;
use greenroom_protocols::time::Timestamp;
use greenroom_reliable::fields::{Field, Register};
use greenroom_reliable::ledger::{FieldChanges, Ledger, Name, Outcome as Written, OwnerProcess, Place, TurnChanges};
use greenroom_store::Journal;
use greenroom_store::memory::MemoryStore;
use greenroom_store_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
struct Account(String);

impl Name for Account {
    fn kind(&self) -> &str {
        "Account"
    }

    fn key(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Order {
    Transfer { to: Account, amount: u64 },
    Deposit { amount: u64 },
    Moved { left: u64 },
}

/// An account's fields.
struct Fields {
    balance: Register<u64>,
    transfers: Register<u64>,
}

/// A node that owns one partition.
struct Owner {
    machine: Partition<Account, Order>,
    ledger: Ledger,
    accounts: BTreeMap<Account, Fields>,
    changes: Vec<(TurnId, TurnChanges<Account>)>,
}

struct World {
    journal: Arc<dyn Journal>,
    now: u64,
    dice: u64,
    owners: BTreeMap<u32, Owner>,
    network: Vec<(PartitionId, Wire<Account, Order>)>,
    answers: BTreeMap<String, Answer<Order>>,
    crashes: u64,
}

fn partition_of(account: &Account) -> u32 {
    account.0.bytes().map(u32::from).sum::<u32>() % PARTITIONS
}

impl World {
    fn new(journal: Arc<dyn Journal>, seed: u64) -> Self {
        let (owners, network, answers) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { journal, now: 0, dice: seed, owners, network, answers, crashes: 0 }
    }

    fn random(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_nanos(self.now * 1_000_000)
    }

    /// A node takes a partition over; whoever had it never hears of it.
    async fn take_over(&mut self, partition: u32) {
        let place = Place::new("bank", PartitionId(partition));
        let taken = Ledger::take(self.journal.clone(), place, SOMEBODY, Wall(1), BY).await;
        let (ledger, recovered) = taken.expect("the journal works");
        let mut actions = Vec::new();
        let now = (self.time(), Wall(0));
        let config = Config { bundle_len_max: 4, ..Config::default() };
        let machine = Partition::recover(config, ledger.owner(), recovered, now, &mut actions);
        let owner = Owner { machine, ledger, accounts: BTreeMap::new(), changes: Vec::new() };
        self.owners.insert(partition, owner);
        self.carry_out(partition, actions).await;
    }

    async fn handle(&mut self, partition: u32, event: Event<Account, Order>) {
        let now = self.time();
        let Some(owner) = self.owners.get_mut(&partition) else { return };
        let mut actions = Vec::new();
        owner.machine.handle(now, event, &mut actions);
        self.carry_out(partition, actions).await;
    }

    async fn carry_out(&mut self, partition: u32, actions: Vec<Action<Account, Order>>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            // The process may die between any two things that it does.
            if self.crashes > 0 && self.random(60) == 0 {
                self.crashes -= 1;
                self.owners.remove(&partition);
                return;
            }
            let Some(owner) = self.owners.get_mut(&partition) else { return };
            let next = match action {
                Action::Send { to, wire } => {
                    self.network.push((to, wire));
                    continue;
                }
                Action::Load(actor) => {
                    let (presence, queue) = owner.ledger.load(&actor).await.expect("the journal works");
                    Event::Loaded { actor, presence, queue }
                }
                Action::Reset(actor) => {
                    owner.accounts.remove(&actor);
                    continue;
                }
                Action::Admit { turn, .. } => Event::Admitted(turn),
                Action::Run { turn, envelope } => Event::Ended { turn, outcome: owner.turn(turn, envelope).await },
                Action::Commit(commit) => {
                    let written = owner.ledger.commit(&commit, &owner.changes).await;
                    owner.changes.retain(|(turn, _)| !commit.turns.contains(turn));
                    match written {
                        Written::Committed => Event::Committed(commit.id),
                        Written::Deposed => Event::Deposed,
                        other => panic!("{other:?}"),
                    }
                }
                Action::Page { lane, from, limit } => {
                    let entries = owner.ledger.page(lane, from, limit).await.expect("the journal works");
                    Event::Paged { lane, entries }
                }
                Action::Trim { lane, through } => {
                    owner.ledger.trim(lane, through).await.expect("the journal works");
                    continue;
                }
                Action::Recall { key, numbers } => {
                    let found = Ok(owner.ledger.recall(&key, &numbers).await.expect("the journal works"));
                    Event::Recalled { key, numbers, found }
                }
                Action::Answer { call, answer } => {
                    let known = self.answers.insert(call.key.clone(), answer.clone());
                    assert!(known.is_none_or(|known| known == answer), "{} is answered in two ways", call.key);
                    continue;
                }
                Action::Stop(_) => {
                    self.owners.remove(&partition);
                    return;
                }
                other @ (Action::Output { .. }
                | Action::DeadLetter { .. }
                | Action::Prune { .. }
                | Action::Refuse(_)) => {
                    panic!("{other:?}")
                }
            };
            let now = self.time();
            let Some(owner) = self.owners.get_mut(&partition) else { return };
            let mut more = Vec::new();
            owner.machine.handle(now, next, &mut more);
            actions.extend(more);
        }
    }

    /// A caller asks, perhaps again.
    async fn call(&mut self, number: u64, from: &Account, to: &Account, amount: u64) {
        let call = Call { key: format!("transfer {number}"), request: amount, as_written: None, recorded: true };
        let body = Order::Transfer { to: to.clone(), amount };
        let envelope =
            Envelope { from: None, to: from.clone(), birth: None, creates: false, call: Some(call), body }.into();
        self.handle(partition_of(from), Event::Called(envelope)).await;
    }

    /// Something happens; `rough` if things go wrong.
    async fn step(&mut self, rough: bool) {
        self.now += 1 + self.random(20);
        for partition in 0..PARTITIONS {
            if !self.owners.contains_key(&partition) || (rough && self.random(200) == 0) {
                self.take_over(partition).await;
            }
        }
        if !self.network.is_empty() {
            let index = if rough { self.random(self.network.len() as u64) as usize } else { 0 };
            let (to, wire) = self.network.remove(index);
            if rough && self.random(8) == 0 {
                self.network.push((to, wire.clone()));
            }
            if !rough || self.random(8) > 0 {
                self.handle(to.0, Event::Arrived(wire)).await;
            }
        }
        for partition in 0..PARTITIONS {
            let due = self.owners.get(&partition).and_then(|owner| owner.machine.deadline());
            if due.is_some_and(|due| due <= self.time()) {
                self.handle(partition, Event::Tick).await;
            }
        }
    }
}

impl Owner {
    async fn turn(&mut self, turn: TurnId, envelope: Sealed<Account, Order>) -> Outcome<Account, Order> {
        let account = envelope.to.clone();
        if !self.accounts.contains_key(&account) {
            let mut fields = Fields { balance: Register::new(START), transfers: Register::new(0) };
            for (name, entries) in self.ledger.fields(&account).await.expect("the journal works") {
                let field = if name == "balance" { &mut fields.balance } else { &mut fields.transfers };
                field.load(&entries).expect("it was written by this program");
            }
            self.accounts.insert(account.clone(), fields);
        }
        let fields = self.accounts.get_mut(&account).expect("it was just made");
        let mut effects = Effects::default();
        match envelope.body.clone() {
            Order::Transfer { to, amount } => {
                *fields.balance.get_mut() -= amount;
                *fields.transfers.get_mut() += 1;
                effects.answer = Some(Order::Moved { left: *fields.balance.get() });
                let to_partition = Destination::Partition(PartitionId(partition_of(&to)));
                let body = Order::Deposit { amount };
                let envelope =
                    Envelope { from: Some(account.clone()), to, birth: None, creates: false, call: None, body }.into();
                effects.sends.push(Outgoing { to: to_partition, delivery: Delivery::ExactlyOnce, envelope });
            }
            Order::Deposit { amount } => *fields.balance.get_mut() += amount,
            Order::Moved { .. } => panic!("nobody sends that"),
        }
        let changed = [("balance", &mut fields.balance), ("transfers", &mut fields.transfers)].map(|(name, field)| {
            FieldChanges { field: name.to_owned().into(), changes: field.changes().expect("numbers can be written") }
        });
        self.changes.push((turn, TurnChanges::Fields(account, changed.into())));
        Outcome::Done(effects.into())
    }
}

async fn money_is_moved_once(journal: Arc<dyn Journal>, seed: u64) {
    let mut world = World::new(journal.clone(), seed);
    world.crashes = 20;
    let accounts: Vec<Account> = (0..10).map(|number| Account(format!("account {number}"))).collect();
    let mut open: BTreeSet<u64> = (0..TRANSFERS).collect();
    let orders: Vec<(Account, Account, u64)> = (0..TRANSFERS)
        .map(|_| {
            let (from, to) = (world.random(10) as usize, world.random(10) as usize);
            (accounts[from].clone(), accounts[to].clone(), 1 + world.random(9))
        })
        .collect();
    let mut steps = 0;
    while !open.is_empty() {
        steps += 1;
        assert!(steps < 40_000, "seed {seed}: {} calls are never answered", open.len());
        let rough = steps < 10_000;
        let nth = world.random(open.len() as u64) as usize;
        let number = *open.iter().nth(nth).expect("it is below the length");
        let (from, to, amount) = orders[number as usize].clone();
        world.call(number, &from, &to, amount).await;
        world.step(rough).await;
        let answers = &world.answers;
        open.retain(|number| !matches!(answers.get(&format!("transfer {number}")), Some(Answer::Done(_))));
    }
    world.crashes = 0;
    // What is under way arrives.
    for _ in 0..3_000 {
        world.step(false).await;
    }
    let (mut money, mut transfers) = (0, 0);
    for account in &accounts {
        let place = Place::new("bank", PartitionId(partition_of(account)));
        let taken = Ledger::take::<Account, Order>(journal.clone(), place, SOMEBODY, Wall(1), BY).await;
        let fields = taken.expect("the journal works").0.fields(account).await.expect("the journal works");
        let (mut balance, mut count) = (Register::new(START), Register::new(0_u64));
        for (name, entries) in fields {
            let field = if name == "balance" { &mut balance } else { &mut count };
            field.load(&entries).expect("it was written by this program");
        }
        money += balance.get();
        transfers += count.get();
    }
    assert_eq!((money, transfers), (START * 10, TRANSFERS), "seed {seed}: money, and transfers made");
}

#[tokio::test]
async fn whatever_crashes_money_is_moved_exactly_once() {
    for seed in 0..60 {
        money_is_moved_once(Arc::new(MemoryStore::new()), seed).await;
    }
}

#[tokio::test]
async fn whatever_crashes_money_is_moved_exactly_once_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for seed in 0..3 {
        let journal = SqliteStore::open(folder.path().join(format!("{seed}.db"))).expect("the file is new");
        money_is_moved_once(Arc::new(journal), seed).await;
    }
}

const BY: Duration = Duration::from_secs(10);
const SOMEBODY: OwnerProcess<'static> = OwnerProcess { name: "somebody", number: 1 };
const PARTITIONS: u32 = 3;
const START: u64 = 1_000_000;
const TRANSFERS: u64 = 120;
