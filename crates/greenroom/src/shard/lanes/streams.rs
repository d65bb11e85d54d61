//! Frames of streams on connections.

use greenroom_wire::StreamCredit;

use super::LaneId;
use crate::shard::{Item, Shard};

impl Shard {
    /// Puts whole frames onto a connection. Without the connection, nobody waits for them.
    pub(in crate::shard) fn lane_frames(&self, id: LaneId, frames: &[u8]) {
        let mut lanes = self.lanes.borrow_mut();
        let Some(lane) = lanes.lane(id) else { return };
        lane.out.extend_from_slice(frames);
        self.flush_soon(lanes, id);
    }

    /// Puts what a stream's consumer has room for onto a connection.
    pub(in crate::shard) fn lane_credit(&self, id: LaneId, credit: &StreamCredit) {
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id) else { return };
        encoder.stream_credit(&mut lane.out, credit);
        self.flush_soon(lanes, id);
    }

    /// Streams are asked for on this connection: they end with it.
    pub(super) fn lane_has_streams(&self, id: LaneId) {
        if let Some(lane) = self.lanes.borrow_mut().lane(id) {
            lane.streams = true;
        }
    }

    /// Ends the streams that were under way on a connection, whichever shard makes them.
    pub(super) fn lane_streams_lost(&self, id: LaneId) {
        let lane = (self.id(), id);
        for port in self.port().node.shards() {
            if port.id == self.id() {
                self.end_flows(lane);
            } else {
                self.post(port.id, Item::Run(Box::new(move |shard| shard.end_flows(lane))));
            }
        }
    }
}
