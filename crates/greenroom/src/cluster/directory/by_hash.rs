//! Actors of this node by their hashes alone, for who knows no more of them.

use greenroom_protocols::directory::Epoch;

use super::{Directory, Entry};
use crate::actor::key::ActorId;
use crate::shard::{ShardId, Slot};

/// An activation of this node.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    pub(crate) id: ActorId,
    pub(crate) epoch: Epoch,
    pub(crate) shard: ShardId,
    /// `None` until the shard has made it.
    pub(crate) slot: Option<Slot>,
}

impl Directory {
    /// The activation of the actor with this hash, if it is here and not on its way elsewhere.
    pub(crate) fn hosted(&self, hash: u64) -> Option<Hosted> {
        let range = self.range(hash);
        let mut alike = range.active.range(Entry::before(hash)..).take_while(|(entry, _)| entry.may_hash_to(hash));
        let (entry, active) = alike.find(|(entry, _)| entry.hash() == hash)?;
        let (id, epoch, shard, slot) = (entry.id(), active.epoch, active.shard(), active.slot());
        (!active.is_moving()).then_some(Hosted { id, epoch, shard, slot })
    }
}
