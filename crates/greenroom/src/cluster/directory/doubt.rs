//! Which activations of this node may not be the only ones over all clusters.

use std::collections::BTreeMap;

use greenroom_protocols::directory::{Epoch, RangeId};
use greenroom_protocols::node::NodeId;

use super::{Directory, Entry, GONE_MAX, RangeHere, lock};
use crate::actor::key::ActorId;
use crate::shard::{ShardId, Slot};

impl Directory {
    /// Whether the activation of this epoch here may not be the only one over all clusters.
    pub(crate) fn is_doubtful(&self, id: &ActorId, epoch: Epoch) -> bool {
        let key = Entry::new(id.clone());
        let range = self.range(key.word);
        let several = || self.border().is_some_and(|border| border.is_in_each(&key));
        range.active.get(&key).is_some_and(|active| active.epoch == epoch && active.is_doubtful() && !several())
    }

    /// The activations here of these ranges that may not be the only ones over all clusters.
    pub(crate) fn doubtful(&self, ranges: impl Iterator<Item = RangeId>) -> Vec<Entry> {
        if self.border().is_none() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for range in ranges {
            let here = lock(&self.ranges[usize::from(range.0)]);
            all.extend(here.active.iter().filter(|(_, active)| active.is_doubtful()).map(|(key, _)| key.clone()));
        }
        all
    }

    /// The activations here that may not be the only ones over all clusters, by the owners of their ranges.
    pub(crate) fn in_doubt(&self) -> BTreeMap<NodeId, Vec<Entry>> {
        let mut all = BTreeMap::<NodeId, Vec<Entry>>::new();
        for range in &self.ranges {
            let range = lock(range);
            let Some(owner) = range.machine.owner().filter(|_| !range.active.is_empty()) else { continue };
            let doubtful = range.active.iter().filter(|(_, active)| active.is_doubtful()).map(|(key, _)| key.clone());
            all.entry(owner).or_default().extend(doubtful);
        }
        all
    }

    /// Takes in that an activation here is the only one over all clusters; returns its place, once its shard has made it.
    pub(crate) fn owned(&self, key: &Entry, epoch: Epoch) -> Option<(ShardId, Slot)> {
        let mut range = self.range(key.word);
        if !range.active.contains_key(key) {
            // The word was faster than the call that begins it.
            if range.owned_early.len() == GONE_MAX {
                range.owned_early.pop_front();
            }
            range.owned_early.push_back((key.clone(), epoch));
        }
        range.settle(key, epoch)
    }
}

impl RangeHere {
    /// Notes that the activation of this epoch is the only one over all clusters; returns its place, once its shard has made it.
    pub(crate) fn settle(&mut self, key: &Entry, epoch: Epoch) -> Option<(ShardId, Slot)> {
        let active = self.active.get_mut(key).filter(|active| active.epoch == epoch)?;
        active.settle();
        let active = *active;
        self.slot_of(key, &active)
    }
}
