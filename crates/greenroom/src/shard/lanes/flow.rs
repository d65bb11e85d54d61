//! How much may be on a connection: calls cost credit, which the other side gives back as it deals with them.
//!
//! What has no credit, or no connection yet, is held back, up to a bound; what is held when the connection ends has never
//! left. Replies, pongs and credits pass calls that are held.

use bytes::BytesMut;
use greenroom_protocols::credit::{Receiving, STAMP_EVERY, Sending, Transit};
use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallId, Credit, Encoder, FrameView, frame_len, is_call};
use greenroom_world::Timestamp;

use super::shares::Shares;
use super::{Lane, LaneId, Link};
use crate::actor::error::{Failure, Refusal};
use crate::actor::reply::encode_failure;
use crate::shard::Shard;
use crate::shard::calls::{CallSlot, Completion};

/// One connection's accounts.
pub(crate) struct Flow {
    pub(super) sending: Sending,
    /// Whole frames, in order: calls that wait for credit, and what belongs to them.
    pub(super) held: BytesMut,
    pub(super) shares: Shares,
    /// When a call was last put behind our clock.
    stamped: Timestamp,
    /// `None` for a peer that keeps no count, and while the lane's frames are being handled.
    pub(super) receiving: Option<Receiving>,
    pub(super) transit: Transit,
}

impl Flow {
    /// Of a connection that is being dialled: its hello says our clock at `now`.
    pub(in crate::shard) fn dialled(now: Timestamp) -> Self {
        Self {
            sending: Sending::new(None),
            held: BytesMut::new(),
            shares: Shares::default(),
            stamped: now,
            receiving: None,
            transit: Transit::default(),
        }
    }

    /// Of a connection that a peer opened, which said `theirs` at `now`.
    pub(in crate::shard) fn accepted(theirs: Option<greenroom_wire::Flow>, now: Timestamp) -> Self {
        let mut flow = Self::dialled(now);
        if let Some(theirs) = theirs {
            flow.receiving = Some(Receiving::new(WINDOW));
            flow.transit.stamped(now, theirs.clock);
        }
        flow
    }

    /// What a hello says that is written at `now`.
    pub(crate) fn hello(now: Timestamp) -> greenroom_wire::Flow {
        greenroom_wire::Flow::new(WINDOW, micros(now))
    }

    /// The credit that is to be given back now.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Credit> {
        let granted = self.receiving.as_mut()?.due()?;
        Some(Credit { granted, clock: micros(now) })
    }
}

impl Lane {
    /// Whether a call that is made now is held back.
    pub(super) fn holds(&self) -> bool {
        !self.flow.held.is_empty() || !self.flow.sending.may_send() || !matches!(self.link, Link::Open(_))
    }

    /// Puts our clock before the next call, if it was not for a while.
    pub(super) fn stamp(&mut self, encoder: &Encoder, now: Timestamp, held: bool) {
        if now.since(self.flow.stamped) >= STAMP_EVERY {
            self.flow.stamped = now;
            let granted = self.flow.receiving.map_or(0, |receiving| receiving.told());
            let out = if held { &mut self.flow.held } else { &mut self.out };
            encoder.credit(out, Credit { granted, clock: micros(now) });
        }
    }

    /// Lets go what was held, as far as there is credit.
    pub(super) fn let_go(&mut self) {
        let Flow { sending, held, shares, .. } = &mut self.flow;
        let mut len = 0;
        while len < held.len() && sending.may_send() {
            // Whole frames that we have written ourselves.
            let Some(frame) = frame_len(&held[len..]) else { break };
            if is_call(&held[len..]) {
                sending.sent(frame);
                shares.let_go();
            }
            len += frame as usize;
        }
        if self.out.is_empty() && len == held.len() {
            std::mem::swap(&mut self.out, held);
        } else {
            self.out.extend_from_slice(&held[..len]);
            bytes::Buf::advance(held, len);
        }
    }
}

impl Shard {
    /// The peer gives credit back, and says its clock.
    pub(super) fn take_credit(&self, id: LaneId, credit: Credit) -> Result<(), String> {
        let mut lanes = self.lanes.borrow_mut();
        let Some(lane) = lanes.lane(id) else { return Ok(()) };
        lane.flow.sending.granted(credit.granted).map_err(|error| error.to_string())?;
        if !lane.flow.held.is_empty() {
            lane.let_go();
            lanes.mark_unflushed(id.index);
        }
        Ok(())
    }

    /// Refuses the calls that were held when their connection ended: they have never left.
    pub(super) fn refuse_held(&self, lane: &Lane, reason: &str) {
        let refusal = || Refusal::Unreachable { node: lane.peer_name.clone(), reason: reason.to_owned() };
        let mut rest = &lane.flow.held[..];
        while let Some(frame) = frame_len(rest) {
            if let Ok(FrameView::Call(call)) = FrameView::read(rest)
                && let Some(id) = call.header.id
            {
                self.refuse_call(id, call.header.origin.map(NodeId), refusal());
            }
            rest = rest.get(frame as usize..).unwrap_or_default();
        }
    }

    fn refuse_call(&self, call: CallId, origin: Option<NodeId>, refusal: Refusal) {
        let failure: Failure = refusal.into();
        match origin.filter(|origin| *origin != self.port.node.me()) {
            None if call.shard == self.index() => {
                let slot = CallSlot { index: call.index, generation: call.generation };
                self.complete(slot, Completion::Failed(Box::new(failure)));
            }
            None => {}
            Some(origin) => {
                let (status, payload) = encode_failure(&failure);
                self.node_reply(origin, call, status, &mut |out| {
                    out.extend_from_slice(&payload);
                    Ok(())
                });
            }
        }
    }
}

fn micros(now: Timestamp) -> u64 {
    now.as_nanos() / 1_000
}

/// Bytes of calls that a peer may have on a connection that this node has not dealt with: more than a fast network needs to
/// stay busy while they come back.
const WINDOW: u64 = 4 << 20;
