//! No deposit that was answered is lost and none is counted twice, whatever crashes, pauses, parts and fails in the store.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom::CallError;
use greenroom::prelude::*;
use greenroom_sim::{Faults, Nemesis, Sim, SimStore, StoreFaults, seeds};
use greenroom_store::{Page, Result, Store, Version, Versioned};
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, sim};

const NODES: &[&str] = &["a", "b", "c", STRANGER];

/// A cluster of its own that keeps the same accounts in the same store: the others' leases do not bind it, and their fences do
/// not hold it, so that only the conditions of its saves keep it from overwriting theirs.
const STRANGER: &str = "d";

/// An account that keeps every deposit, in order, each saved before it is answered.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Account {
    deposits: Vec<u64>,
}

#[actor(persistent, idle = "3s")]
impl Account {
    /// Gives how many deposits there are then.
    pub async fn deposit(&mut self, cx: &Cx, id: u64) -> Result<u64, StateError> {
        self.deposits.push(id);
        // Time in which its node may be stopped, and deposed.
        tokio::time::sleep(Duration::from_millis(id % 20)).await;
        cx.save(self).await?;
        Ok(self.deposits.len() as u64)
    }

    pub async fn deposits(&self) -> Vec<u64> {
        self.deposits.clone()
    }

    pub async fn reload(&mut self, cx: &Cx) -> Result<Vec<u64>, StateError> {
        cx.reload(self).await?;
        Ok(self.deposits.clone())
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// What a caller was told of a deposit.
#[derive(Debug)]
pub(crate) enum Told {
    /// It is the account's so-manieth.
    Saved(u64),
    /// It was made; which it is, is not known.
    Made,
    /// It was not made and never will be, for this reason.
    Not(String),
    /// Nobody knows.
    Doubt,
}

impl Told {
    fn of(answer: &Result<u64, CallError<StateError>>) -> Self {
        match answer {
            Ok(number) => Self::Saved(*number),
            Err(CallError::Actor(StateError::Unknown { .. }) | CallError::Unknown(_)) => Self::Doubt,
            Err(error) => Self::Not(error.to_string()),
        }
    }
}

/// What all callers were told, and saw.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Whether callers are to stop.
    pub(crate) closed: bool,
    next_id: u64,
    /// Deposits by account and id.
    pub(crate) told: BTreeMap<(usize, u64), Told>,
    /// Reads by account.
    pub(crate) seen: Vec<(usize, Vec<u64>)>,
}

impl Ledger {
    /// Begins a deposit: in doubt until more is known, as its caller may be gone before it hears.
    pub(crate) fn begin(&mut self, account: usize) -> u64 {
        self.next_id += 1;
        self.told.insert((account, self.next_id), Told::Doubt);
        self.next_id
    }

    pub(crate) fn saved(&self) -> usize {
        self.told.values().filter(|told| matches!(told, Told::Saved(_))).count()
    }

    /// Compares what was told and seen of an account with what is there in the end.
    pub(crate) fn check(&self, account: usize, deposits: &[u64]) {
        let mut places = BTreeMap::new();
        for (place, id) in deposits.iter().enumerate() {
            let before = places.insert(*id, place);
            assert_eq!(before, None, "deposit {id} of account {account} is counted twice: {deposits:?}");
        }
        for ((_, id), told) in self.told.iter().filter(|((of, _), _)| *of == account) {
            match (told, places.get(id)) {
                (Told::Saved(number), Some(place)) => {
                    assert_eq!(*number, *place as u64 + 1, "deposit {id} of account {account} has moved: {deposits:?}");
                }
                (Told::Saved(_) | Told::Made, None) => {
                    panic!("deposit {id} of account {account} is lost: {deposits:?}")
                }
                (Told::Not(why), Some(_)) => {
                    panic!("deposit {id} of account {account} was made, but its caller was told that it was not: {why}")
                }
                (Told::Not(_), None) | (Told::Made, Some(_)) | (Told::Doubt, _) => {}
            }
        }
        for (_, seen) in self.seen.iter().filter(|(of, _)| *of == account) {
            assert!(deposits.starts_with(seen), "of account {account} was seen {seen:?}, but there is {deposits:?}");
        }
    }
}

/// Three nodes and the stranger, a few accounts that everybody uses all the time, and a nemesis for 40 virtual seconds.
fn scenario(seed: u64) {
    sim(seed, faults()).deadline(Duration::from_secs(600)).run(|sim| async move {
        let cluster = cluster(&sim);
        // The store is bad enough to stop nodes that have just begun.
        cluster.supervise();
        for name in NODES {
            cluster.start(name).await;
        }
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        for name in NODES {
            for _ in 0..CALLERS {
                call_from(&sim, &cluster, name, &ledger);
            }
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, NODES)
            .restart(move |name| restarting.restart(name))
            .store(&cluster.store)
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4));
        let acts = nemesis.run(Duration::from_secs(40)).await;
        assert!(!acts.is_empty(), "every seed has its fault");
        // Calls go on until they are answered again; then what is under way ends, and what comes late comes.
        tokio::time::sleep(Duration::from_secs(20)).await;
        ledger.borrow_mut().closed = true;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(ledger.borrow().saved() > 0, "some deposits were answered");
        for account in 0..ACCOUNTS {
            let deposits = in_the_end(&sim, &cluster, account).await;
            ledger.borrow().check(account, &deposits);
        }
    });
}

