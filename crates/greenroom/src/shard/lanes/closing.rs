//! The end of a connection, and of the calls that were out on it.

use super::{Farewell, LaneId, Link};
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::reply::encode_failure;
use crate::shard::Shard;

impl Shard {
    /// Closes a connection, and ends the calls that are out on it. `sent` is false if it had never opened.
    pub(super) fn close_lane(&self, id: LaneId, sent: bool, reason: &str) {
        let Some(mut lane) = self.lanes.borrow_mut().remove(id) else { return };
        lane.link = Link::Closed;
        if lane.streams {
            self.lane_streams_lost(id);
        }
        if let Some(shard) = lane.caller {
            self.callers_lost(lane.peer, Some(shard));
        }
        if lane.dialled {
            self.end_inlets(id, &Doubt::Disconnected { node: lane.peer_name.clone() }.into());
        }
        // What was sent to a node that took leave was passed on, and is answered by others.
        if !lane.dialled || lane.farewell != Farewell::No {
            return;
        }
        tracing::debug!(peer = %lane.peer_name, reason, "a connection closed");
        let lost: Failure = if sent {
            Doubt::Disconnected { node: lane.peer_name.clone() }.into()
        } else {
            Refusal::Unreachable { node: lane.peer_name.clone(), reason: reason.to_owned() }.into()
        };
        self.refuse_held(&lane, reason);
        let (status, payload) = encode_failure(&lost);
        for (origin, call) in lane.forwarded.drain(..).filter(|(origin, _)| *origin != lane.peer) {
            self.node_reply(origin, call, status, &mut |out| {
                out.extend_from_slice(&payload);
                Ok(())
            });
        }
        let ended = self.calls.borrow_mut().peer_lost(lane.peer, &lost);
        for then in ended {
            self.follow(then);
        }
    }

    /// Closes the connections to nodes that the cluster knows to be dead.
    pub(crate) fn drop_lanes_of_the_dead(&self) {
        let dead: Vec<LaneId> = {
            let mut lanes = self.lanes.borrow_mut();
            let indices = 0..lanes.slots.len() as u32;
            indices
                .filter_map(|index| lanes.at(index).map(|(id, lane)| (id, lane.peer)))
                .filter(|(_, peer)| !self.port.node.is_member(*peer))
                .map(|(id, _)| id)
                .collect()
        };
        for id in dead {
            let peer = self.lanes.borrow_mut().lane(id).map(|lane| lane.peer);
            if let Some(peer) = peer {
                self.callers_lost(peer, None);
            }
            self.close_lane(id, true, "the cluster has declared the node dead");
        }
        self.lanes.borrow_mut().departed.retain(|node, _| self.port.node.is_member(*node));
        self.note_viewed();
    }
}
