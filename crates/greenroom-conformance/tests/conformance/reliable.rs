//! Each message of a reliable actor has its effects once, whatever crashes, pauses, parts and fails in the journal.

mod alarms;
mod keys;
mod poison;
mod pool_server;
#[expect(unreachable_pub, reason = "an example shows what a crate of one's own would say")]
#[path = "../../../greenroom/examples/pool_server/actors.rs"]
mod pools;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::CallError;
use greenroom::prelude::*;
use greenroom_protocols::delivery::Checks;
use greenroom_sim::{Faults, Nemesis, Sim, SimStore, StoreFaults, expect_violation, seeds};
use greenroom_store::memory::MemoryStore;

use crate::cluster::{Cluster, sim};

const NODES: &[&str] = &["a", "b", "c"];

/// An account that counts how often it has made each transfer, and how often it got each.
#[derive(Default, Actor)]
struct Account {
    balance: Register<i64>,
    made: Map<u64, u64>,
    got: Map<u64, u64>,
}

#[actor(reliable, idle = "3s")]
impl Account {
    pub async fn transfer(&mut self, cx: &Cx, id: u64, to: u64, amount: i64) -> i64 {
        *self.balance.get_mut() -= amount;
        let times = self.made.get(&id).copied().unwrap_or(0) + 1;
        self.made.insert(id, times);
        // Time in which the turn may be cut.
        tokio::time::sleep(Duration::from_millis(id % 7)).await;
        AccountRef::of(cx, to).deposit(id, amount).send();
        *self.balance.get()
    }

    pub async fn deposit(&mut self, id: u64, amount: i64) {
        *self.balance.get_mut() += amount;
        let times = self.got.get(&id).copied().unwrap_or(0) + 1;
        self.got.insert(id, times);
    }

    pub async fn look(&self) -> (i64, Vec<(u64, u64)>, Vec<(u64, u64)>) {
        let list = |map: &Map<u64, u64>| map.iter().map(|(id, times)| (*id, *times)).collect();
        (*self.balance.get(), list(&self.made), list(&self.got))
    }
}

/// A counter of words that reports to the one highest count (RSM §2.1).
#[derive(Default, Actor)]
struct Words {
    frequency: Map<String, u64>,
    lines: u64,
}

#[actor(reliable, idle = "3s")]
impl Words {
    pub async fn line(&mut self, cx: &Cx, text: String) -> u64 {
        self.lines += 1;
        for word in text.split(' ') {
            let count = self.frequency.get(word).copied().unwrap_or(0) + 1;
            self.frequency.insert(word.to_owned(), count);
            HighestRef::of(cx, word).report(count).send();
        }
        self.lines
    }

    pub async fn counts(&self) -> (u64, BTreeMap<String, u64>) {
        (self.lines, self.frequency.iter().map(|(word, count)| (word.clone(), *count)).collect())
    }
}

/// What it is told comes in order, so each report is the next number.
#[derive(Default, Actor)]
struct Highest {
    reports: Vec<u64>,
}

#[actor(reliable, idle = "3s")]
impl Highest {
    pub async fn report(&mut self, count: u64) {
        self.reports.push(count);
    }

    pub async fn reports(&self) -> Vec<u64> {
        self.reports.clone()
    }
}

/// What is tried.
#[derive(Clone, Copy, Default)]
struct Trial {
    checks: Checks,
    /// Whether each turn is run again before its commit, and must come to the same.
    rerun: bool,
    /// For how long answers are kept, if not for as long as they are by default.
    answers_keep: Option<Duration>,
}

impl Trial {
    fn without(checks: Checks) -> Self {
        Self { checks, ..Self::default() }
    }

    fn rerun() -> Self {
        Self { rerun: true, ..Self::default() }
    }
}

/// Three nodes with a journal, and a nemesis.
fn cluster(sim: &Sim, journal: &SimStore, trial: Trial) -> Cluster {
    let journal = journal.clone();
    Cluster::new(sim, move |builder, name| {
        let builder = builder.register::<Account>().register::<Words>().register::<Highest>();
        let builder = builder.register::<pools::Pool>().register::<pools::Resource>().register::<pools::Provider>();
        let builder = builder.register::<alarms::Alarm>().register::<alarms::Bell>();
        let builder = builder.register::<keys::Till>().register::<poison::Fuse>();
        builder.journal_store(journal.journal_seen_by(name)).configure(|config| {
            config.reliable.partitions = PARTITIONS;
            config.store_timeout = Duration::from_secs(1);
            config.checks.delivery = trial.checks;
            config.reliable.rerun = trial.rerun;
            config.reliable.answers_keep = trial.answers_keep.unwrap_or(config.reliable.answers_keep);
        })
    })
}

