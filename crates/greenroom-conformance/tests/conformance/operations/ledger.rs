//! What has run, seen from outside of the cluster: which operations, how often, in which order.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::{Exclusive, Faults, Sim, seeds, test_name};

use crate::cluster::{Cluster, sim};

/// The operations that have run, by actor, in their order.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<BTreeMap<String, Vec<u64>>>>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, actor: &str, operation: u64) {
        self.lock().entry(actor.to_owned()).or_default().push(operation);
    }

    /// What an actor has run, in order.
    pub(super) fn of(&self, actor: &str) -> Vec<u64> {
        self.lock().get(actor).cloned().unwrap_or_default()
    }

    /// How often each operation has run.
    pub(super) fn counts(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for operation in self.lock().values().flatten() {
            *counts.entry(*operation).or_default() += 1;
        }
        counts
    }
}

/// Notes what it runs; its turns are checked to be alone.
pub(super) struct Clerk {
    ledger: Ledger,
    watch: Exclusive,
}

impl Actor for Clerk {}

#[actor]
impl Clerk {
    /// Runs an operation that takes so many milliseconds.
    pub async fn run(&mut self, cx: &Cx, operation: u64, millis: u64) -> (String, u64) {
        let inside = self.watch.enter(&cx.id().to_string(), cx.node_name(), cx.epoch());
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        self.ledger.note(cx.key().as_str(), operation);
        drop(inside);
        (cx.node_name().to_owned(), operation)
    }
}

/// Runs `scenario` under so many seeds, over these nodes, all of which host clerks.
#[track_caller]
pub(super) fn with_clerks<F>(
    count: u64,
    faults: Faults,
    names: &'static [&'static str],
    scenario: impl Fn(Cluster, Ledger) -> F + Sync,
) where
    F: Future<Output = ()> + 'static,
{
    seeds(&test_name(), count, |seed| {
        sim(seed, faults.clone()).deadline(Duration::from_secs(600)).run(|of: Sim| {
            let (ledger, watch) = (Ledger::default(), Exclusive::strict(&of));
            let theirs = ledger.clone();
            let cluster = Cluster::new(&of, move |builder, _| {
                let (ledger, watch) = (theirs.clone(), watch.clone());
                builder.register_with(move |_| Clerk { ledger: ledger.clone(), watch: watch.clone() })
            });
            let scenario = scenario(cluster.clone(), ledger);
            async move {
                cluster.start_all(names).await;
                scenario.await;
            }
        });
    });
}

/// How a client's calls went.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) answered: Cell<u64>,
    pub(super) retried: Cell<u64>,
    pub(super) unknown: Cell<u64>,
}

/// Runs an operation by whichever node takes it, and tries again for as long as it was refused.
pub(super) async fn run(cluster: &Cluster, names: &[&str], key: u64, operation: u64, tally: &Tally) {
    let mut turn = operation as usize;
    for _ in 0..TRIES {
        turn += 1;
        let node = cluster.node(names[turn % names.len()]).filter(|node| !node.is_stopped());
        let Some(node) = node else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        match ClerkRef::of(&node, key).run(operation, 1).await {
            Ok(_) => return tally.answered.set(tally.answered.get() + 1),
            Err(CallError::Refused(refusal)) => {
                tally.retried.set(tally.retried.get() + 1);
                let pause = refusal.retry_after().unwrap_or_else(|| panic!("not to be retried: {refusal}"));
                tokio::time::sleep(pause.min(Duration::from_millis(100))).await;
            }
            Err(CallError::Unknown(doubt)) => {
                cluster.sim.note(format_args!("operation {operation} of {key}: {doubt}"));
                return tally.unknown.set(tally.unknown.get() + 1);
            }
            Err(error) => panic!("operation {operation}: {error}"),
        }
    }
    panic!("operation {operation} was refused {TRIES} times");
}

const TRIES: usize = 1000;
