//! Passages: actors that go from one shard of this node to another, as the directory sees them.

use greenroom_protocols::directory::Epoch;

use super::{Active, Directory, Entry, RangeHere};
use crate::actor::key::ActorId;
use crate::here::location::Passage;
use crate::shard::{ShardId, Slot};

impl Directory {
    /// Lets the activation of `id` go to the shard `to`; false if it is not where `passage` says.
    pub(crate) fn pass(&self, id: &ActorId, epoch: Epoch, passage: Passage, to: ShardId) -> bool {
        let entry = Entry::new(id.clone());
        let mut range = self.range(entry.word);
        let known = range.active.get_mut(&entry).filter(|active| active.epoch == epoch && !active.is_moving());
        let Some(active) = known.filter(|active| active.is_at(passage)) else { return false };
        active.put(to, None);
        range.passing.insert(entry, passage);
        true
    }

    /// Nothing comes by way of the old shard any more: who sends may know the new slot.
    pub(crate) fn passed(&self, id: &ActorId, epoch: Epoch, passage: Passage, at: (ShardId, Slot)) {
        let entry = Entry::new(id.clone());
        let mut range = self.range(entry.word);
        if range.passing.get(&entry) != Some(&passage) {
            return;
        }
        if let Some(active) = range.active.get_mut(&entry).filter(|active| active.epoch == epoch) {
            active.put(at.0, Some(at.1));
        }
        range.passing.remove(&entry);
    }

    /// The shard that has `id` or gets it, and its slot there.
    pub(crate) fn place(&self, id: &ActorId) -> Option<(ShardId, Option<Slot>)> {
        let entry = Entry::new(id.clone());
        let range = self.range(entry.word);
        range.active.get(&entry).map(|active| (active.shard(), active.slot()))
    }
}

impl Active {
    fn is_at(&self, passage: Passage) -> bool {
        self.shard() == passage.from && self.slot() == Some(passage.slot)
    }
}

impl RangeHere {
    /// Where an activation is. One that is passing is where it was: who comes there is told where it goes.
    pub(super) fn slot_of(&self, entry: &Entry, active: &Active) -> Option<(ShardId, Slot)> {
        let passage = || self.passing.get(entry).map(|passage| (passage.from, passage.slot));
        active.slot().map(|slot| (active.shard(), slot)).or_else(passage)
    }
}