/// Runs `load` on each node under a nemesis, then waits until all is well.
async fn through_a_bad_day(sim: &Sim, trial: Trial, load: impl Fn(&Cluster, &'static str)) -> Cluster {
    let journal = SimStore::journal(sim, "journal", Arc::new(MemoryStore::new()));
    let cluster = cluster(sim, &journal, trial);
    cluster.supervise();
    for name in NODES {
        cluster.start(name).await;
    }
    for name in NODES {
        load(&cluster, name);
    }
    if trial.rerun {
        sim.spawn(undisturbed(cluster.clone()));
    }
    let restarting = cluster.clone();
    let nemesis = Nemesis::new(sim, NODES)
        .restart(move |name| restarting.restart(name))
        .store(&journal)
        .lease(Duration::from_secs(4))
        .lasting(Duration::from_millis(500)..Duration::from_secs(6))
        .gap(Duration::from_millis(200)..Duration::from_secs(4));
    let acts = nemesis.run(Duration::from_secs(30)).await;
    assert!(!acts.is_empty(), "every seed has its fault");
    cluster
}

/// Sees to it that no turn would have committed something else after a failover (RSM Prop. 3.1).
async fn undisturbed(cluster: Cluster) {
    loop {
        for node in NODES.iter().filter_map(|name| cluster.node(name)) {
            assert_eq!(node.interference(), Vec::<String>::new());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What each caller was told of its transfers.
#[derive(Default)]
struct Told {
    next: u64,
    closed: bool,
    running: u64,
    /// Whether it is sure that it was made.
    made: BTreeMap<u64, bool>,
}

fn bank(seed: u64, trial: Trial) {
    sim(seed, faults()).deadline(Duration::from_secs(900)).run(|sim| async move {
        let told = Rc::new(RefCell::new(Told::default()));
        let begun = told.clone();
        let cluster = through_a_bad_day(&sim, trial, |cluster, name| {
            for _ in 0..CALLERS {
                begun.borrow_mut().running += 1;
                let told = begun.clone();
                cluster.sim.spawn(transfer_from(cluster.clone(), name, told));
            }
        })
        .await;
        told.borrow_mut().closed = true;
        while told.borrow().running > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (mut money, mut made, mut got) = (1, BTreeMap::new(), BTreeMap::new());
        for _ in 0..1200 {
            (money, made, got) = (0, BTreeMap::new(), BTreeMap::new());
            for account in 0..ACCOUNTS {
                let (balance, sent, received) =
                    eventually(&sim, &cluster, |node| AccountRef::of(node, account).look().by(PATIENCE)).await;
                money += balance;
                made.extend(sent);
                got.extend(received);
            }
            if made == got {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(money, 0, "money is neither lost nor made");
        assert_eq!(made, got, "what was sent has arrived");
        assert!(made.values().chain(got.values()).all(|times| *times == 1), "each once: {made:?} {got:?}");
        let told = &told.borrow().made;
        assert!(!told.is_empty(), "something was done");
        for (id, sure) in told {
            assert!(!sure || made.contains_key(id), "transfer {id} was answered, and was never made");
        }
    });
}

/// Makes transfers. Some are made again with their keys until there is an answer, the others once.
async fn transfer_from(cluster: Cluster, name: &'static str, told: Rc<RefCell<Told>>) {
    let mut random = cluster.sim.random();
    while !told.borrow().closed {
        let pause = random.within(&(Duration::from_millis(10)..Duration::from_millis(300)));
        tokio::time::sleep(pause).await;
        let id = {
            let mut told = told.borrow_mut();
            told.next += 1;
            told.next
        };
        let (from, to) = (random.index(ACCOUNTS) as u64, random.index(ACCOUNTS) as u64);
        let amount = 1 + random.index(100) as i64;
        let insists = random.index(2) == 0;
        let mut node = cluster.node(name);
        for _ in 0..600 {
            if let Some(node) = &node {
                let call = AccountRef::of(node, from).transfer(id, to, amount).by(PATIENCE);
                let call = if insists { call.idempotent(&id.to_string()) } else { call };
                match call.await {
                    Ok(_) => _ = told.borrow_mut().made.insert(id, true),
                    Err(CallError::Unknown(_)) if !insists => _ = told.borrow_mut().made.insert(id, false),
                    Err(_) => {}
                }
            }
            if !insists || told.borrow().made.contains_key(&id) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            // Any node will do for who has a key.
            node = NODES.iter().find_map(|name| cluster.node(name));
        }
    }
    told.borrow_mut().running -= 1;
}

fn word_count(seed: u64, trial: Trial) {
    sim(seed, faults()).deadline(Duration::from_secs(900)).run(|sim| async move {
        let left = Rc::new(RefCell::new(LINES.len()));
        let of = left.clone();
        let cluster = through_a_bad_day(&sim, trial, |cluster, name| {
            for (number, line) in LINES.iter().enumerate().filter(|(number, _)| NODES[number % NODES.len()] == name) {
                let (cluster, left) = (cluster.clone(), of.clone());
                cluster.sim.clone().spawn(async move {
                    let key = format!("line {number}");
                    tokio::time::sleep(Duration::from_millis(number as u64 * 300)).await;
                    eventually(&cluster.sim.clone(), &cluster, |node| {
                        WordsRef::of(node, number % 2).line((*line).to_owned()).idempotent(&key).by(PATIENCE)
                    })
                    .await;
                    *left.borrow_mut() -= 1;
                });
            }
        })
        .await;
        while *left.borrow() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // What a run without failures gives.
        let mut expected: [BTreeMap<String, u64>; 2] = Default::default();
        for (number, line) in LINES.iter().enumerate() {
            line.split(' ').for_each(|word| *expected[number % 2].entry(word.to_owned()).or_default() += 1);
        }
        for (index, expected) in expected.iter().enumerate() {
            let (lines, counts) =
                eventually(&sim, &cluster, |node| WordsRef::of(node, index).counts().by(PATIENCE)).await;
            assert_eq!((lines, &counts), (LINES.len() as u64 / 2, expected));
        }
        for word in expected[0].keys().chain(expected[1].keys()) {
            let wanted: Vec<u64> =
                expected.iter().flat_map(|counts| 1..=counts.get(word).copied().unwrap_or(0)).collect();
            let mut reports = Vec::new();
            for _ in 0..600 {
                reports = eventually(&sim, &cluster, |node| HighestRef::of(node, word).reports().by(PATIENCE)).await;
                if reports.len() >= wanted.len() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // Each counter's reports come in their order.
            let mut sorted = reports.clone();
            sorted.sort_unstable();
            let mut all = wanted.clone();
            all.sort_unstable();
            assert_eq!(sorted, all, "reports of {word:?}");
            if expected.iter().filter(|counts| counts.contains_key(word)).count() == 1 {
                assert_eq!(reports, wanted, "the order of the reports of {word:?}");
            }
        }
    });
}

/// The answer to `call`, made until there is one.
async fn eventually<T, E: std::fmt::Debug, C>(sim: &Sim, cluster: &Cluster, call: impl Fn(&Node) -> C) -> T
where
    C: IntoFuture<Output = Result<T, E>>,
{
    let until = sim.now() + Duration::from_secs(120);
    loop {
        let mut last = None;
        for node in NODES.iter().filter_map(|name| cluster.node(name)) {
            match call(&node).await {
                Ok(answer) => return answer,
                Err(error) => last = Some(error),
            }
        }
        assert!(sim.now() < until, "nobody answers for too long: {last:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A bad day, and a journal whose answers get lost.
fn faults() -> Faults {
    let rough = Faults::rough();
    Faults { store: StoreFaults { not_applied: 0.02, unknown: 0.03, ..rough.store.clone() }, ..rough }
}

#[test]
fn each_transfer_is_made_once_and_no_money_is_lost() {
    seeds("each_transfer_is_made_once_and_no_money_is_lost", 12, |seed| bank(seed, Trial::default()));
}

#[test]
fn without_the_fence_an_earlier_owner_writes_into_its_successors_journal() {
    let checks = Checks { fence: false, ..Checks::default() };
    let name = "without_the_fence_an_earlier_owner_writes_into_its_successors_journal";
    expect_violation(name, 300, |seed| bank(seed, Trial::without(checks)));
}

#[test]
fn without_the_receipt_in_the_commit_a_message_has_its_effects_twice() {
    let checks = Checks { receipt_in_commit: false, ..Checks::default() };
    expect_violation("without_the_receipt_in_the_commit_a_message_has_its_effects_twice", 300, |seed| {
        bank(seed, Trial::without(checks))
    });
}

#[test]
fn acknowledged_before_the_commit_a_message_is_lost() {
    let checks = Checks { acknowledge_after_commit: false, ..Checks::default() };
    expect_violation("acknowledged_before_the_commit_a_message_is_lost", 300, |seed| {
        bank(seed, Trial::without(checks))
    });
}

#[test]
fn the_count_of_words_is_that_of_a_run_without_failures() {
    seeds("the_count_of_words_is_that_of_a_run_without_failures", 12, |seed| {
        word_count(seed, Trial::default());
    });
}

#[test]
fn no_volatile_field_decides_what_bank_word_count_and_pools_commit() {
    seeds("no_volatile_field_decides_what_bank_word_count_and_pools_commit", 6, |seed| match seed % 3 {
        0 => bank(seed, Trial::rerun()),
        1 => word_count(seed, Trial::rerun()),
        _ => pool_server::pools(seed, Trial::rerun()),
    });
}

const PARTITIONS: u32 = 5;
const ACCOUNTS: usize = 6;
/// At once, on each node.
const CALLERS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(3);
const LINES: &[&str] = &[
    "the house of the rising sun",
    "the sun also rises",
    "a house is not a home",
    "home is where the heart is",
    "the heart of the matter",
    "matter and memory",
    "a memory of the sun",
    "and the home of the free",
];
