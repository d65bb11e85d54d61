//! The actors of these tests.

use greenroom::prelude::*;
use greenroom_test::{Cluster, Setup};
use serde::{Deserialize, Serialize};

/// Forgets with its activation.
#[derive(Default, Actor)]
pub(crate) struct Counter {
    count: u64,
}

#[actor(placement = "local")]
impl Counter {
    pub async fn add(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// Keeps its state.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Book {
    entries: u64,
}

#[actor(persistent, placement = "local")]
impl Book {
    pub async fn enter(&mut self, cx: &Cx) -> Result<u64, StateError> {
        self.entries += 1;
        cx.save(self).await?;
        Ok(self.entries)
    }

    pub async fn entries(&self) -> u64 {
        self.entries
    }
}

/// Keeps its state in a store of another name.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Annals {
    entries: u64,
}

#[actor(persistent, store = "archive")]
impl Annals {
    pub async fn enter(&mut self, cx: &Cx) -> Result<u64, StateError> {
        self.entries += 1;
        cx.save(self).await?;
        Ok(self.entries)
    }
}

/// Commits its turns.
#[derive(Default, Actor)]
pub(crate) struct Ledger {
    entries: Register<u64>,
}

#[actor(reliable)]
impl Ledger {
    pub async fn enter(&mut self) -> u64 {
        *self.entries.get_mut() += 1;
        *self.entries.get()
    }

    pub async fn pass_on(&mut self, cx: &Cx, to: String) {
        LedgerRef::of(cx, to).enter().send();
    }

    pub async fn entries(&self) -> u64 {
        *self.entries.get()
    }
}

/// Passes messages on.
#[derive(Default, Actor)]
pub(crate) struct Relay {}

#[actor(placement = "local")]
impl Relay {
    pub async fn pass(&mut self, cx: &Cx, to: String) {
        CounterRef::of(cx, to).add().send();
    }
}

/// A cluster that hosts all of them.
pub(crate) fn cluster(nodes: usize) -> Setup {
    Cluster::of(nodes, |builder| builder.register::<Counter>().register::<Book>().register::<Relay>())
}

/// The same, with reliable actors.
pub(crate) fn reliable_cluster(nodes: usize) -> Setup {
    Cluster::of(nodes, |builder| builder.register::<Ledger>())
}
