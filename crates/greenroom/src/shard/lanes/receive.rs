//! Frames that have come in.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use greenroom_protocols::credit::{Receiving, Transit};
use greenroom_protocols::directory::{Epoch, Grant, Placed};
use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallView, FrameView, ReplyView, RouteTable, Status};
use greenroom_world::Timestamp;

use super::farewell::FAREWELL;
use super::send::{CARRIES, HINTS, LETTERS};
use super::{Flow, LaneId, OUT_HIGH_LEN};
use crate::actor::key::Kind;
use crate::actor::reply::{ReplyForm, WireReply};
use crate::shard::Shard;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;
use crate::shard::chain::{CallPath, PortableChain};
use crate::shard::raw::{Journey, RawCall, RouteTarget};
use crate::shard::submit::refuse_reply;

/// A connection's accounts while its frames are handled.
struct Inflow {
    receiving: Option<Receiving>,
    transit: Transit,
    /// How long what comes now was under way, beyond what is usual.
    delay: Duration,
}

impl Inflow {
    fn of(flow: &mut Flow, now: Timestamp) -> Self {
        Self { receiving: flow.receiving.take(), transit: flow.transit, delay: flow.transit.delay(now) }
    }

    /// All calls before this one have been dealt with.
    fn call(&mut self, len: usize) -> Result<(), String> {
        let Some(receiving) = &mut self.receiving else { return Ok(()) };
        receiving.received(len as u64).map_err(|error| error.to_string())?;
        receiving.all_done();
        Ok(())
    }

    fn stamped(&mut self, now: Timestamp, clock: u64) {
        self.transit.stamped(now, clock);
        self.delay = self.transit.delay(now);
    }
}

