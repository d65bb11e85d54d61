//! An activation of this node as the directory has it: in 16 bytes, as there may be millions.

use std::fmt;

use greenroom_protocols::directory::Epoch;

use crate::shard::{ShardId, Slot};

/// An activation of this node.
#[derive(Clone, Copy)]
pub(crate) struct Active {
    pub(crate) epoch: Epoch,
    /// The shard and the slot, and what else is to be known.
    word: u64,
}

impl Active {
    /// One that `shard` is about to make. `doubtful`: there may be another one in another cluster.
    pub(crate) fn new(epoch: Epoch, shard: ShardId, doubtful: bool) -> Self {
        Self { epoch, word: shard.packed(NOWHERE) | (u64::from(doubtful) * DOUBTFUL) }
    }

    pub(crate) fn shard(&self) -> ShardId {
        ShardId::unpacked(self.word).0
    }

    /// `None` until the shard has made it.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Some(ShardId::unpacked(self.word).1).filter(|slot| *slot != NOWHERE)
    }

    /// Whether it has ended, and its state is on the way elsewhere; undecided.
    pub(crate) fn is_moving(&self) -> bool {
        self.word & MOVING != 0
    }

    /// Whether there may be another one in another cluster.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.word & DOUBTFUL != 0
    }

    /// Notes where it is, or that it is being made there.
    pub(crate) fn put(&mut self, shard: ShardId, slot: Option<Slot>) {
        self.word = shard.packed(slot.unwrap_or(NOWHERE)) | (self.word & (MOVING | DOUBTFUL));
    }

    /// Notes that it has ended, and that its state is on the way elsewhere.
    pub(crate) fn depart(&mut self) {
        self.put(self.shard(), None);
        self.word |= MOVING;
    }

    /// Notes that there is no other one.
    pub(crate) fn settle(&mut self) {
        self.word &= !DOUBTFUL;
    }
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Active");
        shown.field("epoch", &self.epoch).field("shard", &self.shard()).field("slot", &self.slot());
        shown.field("moving", &self.is_moving()).field("doubtful", &self.is_doubtful()).finish()
    }
}

/// A slot that no shard has: so many activations have no room in memory.
const NOWHERE: Slot = Slot { index: u32::MAX, generation: 0 };
/// Above a packed slot.
const MOVING: u64 = 1 << 62;
const DOUBTFUL: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activation_is_where_it_was_put_whatever_else_is_known_of_it() {
        let (shard, other) = (ShardId::from_raw(4095), ShardId::from_raw(1));
        let slot = Slot { index: u32::MAX - 1, generation: Slot::GENERATION_MAX };
        let mut active = Active::new(Epoch(7), shard, true);
        assert_eq!((active.shard(), active.slot(), active.is_moving()), (shard, None, false));
        active.put(other, Some(slot));
        assert_eq!((active.shard(), active.slot(), active.is_doubtful()), (other, Some(slot), true));
        active.settle();
        active.depart();
        assert_eq!((active.shard(), active.slot()), (other, None));
        assert!(active.is_moving() && !active.is_doubtful());
    }

    #[test]
    fn it_takes_two_words() {
        assert_eq!(size_of::<Active>(), 16);
    }
}
