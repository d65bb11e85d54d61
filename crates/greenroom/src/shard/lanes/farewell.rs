//! How connections end when a node leaves in order.
//!
//! The node that leaves says farewell on each of its connections: it has passed on or answered all that came so far, and
//! calls nobody any more. The other side calls no more there, and says farewell back, behind its last call and having
//! taken in all that came. So nothing is on the way when the connection closes, and who still waits for a call that was
//! sent there is answered by whom it was passed on to.

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
    /// This side has said it.
    Said,
    /// Both sides have said it: nothing comes any more.
    Answered,
}

impl Shard {
    /// Says farewell on all connections.
    pub(crate) fn say_farewell(&self) {
        let me = self.port.node.me();
        for id in self.lane_ids(|lane| lane.farewell == Farewell::No && lane.peer != me) {
            self.put_farewell(id, Farewell::Said);
        }
    }

    /// Whether something may still come by a connection, or waits to leave, or waits here for the directory.
    pub(crate) fn awaits_farewells(&self) -> bool {
        let me = self.port.node.me();
        let open = |lane: &Lane| !matches!(lane.link, Link::Closed) && lane.peer != me;
        let waits = |lane: &Lane| !lane.out.is_empty() || !lane.flow.held.is_empty();
        let undone = |lane: &Lane| open(lane) && (waits(lane) || lane.farewell != Farewell::Answered);
        self.has_work() || self.has_parked() || !self.lane_ids(undone).is_empty()
    }

    /// The other side has said farewell, or answered ours.
    pub(super) fn take_farewell(&self, id: LaneId, peer: NodeId, message: &[u8]) {
        let answers = message == ANSWER;
        {
            let mut lanes = self.lanes.borrow_mut();
            let Some(lane) = lanes.lane(id) else { return };
            lane.farewell = Farewell::Answered;
            if !answers && lanes.dialled.get(&peer) == Some(&id) {
                lanes.dialled.remove(&peer);
                lanes.departed.insert(peer, id);
            }
        }
        if !answers {
            self.put_farewell(id, Farewell::Answered);
        }
    }

    /// Whether `node` has said that it takes no more calls.
    pub(in crate::shard) fn has_departed(&self, node: NodeId) -> bool {
        self.lanes.borrow().departed.contains_key(&node)
    }

    fn put_farewell(&self, id: LaneId, now: Farewell) {
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id) else { return };
        lane.farewell = now;
        // Behind the calls that wait for credit, if there are any. A byte is below any frame limit.
        let out = if lane.flow.held.is_empty() { &mut lane.out } else { &mut lane.flow.held };
        let _ = encoder.control(out, FAREWELL, |out| {
            out.extend_from_slice(if now == Farewell::Said { SAID } else { ANSWER });
            Ok::<(), EncodeError>(())
        });
        lanes.mark_unflushed(id.index);
    }

    fn lane_ids(&self, which: impl Fn(&Lane) -> bool) -> Vec<LaneId> {
        let mut lanes = self.lanes.borrow_mut();
        let indices = 0..lanes.slots.len() as u32;
        indices.filter_map(|index| lanes.at(index).filter(|(_, lane)| which(lane)).map(|(id, _)| id)).collect()
    }
}

/// What the side that leaves says.
const SAID: &[u8] = &[0];
/// What the other side answers.
const ANSWER: &[u8] = &[1];
/// The channel of control frames on shards' connections that says farewell.
pub(super) const FAREWELL: u8 = 3;
