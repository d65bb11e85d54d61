//! What the nodes have said of themselves: how loaded they are, what they know of the table, and whether by a detour.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

/// What each node last said.
#[derive(Default, Debug)]
pub(crate) struct Loads {
    said: Mutex<BTreeMap<NodeId, Said>>,
    /// Whether a node may be apart: changed with the lock held, read without it.
    torn: AtomicBool,
}

#[derive(Default, Debug)]
struct Said {
    /// Its activations, and what has been placed on it since.
    activations: u64,
    /// The version of the table that it knows.
    table: u64,
    /// Since when it has not answered this node, if it does not.
    silent_since: Option<Timestamp>,
    /// Until then it is taken for one that other nodes reach, and this one does not.
    apart_until: Timestamp,
}

impl Loads {
    /// Takes in what `node` says of its activations.
    pub(crate) fn heard(&self, node: NodeId, activations: u64) {
        let mut said = self.lock();
        let said = said.entry(node).or_default();
        (said.activations, said.silent_since) = (activations, None);
    }

    /// Takes in, at `now`, that `node` does not answer.
    pub(crate) fn silent(&self, node: NodeId, now: Timestamp) {
        self.lock().entry(node).or_default().silent_since.get_or_insert(now);
    }

    /// Since when `node` has not answered, if it does not.
    pub(crate) fn silent_since(&self, node: NodeId) -> Option<Timestamp> {
        self.lock().get(&node)?.silent_since
    }

    /// Takes in that `node` has answered us.
    pub(crate) fn answered(&self, node: NodeId) {
        self.lock().entry(node).or_default().apart_until = Timestamp::default();
    }

    /// Takes in, at `now`, that word of `node` came through another one, as the direct way failed.
    pub(crate) fn heard_of(&self, node: NodeId, now: Timestamp) {
        let mut said = self.lock();
        said.entry(node).or_default().apart_until = now + APART;
        self.torn.store(true, Ordering::Relaxed);
    }

    /// Those that this node does not reach, while others do.
    pub(crate) fn apart(&self, now: Timestamp) -> Vec<NodeId> {
        if !self.torn.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let said = self.lock();
        let apart: Vec<NodeId> =
            said.iter().filter(|(_, said)| now < said.apart_until).map(|(node, _)| *node).collect();
        self.torn.store(!apart.is_empty(), Ordering::Relaxed);
        apart
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
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a node is taken for cut off from this one after word of it came through another one.
const APART: Duration = Duration::from_secs(10);
