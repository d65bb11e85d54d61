//! How loaded the nodes are, as far as they have said.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use greenroom_protocols::node::NodeId;

/// Activations by node: what each last said, and what has been placed on it since.
#[derive(Default, Debug)]
pub(crate) struct Loads(Mutex<BTreeMap<NodeId, u64>>);

impl Loads {
    /// Takes in what `node` says of itself.
    pub(crate) fn heard(&self, node: NodeId, activations: u64) {
        self.lock().insert(node, activations);
    }

    /// Notes that an actor was placed on `node`.
    pub(crate) fn placed(&self, node: NodeId) {
        *self.lock().entry(node).or_default() += 1;
    }

    pub(crate) fn of(&self, node: NodeId) -> u64 {
        self.lock().get(&node).copied().unwrap_or_default()
    }

    /// Forgets all but those that `keep` names.
    pub(crate) fn retain(&self, keep: impl Fn(NodeId) -> bool) {
        self.lock().retain(|node, _| keep(*node));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
