//! What a shard remembers of where its own actors are: it saves the directory's lock.

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

/// Slots of the cache of recent activations; a power of two.
const RECENT_LEN: usize = 4096;
