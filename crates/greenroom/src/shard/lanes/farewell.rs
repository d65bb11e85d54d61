//! How connections end when a node leaves in order.
//!
//! The node that leaves says farewell on every connection that others call it on: it has passed on or answered all that
//! came so far. The other side calls no more there, and says farewell back, behind its last call. So nothing is on the way
//! when the connection closes, and who still waits for a call that was sent there is answered by whom it was passed on to.

use greenroom_protocols::node::NodeId;
use greenroom_wire::EncodeError;

use super::{Lane, LaneId, Link};
use crate::shard::Shard;

/// How far the two sides of a connection have taken leave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Farewell {
    /// Nobody leaves.
    #[default]
    No,
    /// The side that is called has said it.
    Said,
    /// The side that calls has said it too: nothing comes any more.
    Answered,
}

impl Shard {
    /// Says farewell on the connections that others call this node on.
    pub(crate) fn say_farewell(&self) {
        for id in self.lane_ids(|lane| !lane.dialled && lane.farewell == Farewell::No) {
            self.put_farewell(id, Farewell::Said);
        }
    }

    /// Whether calls may still come by a connection, or replies wait to leave.
    pub(crate) fn awaits_farewells(&self) -> bool {
        let undone = |lane: &Lane| {
            let open = matches!(lane.link, Link::Open(_));
            open && (!lane.out.is_empty() || (!lane.dialled && lane.farewell != Farewell::Answered))
        };
        !self.lane_ids(undone).is_empty()
    }

    /// The other side has said farewell.
    pub(super) fn take_farewell(&self, id: LaneId, peer: NodeId) {
        let dialled = {
            let mut lanes = self.lanes.borrow_mut();
            let Some(lane) = lanes.lane(id) else { return };
            if !lane.dialled {
                lane.farewell = Farewell::Answered;
                return;
            }
            lanes.dialled.get(&peer) == Some(&id)
        };
        if dialled {
            let mut lanes = self.lanes.borrow_mut();
            lanes.dialled.remove(&peer);
            lanes.departed.insert(peer);
        }
        self.put_farewell(id, Farewell::Answered);
    }

    /// Whether `node` has said that it takes no more calls.
    pub(in crate::shard) fn has_departed(&self, node: NodeId) -> bool {
        self.lanes.borrow().departed.contains(&node)
    }

    fn put_farewell(&self, id: LaneId, now: Farewell) {
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id) else { return };
        lane.farewell = now;
        // An empty message is below any frame limit.
        let _ = encoder.control(&mut lane.out, FAREWELL, |_| Ok::<(), EncodeError>(()));
        lanes.mark_unflushed(id.index);
    }

    fn lane_ids(&self, which: impl Fn(&Lane) -> bool) -> Vec<LaneId> {
        let mut lanes = self.lanes.borrow_mut();
        let indices = 0..lanes.slots.len() as u32;
        indices.filter_map(|index| lanes.at(index).filter(|(_, lane)| which(lane)).map(|(id, _)| id)).collect()
    }
}

/// The channel of control frames on shards' connections that says farewell; the message is empty.
pub(super) const FAREWELL: u8 = 3;
