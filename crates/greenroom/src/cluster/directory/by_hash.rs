//! Actors of this node by their hashes alone, for who knows no more of them.

use std::sync::OnceLock;

use greenroom_protocols::directory::Epoch;

use super::{Directory, Entry};
use crate::actor::key::{ActorId, Kind};
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
        let (entry, active) = range.active.range(Entry { hash, id: least().clone() }..).next()?;
        let is_it = entry.hash == hash && !active.is_moving();
        let (id, epoch, shard, slot) = (entry.id.clone(), active.epoch, active.shard(), active.slot());
        is_it.then_some(Hosted { id, epoch, shard, slot })
    }
}

/// Comes before all actors, and is none: no kind has this name.
fn least() -> &'static ActorId {
    static LEAST: OnceLock<ActorId> = OnceLock::new();
    LEAST.get_or_init(|| ActorId::unchecked(Kind::intern(""), ""))
}
