//! A message whose turn kills its node is parked after three deaths, and everything else goes on.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_protocols::delivery::Checks;
use greenroom_sim::{Faults, SimStore, seeds};
use greenroom_store::Store;
use greenroom_store::memory::MemoryStore;

use super::{NODES, PATIENCE, Trial, cluster, eventually};
use crate::cluster::sim;

thread_local! {
    /// Nodes that a turn wants to take down.
    static DOOMED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// An actor that counts, and takes its node down if it is lit.
#[derive(Default, Actor)]
pub(super) struct Fuse {
    count: u64,
}

#[actor(reliable, idle = "3s")]
impl Fuse {
    /// Lights one fuse, and has the others count.
    pub async fn begin(&mut self, cx: &Cx, lit: String, others: Vec<String>) {
        FuseRef::of(cx, &lit).light().send();
        for other in others {
            FuseRef::of(cx, &other).count().send();
        }
    }

    pub async fn light(&mut self, cx: &Cx) {
        DOOMED.with_borrow_mut(|doomed| doomed.push(cx.node_name().to_owned()));
        pending().await
    }

    pub async fn count(&mut self) {
        self.count += 1;
    }

    pub async fn counted(&self) -> u64 {
        self.count
    }
}

/// Outcome of a run with a poison message.
struct Outcome {
    deaths: u32,
    /// The records of parked messages.
    parked: Vec<String>,
    /// How often each bystander has counted.
    counted: Vec<u64>,
}

fn poisoned(seed: u64, trial: Trial, judge: impl Fn(Outcome) + 'static) {
    sim(seed, Faults::default()).deadline(Duration::from_secs(600)).run(|sim| async move {
        DOOMED.take();
        let stored = Arc::new(MemoryStore::new());
        let journal = SimStore::journal(&sim, "journal", stored.clone());
        let cluster = cluster(&sim, &journal, trial);
        for name in NODES {
            cluster.start(name).await;
        }
        let deaths = Rc::new(Cell::new(0));
        let (counted, of) = (deaths.clone(), cluster.clone());
        sim.spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                for name in DOOMED.take() {
                    if of.sim.is_alive(&name) {
                        counted.set(counted.get() + 1);
                        of.sim.crash(&name);
                        let of = of.clone();
                        of.sim.clone().spawn(async move {
                            tokio::time::sleep(Duration::from_secs(1)).await;
                            of.restart(&name);
                        });
                    }
                }
            }
        });
        let others: Vec<String> = (0..OTHERS).map(|number| format!("other {number}")).collect();
        eventually(&sim, &cluster, |node| {
            let begun = FuseRef::of(node, "first").begin("lit".to_owned(), others.clone());
            begun.idempotent("once").by(PATIENCE)
        })
        .await;
        let mut parked = Vec::new();
        for _ in 0..LONG.as_secs() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let page = stored.scan("reliable/", None, 1000, PATIENCE).await.expect("memory does not fail");
            parked = page.items.into_iter().map(|item| item.key).filter(|key| key.contains("/parked/")).collect();
            if !parked.is_empty() {
                break;
            }
        }
        let mut counts = Vec::new();
        if !parked.is_empty() {
            // Nothing kills any more, and the actor itself answers too.
            tokio::time::sleep(Duration::from_secs(20)).await;
            for other in others.iter().map(String::as_str).chain(["lit"]) {
                counts.push(eventually(&sim, &cluster, |node| FuseRef::of(node, other).counted().by(PATIENCE)).await);
            }
        }
        judge(Outcome { deaths: deaths.get(), parked, counted: counts });
    });
}

#[test]
fn a_message_that_kills_its_node_is_parked_after_three_deaths_and_all_others_are_done() {
    let name = "a_message_that_kills_its_node_is_parked_after_three_deaths_and_all_others_are_done";
    seeds(name, 6, |seed| {
        poisoned(seed, Trial::default(), |Outcome { deaths, parked, counted }| {
            assert_eq!(deaths, 3);
            assert_eq!(parked.len(), 1, "{parked:?}");
            let mut expected = vec![1; OTHERS];
            expected.push(0);
            assert_eq!(counted, expected, "each bystander has its message once, and the poison has no effect");
        });
    });
}

#[test]
fn without_counted_deaths_a_message_kills_node_after_node() {
    let checks = Checks { counted_deaths: false, ..Checks::default() };
    poisoned(1, Trial::without(checks), |Outcome { deaths, parked, .. }| {
        assert!(deaths > 3, "{deaths} deaths");
        assert!(parked.is_empty(), "{parked:?}");
    });
}

const OTHERS: usize = 8;
/// Time in which a message that is not parked kills more than three nodes.
const LONG: Duration = Duration::from_secs(120);
