//! What the nodes have said of themselves: how loaded they are, and what they know of the table.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use greenroom_protocols::node::NodeId;

/// What each node last said.
#[derive(Default, Debug)]
pub(crate) struct Loads(Mutex<BTreeMap<NodeId, Said>>);

#[derive(Default, Debug)]
struct Said {
    /// Its activations, and what has been placed on it since.
    activations: u64,
    /// The version of the table that it knows.
    table: u64,
}

impl Loads {
    /// Takes in what `node` says of its activations.
    pub(crate) fn heard(&self, node: NodeId, activations: u64) {
        self.lock().entry(node).or_default().activations = activations;
    }

    /// Takes in which version of the table `node` knows.
    pub(crate) fn knows(&self, node: NodeId, table: u64) {
        let mut said = self.lock();
        let said = said.entry(node).or_default();
        said.table = said.table.max(table);
    }

    /// The version of the table that `node` is known to know.
    pub(crate) fn table_of(&self, node: NodeId) -> u64 {
        self.lock().get(&node).map_or(0, |said| said.table)
    }

    /// Notes that an actor was placed on `node`.
    pub(crate) fn placed(&self, node: NodeId) {
        self.lock().entry(node).or_default().activations += 1;
    }

    pub(crate) fn of(&self, node: NodeId) -> u64 {
        self.lock().get(&node).map_or(0, |said| said.activations)
    }

    /// Forgets all but those that `keep` names.
    pub(crate) fn retain(&self, keep: impl Fn(NodeId) -> bool) {
        self.lock().retain(|node, _| keep(*node));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeId, Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
