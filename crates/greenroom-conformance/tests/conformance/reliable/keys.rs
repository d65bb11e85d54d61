//! Idempotency keys through a bad day: a key that is asked again within its time gets its first answer, whoever owns the
//! partition by then; after its time it is a new call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_protocols::delivery::Checks;
use greenroom_sim::{expect_violation, seeds};

use super::{Cluster, NODES, PATIENCE, Trial, eventually, faults, sim, through_a_bad_day};

/// Counts what is paid, so that each run has an answer of its own.
#[derive(Default, Actor)]
pub(super) struct Till {
    times: Map<u64, u64>,
    paid: Register<u64>,
}

#[actor(reliable, idle = "3s")]
impl Till {
    pub async fn pay(&mut self, id: u64) -> u64 {
        let times = self.times.get(&id).copied().unwrap_or(0) + 1;
        self.times.insert(id, times);
        // Time in which the turn may be cut.
        tokio::time::sleep(Duration::from_millis(id % 5)).await;
        *self.paid.get_mut() += 1;
        *self.paid.get()
    }

    pub async fn times(&self) -> Vec<(u64, u64)> {
        self.times.iter().map(|(id, times)| (*id, *times)).collect()
    }
}

/// What callers were told, and when they asked first.
#[derive(Default)]
struct Told {
    answers: BTreeMap<u64, (u64, Duration)>,
    running: u64,
}

async fn pay(cluster: &Cluster, id: u64) -> u64 {
    let (sim, key) = (cluster.sim.clone(), id.to_string());
    eventually(&sim, cluster, |node| TillRef::of(node, id % TILLS).pay(id).idempotent(&key).by(PATIENCE)).await
}

/// Asks again for what was paid, if its time cannot be over.
async fn ask_again(cluster: &Cluster, told: &Rc<RefCell<Told>>, id: u64) {
    let (answer, asked) = told.borrow().answers[&id];
    let again = pay(cluster, id).await;
    if cluster.sim.now() < asked + KEEP - SKEW {
        assert_eq!(again, answer, "payment {id} has one answer");
    }
}

async fn pay_and_ask(cluster: Cluster, place: u64, told: Rc<RefCell<Told>>) {
    let mut random = cluster.sim.random();
    for number in 0..EACH {
        let id = place * EACH + number;
        let asked = cluster.sim.now();
        let answer = pay(&cluster, id).await;
        told.borrow_mut().answers.insert(id, (answer, asked));
        let known: Vec<u64> = told.borrow().answers.keys().copied().collect();
        ask_again(&cluster, &told, known[random.index(known.len())]).await;
        tokio::time::sleep(Duration::from_millis(random.index(3000) as u64)).await;
    }
    told.borrow_mut().running -= 1;
}

fn keys(seed: u64, checks: Checks) {
    sim(seed, faults()).deadline(Duration::from_secs(1800)).run(|sim| async move {
        let told = Rc::new(RefCell::new(Told::default()));
        let of = told.clone();
        let trial = Trial { checks, answers_keep: Some(KEEP), ..Trial::default() };
        let cluster = through_a_bad_day(&sim, trial, move |cluster, name| {
            of.borrow_mut().running += 1;
            let place = NODES.iter().position(|node| *node == name).unwrap_or(0) as u64;
            cluster.sim.spawn(pay_and_ask(cluster.clone(), place, of.clone()));
        })
        .await;
        while told.borrow().running > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let all: Vec<u64> = told.borrow().answers.keys().copied().collect();
        // By those who have the partitions now, and by those who get them when a node leaves.
        for leaver in [None, Some("a")] {
            if let Some(node) = leaver.and_then(|name| cluster.node(name)) {
                node.drain().await;
            }
            for id in &all {
                ask_again(&cluster, &told, *id).await;
            }
        }
        let first = told.borrow().answers.values().map(|(_, asked)| *asked).min().expect("something was paid");
        if cluster.sim.now() < first + KEEP - SKEW {
            for till in 0..TILLS {
                let times = eventually(&sim, &cluster, |node| TillRef::of(node, till).times().by(PATIENCE)).await;
                assert!(times.iter().all(|(_, times)| *times == 1), "each once: {times:?}");
            }
        }
        tokio::time::sleep(2 * KEEP).await;
        let (old, _) = told.borrow().answers[&0];
        assert!(pay(&cluster, 0).await > old, "its time is over: it is a new call");
    });
}

#[test]
fn a_key_asked_again_within_its_time_gets_its_first_answer_whoever_owns_the_partition() {
    seeds("a_key_asked_again_within_its_time_gets_its_first_answer_whoever_owns_the_partition", 10, |seed| {
        keys(seed, Checks::default());
    });
}

#[test]
fn without_recorded_answers_a_key_asked_again_runs_again() {
    let checks = Checks { recorded_answer: false, ..Checks::default() };
    expect_violation("without_recorded_answers_a_key_asked_again_runs_again", 10, |seed| keys(seed, checks));
}

const TILLS: u64 = 3;
/// By each node.
const EACH: u64 = 10;
const KEEP: Duration = Duration::from_secs(240);
/// More than owners' clocks differ by.
const SKEW: Duration = Duration::from_secs(20);
