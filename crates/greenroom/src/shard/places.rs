//! What a shard remembers of where actors are: it saves the directory's lock, and hops.

use greenroom_protocols::node::NodeId;

use super::Slot;

/// Where messages that came as bytes went last, by the actors' hashes: saves the directory's lock.
pub(super) struct Recent(Vec<(u64, Slot)>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![(0, Slot { index: u32::MAX, generation: 0 }); RECENT_LEN])
    }
}

impl Recent {
    pub(super) fn insert(&mut self, hash: u64, slot: Slot) {
        self.0[hash as usize & (RECENT_LEN - 1)] = (hash, slot);
    }

    pub(super) fn find(&self, hash: u64) -> Option<Slot> {
        let (known, slot) = self.0[hash as usize & (RECENT_LEN - 1)];
        (known == hash).then_some(slot)
    }
}

/// Where other nodes said that one-way messages had better go, or who answered calls from outside, by the actors' hashes. Wrong
/// ones cost a hop.
pub(super) struct Hints(Vec<(u64, NodeId)>);

impl Default for Hints {
    fn default() -> Self {
        Self(vec![(0, NodeId(0)); RECENT_LEN])
    }
}

impl Hints {
    pub(super) fn insert(&mut self, hash: u64, node: NodeId) {
        self.0[hash as usize & (RECENT_LEN - 1)] = (hash, node);
    }

    pub(super) fn remove(&mut self, hash: u64, node: NodeId) {
        let known = &mut self.0[hash as usize & (RECENT_LEN - 1)];
        if *known == (hash, node) {
            *known = (0, NodeId(0));
        }
    }

    pub(super) fn find(&self, hash: u64) -> Option<NodeId> {
        let (known, node) = self.0[hash as usize & (RECENT_LEN - 1)];
        (known == hash && node != NodeId(0)).then_some(node)
    }
}

/// Slots of the cache of recent activations; a power of two.
const RECENT_LEN: usize = 4096;
