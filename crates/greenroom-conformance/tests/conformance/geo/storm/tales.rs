//! Versioned states in the storm: one that is in a store that all clusters reach, and one in a leader's memory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError};
use greenroom::{Builder, CallError, Config};
use greenroom_sim::{Sim, SimStore};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::persistence::{Ledger, Told};

/// Lines in order.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Lines(Vec<u64>);

impl VersionedStateWithOutput for Lines {
    type Update = u64;
    /// The line's number, from 1.
    type Output = u64;

    fn apply(&mut self, line: &u64) -> Result<u64, Rejected> {
        self.0.push(*line);
        Ok(self.0.len() as u64)
    }
}

macro_rules! tale {
    ($tale:ident, $($option:tt)*) => {
        /// A tale that is told in all clusters.
        #[derive(Default, Actor)]
        struct $tale {
            lines: Versioned<Lines>,
        }

        #[actor($($option)*)]
        impl $tale {
            /// Answers when the line is confirmed, with its number.
            #[update]
            pub async fn add(&self, line: u64) -> Result<u64, UpdateError> {
                self.lines.enqueue(line).await
            }

            /// Linearizable.
            pub async fn read(&self) -> Result<Vec<u64>, StateError> {
                self.lines.refresh_now().await?;
                Ok(self.lines.confirmed().0.0.clone())
            }
        }
    };
}

tale!(Saga, kind = "saga", instances = "per_cluster", protocol = "bcas", idle = "2s");
tale!(Rumour, kind = "rumour", instances = "per_cluster", protocol = "vlb", idle = "2s");

/// What callers were told of tales, and the store of the sagas.
#[derive(Clone)]
pub(super) struct Tales {
    sim: Sim,
    pub(super) store: SimStore,
    sagas: Rc<RefCell<Ledger>>,
}

/// Tells a node which cluster the store is nearest to, and whether the list of clusters is in it.
pub(super) fn configure(config: &mut Config, listed: bool) {
    if let Some(geo) = &mut config.geo {
        geo.stores.insert("default".to_owned(), super::WIDE[0].0.to_owned());
        geo.store = listed.then(String::new);
        geo.lost_after = Duration::from_secs(20);
    }
}

impl Tales {
    pub(super) fn new(sim: &Sim) -> Self {
        let store = SimStore::journal(sim, "tales", Arc::new(MemoryStore::new()));
        Self { sim: sim.clone(), store, sagas: Rc::default() }
    }

    /// What adds them to a node.
    pub(super) fn equip(&self) -> impl Fn(Builder, &str) -> Builder + Clone + 'static {
        let store = self.store.clone();
        move |builder, node| {
            builder.register::<Saga>().register::<Rumour>().state_journal("", store.journal_seen_by(node))
        }
    }

    /// Tells tales at one node, whichever process has its name, until they are closed.
    pub(super) fn call_from(&self, cluster: &Cluster, name: &'static str) {
        let (this, cluster, mut random) = (self.clone(), cluster.clone(), self.sim.random());
        self.sim.spawn(async move {
            while !this.sagas.borrow().closed {
                tokio::time::sleep(random.within(&(Duration::from_millis(200)..Duration::from_secs(4)))).await;
                let Some(node) = cluster.node(name) else { continue };
                let line = this.sagas.borrow_mut().begin(SAGA);
                match random.index(3) {
                    0 => {
                        // What its leader's memory had may be lost: that it is not there twice is all that is asked.
                        let _ = RumourRef::of(&node, "rumour").add(line).by(PATIENCE).await;
                        if let Ok(lines) = RumourRef::of(&node, "rumour").read().by(PATIENCE).await {
                            assert_once(&lines);
                        }
                    }
                    1 => {
                        if let Ok(lines) = SagaRef::of(&node, "saga").read().by(PATIENCE).await {
                            this.sagas.borrow_mut().seen.push((SAGA, lines));
                        }
                    }
                    _ => {
                        let told = told(&SagaRef::of(&node, "saga").add(line).by(PATIENCE).await);
                        this.sagas.borrow_mut().told.insert((SAGA, line), told);
                    }
                }
            }
        });
    }

    /// Tells no more.
    pub(super) fn close(&self) {
        self.sagas.borrow_mut().closed = true;
    }

    /// Compares what callers were told with what is there.
    pub(super) async fn check(&self, nodes: &[Node]) {
        for node in nodes {
            let lines = self.eventually(node).await;
            self.sagas.borrow().check(SAGA, &lines);
        }
    }

    async fn eventually(&self, node: &Node) -> Vec<u64> {
        let until = self.sim.now() + Duration::from_secs(60);
        loop {
            if let Ok(lines) = SagaRef::of(node, "saga").read().by(PATIENCE).await {
                return lines;
            }
            assert!(self.sim.now() < until, "{} does not tell the saga although all is well", node.name());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn assert_once(lines: &[u64]) {
    let all: BTreeSet<u64> = lines.iter().copied().collect();
    assert_eq!(all.len(), lines.len(), "a line is there twice: {lines:?}");
}

fn told(answer: &Result<u64, CallError<UpdateError>>) -> Told {
    match answer {
        Ok(number) => Told::Saved(*number),
        Err(CallError::Actor(UpdateError::OutputUnknown)) => Told::Made,
        Err(CallError::Actor(_) | CallError::Unknown(_)) => Told::Doubt,
        Err(error) => Told::Not(error.to_string()),
    }
}

/// The one that all tell.
const SAGA: usize = 0;
const PATIENCE: Duration = Duration::from_secs(3);
