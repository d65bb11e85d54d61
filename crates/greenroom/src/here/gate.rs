//! How many messages of one kind may wait and run at once on a node.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::actor::error::Refusal;

/// The count of a kind that has a bound. Shards that admit at the very same time may go beyond it by one each.
#[derive(Debug)]
pub(crate) struct Gate {
    max: u32,
    inside: AtomicU32,
}

impl Gate {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, inside: AtomicU32::new(0) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.inside.load(Ordering::Relaxed) >= self.max
    }

    pub(crate) fn enter(&self) {
        self.inside.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self, messages: usize) {
        self.inside.fetch_sub(messages as u32, Ordering::Relaxed);
    }

    /// What a message is told that finds it full.
    pub(crate) fn refusal(&self, kind: &str, node: &str) -> Refusal {
        Refusal::Overloaded { queue: format!("what node {node} does at once for kind {kind}"), bound: self.max.into() }
    }
}
