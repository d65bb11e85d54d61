//! Where messages must go, and who wants to know.

use greenroom_protocols::directory::{Epoch, Grant};
use greenroom_protocols::node::NodeId;

use crate::shard::{ShardId, Slot};

/// Where a message must go.
pub(crate) enum Location {
    /// To a shard of this node; without a slot, that shard is to activate the actor under this epoch.
    Here { shard: ShardId, slot: Option<Slot>, epoch: Epoch },
    /// To another node, with the directory's word if this node is the one to give it.
    There { node: NodeId, grant: Option<Grant> },
    /// It is on the move, and its messages wait at that shard of this node.
    Moving { shard: ShardId },
    /// It goes from one shard of this node to another.
    Passing { to: ShardId, passage: Passage },
    /// Nobody can say yet.
    Wait,
    /// Other clusters must be asked first.
    Abroad,
}

/// Whence an actor goes to another shard of its node: its last messages to that place come by there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passage {
    /// The shard that it leaves.
    pub(crate) from: ShardId,
    /// Its slot there.
    pub(crate) slot: Slot,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// The node that called first.
    pub(crate) origin: NodeId,
    /// The node that the message came from.
    pub(crate) from: NodeId,
    /// The shard of this node that has the message: the caller's own, or the one that it came in by.
    pub(crate) near: u16,
    /// Whether the caller is outside of all shards. Its next messages go straight to where the actor is, so this one
    /// must not take a way round.
    pub(crate) outside: bool,
    /// The version of the kind's interface that the caller speaks.
    pub(crate) wanted: u16,
}