/// A cluster whose nodes host accounts, and keep them beside their table.
fn cluster(sim: &Sim) -> Cluster {
    let states = Rc::new(OnceCell::<SimStore>::new());
    let of = states.clone();
    let cluster = Cluster::new(sim, move |builder, name| {
        let states = of.get().expect("no node starts before the cluster is there").seen_by(name);
        let builder = if name == STRANGER { builder.configure(|config| config.cluster = name.into()) } else { builder };
        // The stranger has the same accounts.
        builder.register::<Account>().namespace("bank").state_store("", Arc::new(Hasty(states)))
    });
    assert!(states.set(cluster.store.clone()).is_ok(), "nobody else sets it");
    cluster
}

/// Deposits, looks and sends away from `name`, for as long as the scenario lasts.
fn call_from(sim: &Sim, cluster: &Cluster, name: &'static str, ledger: &Rc<RefCell<Ledger>>) {
    let (cluster, mut random, ledger) = (cluster.clone(), sim.random(), ledger.clone());
    sim.spawn(async move {
        while !ledger.borrow().closed {
            let pause = random.within(&(Duration::from_millis(10)..Duration::from_millis(200)));
            tokio::time::sleep(pause).await;
            let account = random.index(ACCOUNTS);
            let Some(node) = cluster.node(name) else { continue };
            let actor = AccountRef::of(&node, account);
            match random.index(12) {
                0 => drop(actor.leave().by(PATIENCE).await),
                1 => {
                    if let Ok(seen) = actor.deposits().by(PATIENCE).await {
                        ledger.borrow_mut().seen.push((account, seen));
                    }
                }
                _ => {
                    let id = ledger.borrow_mut().begin(account);
                    let told = Told::of(&actor.deposit(id).by(PATIENCE).await);
                    ledger.borrow_mut().told.insert((account, id), told);
                }
            }
        }
    });
}

/// What the store holds of an account when all is well again.
async fn in_the_end(sim: &Sim, cluster: &Cluster, account: usize) -> Vec<u64> {
    let until = sim.now() + Duration::from_secs(60);
    loop {
        if let Some(node) = NODES.iter().find_map(|name| cluster.node(name))
            && let Ok(deposits) = AccountRef::of(&node, account).reload().by(PATIENCE).await
        {
            return deposits;
        }
        assert!(sim.now() < until, "account {account} is silent for too long");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A store whose calls are given up long before their callers' time is over: there is time to look what became of them
/// before they land.
#[derive(Debug)]
struct Hasty(Arc<dyn Store>);

impl Hasty {
    const HASTE: Duration = Duration::from_millis(300);
}

impl Store for Hasty {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.0.read(key, timeout.min(Self::HASTE))
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.0.create(key, value, timeout.min(Self::HASTE))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.0.replace(key, value, expected, timeout.min(Self::HASTE))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.0.delete(key, expected, timeout.min(Self::HASTE))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.0.scan(prefix, after, limit, timeout.min(Self::HASTE))
    }
}

/// A bad day, and a store that is worse: answers get lost, and writes land after everybody has given them up.
fn faults() -> Faults {
    let rough = Faults::rough();
    Faults { store: StoreFaults { not_applied: 0.03, unknown: 0.06, ..rough.store.clone() }, ..rough }
}

#[test]
fn no_answered_deposit_is_lost_and_none_is_counted_twice() {
    seeds("no_answered_deposit_is_lost_and_none_is_counted_twice", 40, scenario);
}

const ACCOUNTS: usize = 3;
/// At once, on each node.
const CALLERS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(2);