impl Shard {
    /// Handles the whole frames that a connection has. On an error the connection is to be closed.
    pub(super) fn receive(&self, id: LaneId) -> Result<(), String> {
        // Turns that begin here write onto connections, this one too: so nothing of it stays borrowed.
        let (peer, mut input, mut decoder, mut routes, mut flow) = {
            let mut lanes = self.lanes.borrow_mut();
            let Some(lane) = lanes.lane(id) else { return Ok(()) };
            let routes = std::mem::replace(&mut lane.routes_in, RouteTable::new());
            let flow = Inflow::of(&mut lane.flow, self.now());
            (lane.peer, std::mem::take(&mut lane.input), std::mem::take(&mut lane.decoder), routes, flow)
        };
        let mut views = decoder.views(&input);
        let result = loop {
            let before = views.consumed();
            match views.next() {
                Ok(Some(frame)) => {
                    let len = views.consumed() - before;
                    if let Err(reason) = self.frame(id, peer, frame, len, &mut routes, &mut flow) {
                        break Err(reason);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        let consumed = views.consumed();
        if consumed == input.len() {
            input.clear();
        } else {
            input.advance(consumed);
        }
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        if let Some(lane) = lanes.lane(id) {
            lane.input = input;
            lane.decoder = decoder;
            lane.routes_in = routes;
            lane.flow.transit = flow.transit;
            lane.flow.receiving = flow.receiving;
            // Who does not take its replies gets no more calls through.
            if lane.out.len() <= OUT_HIGH_LEN
                && let Some(credit) = lane.flow.due(self.now())
            {
                encoder.credit(&mut lane.out, credit);
                lanes.mark_unflushed(id.index);
            }
        }
        drop(lanes);
        if result.is_err() {
            self.port().node.strangers().count_bad_frame();
        }
        result
    }

    fn frame(
        &self,
        id: LaneId,
        peer: NodeId,
        frame: FrameView<'_>,
        len: usize,
        routes: &mut RouteTable<Arc<RouteTarget>>,
        flow: &mut Inflow,
    ) -> Result<(), String> {
        match frame {
            FrameView::Call(call) => {
                let mut route = routes.resolve(call.header.route).map_err(|error| error.to_string())?;
                // Its kind may have come to the cluster after the route was defined.
                if route.kind.is_none() && Kind::known(&route.kind_name).is_some() {
                    let target = self.port().node.kinds().route(&route.kind_name, &route.method);
                    routes.redefine(call.header.route, Arc::new(target));
                    route = routes.resolve(call.header.route).map_err(|error| error.to_string())?;
                }
                flow.call(len)?;
                self.refill_budget();
                self.incoming(id, peer, call, route, flow.delay)?;
            }
            FrameView::Credit(credit) => {
                flow.stamped(self.now(), credit.clock);
                self.take_credit(id, credit)?;
            }
            FrameView::Reply(reply) => self.reply(peer, reply),
            FrameView::Cancel(cancel) => self.take_cancel(peer, cancel),
            FrameView::Control { channel: HINTS, payload } => self.take_hint(peer, payload),
            FrameView::Control { channel: CARRIES, payload } => self.take_carry(peer, payload),
            FrameView::Control { channel: LETTERS, payload } => self.take_letter(peer, payload),
            FrameView::Control { channel: FAREWELL, payload } => self.take_farewell(id, peer, payload),
            FrameView::Define { route, kind, method } => {
                let target = self.port().node.kinds().route(kind, method);
                routes.define(route, Arc::new(target)).map_err(|error| error.to_string())?;
            }
            FrameView::StreamItem { consumer, number, payload } => self.take_item(id, consumer, number, payload),
            FrameView::StreamCredit(credit) => {
                self.refill_budget();
                self.lane_has_streams(id);
                self.take_stream_credit(id, credit);
            }
            FrameView::StreamEnd { consumer, number, status, payload } => {
                self.take_end(id, consumer, number, status, payload);
            }
            FrameView::Ping(nonce) => {
                let mut lanes = self.lanes.borrow_mut();
                let encoder = lanes.encoder;
                if let Some(lane) = lanes.lane(id) {
                    encoder.pong(&mut lane.out, nonce);
                }
                lanes.mark_unflushed(id.index);
            }
            FrameView::Goodbye(reason) => return Err(format!("the peer said goodbye: {reason}")),
            // Pongs have done their work by being heard; what is unknown is a later version's.
            _ => {}
        }
        Ok(())
    }

    fn incoming(
        &self,
        id: LaneId,
        peer: NodeId,
        call: CallView<'_>,
        route: &Arc<RouteTarget>,
        delay: Duration,
    ) -> Result<(), String> {
        let header = call.header;
        let origin = header.origin.map_or(peer, NodeId);
        let form = ReplyForm::asked_by(call.payload);
        let reply = match (header.id, header.origin) {
            (None, _) => WireReply::nobody(),
            (Some(call), None) => WireReply::lane(self.id(), id, peer, call, form),
            (Some(call), Some(_)) => WireReply::node(origin, call, form),
        };
        if route.kind.is_none() {
            refuse_reply(reply, self.port().node.unknown_kind(&route.kind_name));
            return Ok(());
        }
        let deadline = header.deadline.map_or(Timestamp::NEVER, |left| self.now() + left.saturating_sub(delay));
        let link = CallPath::of(call.chain);
        let baggage = if header.extension.is_empty() {
            None
        } else {
            Some(Baggage::read(header.extension).map_err(|error| error.to_string())?)
        };
        let host = baggage.as_deref().and_then(|baggage| baggage.host);
        let grant = header.grant.map(|grant| Grant {
            placed: Placed { node: host.unwrap_or_else(|| self.port().node.me()), epoch: Epoch(grant.epoch) },
            by: NodeId(grant.grantor),
            view: grant.view,
        });
        let from_outside = link.is_none();
        if let Err(refusal) = self.admit_call(from_outside, deadline) {
            refuse_reply(reply, refusal);
            return Ok(());
        }
        let chain = PortableChain { link, baggage }.into();
        let journey = Journey { origin, from: peer, hops: header.hops, grant };
        self.submit_raw(RawCall {
            key: header.key,
            route,
            payload: call.payload,
            reply,
            deadline,
            chain,
            journey,
            sender: None,
        });
        Ok(())
    }

    /// A node that we sent a one-way message to says that it has passed it on.
    fn take_hint(&self, peer: NodeId, payload: &[u8]) {
        if let Some(hash) = payload.first_chunk() {
            self.learn_of_passing(u64::from_le_bytes(*hash), peer);
        }
    }

    fn reply(&self, peer: NodeId, reply: ReplyView<'_>) {
        let payload = Bytes::copy_from_slice(reply.payload);
        // Only who had the actor can answer with its value.
        let from = matches!(reply.status, Status::Ok | Status::ActorError).then_some(peer);
        let completion = Completion::Wire { status: reply.status, payload, from };
        self.reply_to(reply.id, completion);
    }
}
