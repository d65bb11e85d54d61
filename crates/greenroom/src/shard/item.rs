//! What goes into the inboxes of shards.

use bytes::Bytes;
use greenroom_wire::{CallId, Status};
use greenroom_world::Stream;

use super::batch::Batch;
use super::calls::{CallSlot, Completion};
use super::passage::Enter;
use super::submit::AnyParcel;
use super::{Greeted, LaneId, Shard, ShardId};
use crate::here::location::Passage;

/// What other threads hand to a shard.
pub(crate) enum Item {
    /// A message for an activation of this shard, or that this shard is to route.
    Parcel(Box<dyn AnyParcel>),
    /// A message that another shard of this node has looked at, whose actor is said to be here.
    Passed { from: ShardId, awaited: bool, parcel: Box<dyn AnyParcel> },
    /// An activation that goes to this shard.
    Enter(Box<Enter>),
    /// A message that has come to where such an actor was.
    Handed(Box<dyn AnyParcel>),
    /// A message for such an actor, from a shard that uses the slot that it leaves no more.
    Ahead { passage: Passage, parcel: Box<dyn AnyParcel> },
    /// Messages for activations of this shard.
    Batch(Batch),
    /// The end of a call of this shard.
    Completion { call: CallSlot, completion: Completion },
    /// A reply to a call that came on a connection of this shard.
    LaneReply { lane: LaneId, call: CallId, status: Status, payload: Bytes },
    /// A connection that another node opened, its hello read; what was read behind it comes along.
    Connection { stream: Box<dyn Stream>, hello: Box<Greeted> },
    /// Something else to be done on the shard's thread.
    Run(Box<dyn FnOnce(&Shard) + Send>),
}

impl Item {
    /// What it counts for against the bound of an inbox, which may refuse messages but no replies and hand-overs.
    pub(super) fn weight(&self) -> usize {
        match self {
            Item::Parcel(_) | Item::Passed { .. } | Item::Ahead { .. } => 1,
            Item::Batch(batch) => batch.len(),
            // What is handed on was counted where it came from.
            Item::Enter(_) | Item::Handed(_) => 0,
            Item::Completion { .. } | Item::LaneReply { .. } | Item::Connection { .. } | Item::Run(_) => 0,
        }
    }
}
