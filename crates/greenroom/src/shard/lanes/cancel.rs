//! Word of calls that nobody waits for any more, between nodes.

use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallId, CancelView};

use crate::shard::Shard;

impl Shard {
    /// Tells `to` that nobody waits for a call, if there is a connection: without one, nothing that went there still waits.
    pub(in crate::shard) fn lane_cancel(&self, to: NodeId, cancel: &CancelView<'_>) {
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(id) = lanes.dialled.get(&to).copied() else { return };
        let Some(lane) = lanes.lane(id) else { return };
        // A peer that takes nothing runs its calls to their ends. Names of actors that were called are within the bounds.
        if lane.out.len() <= super::OUT_HIGH_LEN && encoder.cancel(&mut lane.out, cancel).is_ok() {
            lanes.mark_unflushed(id.index);
        }
    }

    /// The node that a call of `origin` was forwarded to by this shard. It is forgotten: nobody waits for its end.
    pub(in crate::shard) fn forwarded_to(&self, origin: NodeId, call: CallId) -> Option<NodeId> {
        let mut lanes = self.lanes.borrow_mut();
        lanes.slots.iter_mut().filter_map(|slot| slot.lane.as_mut()).find_map(|lane| {
            let at = lane.forwarded.iter().position(|known| *known == (origin, call))?;
            lane.forwarded.remove(at);
            Some(lane.peer)
        })
    }
}
