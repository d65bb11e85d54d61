//! What goes out on a shard's connections: calls, replies, and what nodes tell each other of actors that moved.

use bytes::BytesMut;
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::FIRST;
use greenroom_wire::{CallId, EncodeError, Encoder, Extension, Status};
use greenroom_world::Timestamp;

use super::LaneId;
use super::shares::OF_ACTOR_LEN_MAX;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::key::stable_hash;
use crate::actor::reply::{Writes, encode_failure, unencodable};
use crate::shard::baggage;
use crate::shard::calls::{CallSlot, Completion};
use crate::shard::chain::CallPath;
use crate::shard::outgoing::Outgoing;
use crate::shard::{Item, Shard};

impl Shard {
    /// Encodes a call onto this shard's connection to `to`, which is dialled if there is none.
    pub(in crate::shard) fn lane_call(
        &self,
        to: NodeId,
        call: &Outgoing<'_>,
        write: Writes<'_>,
    ) -> Result<(), Refusal> {
        let id = self.dialled(to)?;
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let now = self.now();
        let Some(lane) = lanes.lane(id) else { return Err(Refusal::Stopping) };
        if lane.out.len() + lane.flow.held.len() > OUT_LEN_MAX {
            let queue = format!("the connection to node {}", lane.peer_name);
            return Err(Refusal::Overloaded { queue, bound: OUT_LEN_MAX as u64 });
        }
        let unsendable = |error: &dyn std::fmt::Display| Refusal::Unsendable { message: error.to_string() };
        let held = lane.holds();
        let actor = if held { stable_hash(call.kind, call.key) } else { 0 };
        if held && !lane.flow.shares.has_room(actor) {
            let queue = format!("what may wait for one actor on the connection to node {}", lane.peer_name);
            return Err(Refusal::Overloaded { queue, bound: OF_ACTOR_LEN_MAX as u64 });
        }
        lane.stamp(&encoder, now, held);
        let out = if held { &mut lane.flow.held } else { &mut lane.out };
        let route = lane.routes_out.route(&encoder, out, call.kind, call.method).map_err(|error| unsendable(&error))?;
        // Who gets a grant takes it for its own, unless it is named: this one goes by a node that only passes it on.
        let host = call.grant.filter(|grant| grant.placed.node != to && grant.by != to).map(|grant| grant.placed.node);
        let extension = match (call.baggage, call.version, host) {
            (None, FIRST, None) => Extension::EMPTY,
            (baggage, version, host) => baggage::written(baggage, version, host).map_err(|error| unsendable(&error))?,
        };
        let header = greenroom_wire::CallHeader {
            id: call.id,
            origin: call.origin.map(|node| node.0),
            hops: call.hops,
            route,
            key: call.key,
            deadline: (call.deadline != Timestamp::NEVER).then(|| call.deadline.since(now)),
            grant: call.grant.map(|grant| greenroom_wire::Grant {
                epoch: grant.placed.epoch.0,
                view: grant.view,
                grantor: grant.by.0,
            }),
            extension: extension.view(),
        };
        let chain = call.chain.map(CallPath::view).unwrap_or_default();
        let before = out.len();
        encoder.call(out, &header, chain, write).map_err(|error| unsendable(&error))?;
        let len = out.len() - before;
        if held {
            lane.flow.shares.hold(actor, len);
        } else {
            lane.flow.sending.sent(len as u64);
            self.flush_soon(lanes, id);
        }
        Ok(())
    }

    /// Encodes a reply onto the connection that the call came on. Without the connection, nobody waits any more.
    pub(crate) fn lane_reply(&self, id: LaneId, call: CallId, status: Status, write: Writes<'_>) {
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id) else { return };
        if lane.out.len() > REPLIES_LEN_MAX {
            let message = format!("{} bytes of replies wait for node {} to take them", lane.out.len(), lane.peer_name);
            put_failure(&encoder, &mut lane.out, call, &Doubt::Unreadable { message }.into());
        } else if let Err(error) = encoder.reply(&mut lane.out, call, status, write) {
            put_failure(&encoder, &mut lane.out, call, &unencodable(&error));
        }
        self.flush_soon(lanes, id);
    }

    /// Encodes a reply to a node whose call another one has forwarded.
    pub(crate) fn node_reply(&self, to: NodeId, call: CallId, status: Status, write: Writes<'_>) {
        if to == self.port().node.me() {
            return self.reply_home(call, status, write);
        }
        // Without a way to the node, the caller's deadline tells it.
        if let Some(id) = self.dialled(to).ok().or_else(|| self.lanes.borrow().departed.get(&to).copied()) {
            self.lane_reply(id, call, status, write);
        }
    }

    /// Ends a call of this node that came back to it.
    fn reply_home(&self, call: CallId, status: Status, write: Writes<'_>) {
        let mut out = BytesMut::new();
        let (status, payload) = match write(&mut out) {
            Ok(()) => (status, out.freeze()),
            Err(error) => encode_failure(&unencodable(&error)),
        };
        let from = matches!(status, Status::Ok | Status::ActorError).then_some(self.port().node.me());
        self.reply_to(call, Completion::Wire { status, payload, from });
    }

    /// Ends a call that this node knows by its name on the wire, whichever shard made it.
    pub(super) fn reply_to(&self, id: CallId, completion: Completion) {
        let call = CallSlot { index: id.index, generation: id.generation };
        if id.shard == self.index() {
            self.complete(call, completion);
        } else if let Some(port) = self.port().node.shards().get(usize::from(id.shard)) {
            self.post(port.id, Item::Completion { call, completion });
        }
    }

    /// Tells `to` that one-way messages for the actor of this hash had better go to `host`.
    pub(crate) fn lane_hint(&self, to: NodeId, hash: u64, host: NodeId) {
        let Ok(id) = self.dialled(to) else { return };
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id) else { return };
        // Sixteen bytes are below any frame limit.
        let _ = encoder.control(&mut lane.out, HINTS, |out| {
            out.extend_from_slice(&hash.to_le_bytes());
            out.extend_from_slice(&host.0.to_le_bytes());
            Ok::<(), EncodeError>(())
        });
        lanes.mark_unflushed(id.index);
    }

    /// Puts control frames onto this shard's connection to `to`, right behind each other, each on its channel; false if there is no
    /// way or no room, or one of them is too long.
    pub(crate) fn lane_tell(&self, to: NodeId, frames: &[(u8, Written<'_>)]) -> bool {
        let Ok(id) = self.dialled(to) else { return false };
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(id).filter(|lane| lane.out.len() <= OUT_LEN_MAX) else { return false };
        let written = frames.iter().try_for_each(|(channel, write)| {
            encoder.control(&mut lane.out, *channel, |out| {
                write(out);
                Ok::<(), EncodeError>(())
            })
        });
        if let Err(error) = &written {
            tracing::warn!(peer = %lane.peer_name, %error, "what a part of this node says could not be sent");
        }
        self.flush_soon(lanes, id);
        written.is_ok()
    }

    /// The state of an actor that moves here has come.
    pub(super) fn take_carry(&self, peer: NodeId, payload: &[u8]) {
        self.tell_parts(peer, CARRIES, payload);
    }

    /// What is said of such an actor before its state has come.
    pub(super) fn take_letter(&self, peer: NodeId, payload: &[u8]) {
        self.tell_parts(peer, LETTERS, payload);
    }
}

/// Writes what a frame says.
type Written<'a> = &'a dyn Fn(&mut BytesMut);

fn put_failure(encoder: &Encoder, out: &mut BytesMut, call: CallId, failure: &Failure) {
    let (status, payload) = encode_failure(failure);
    // A failure is far below any frame limit.
    let _ = encoder.reply(out, call, status, |out| {
        out.extend_from_slice(&payload);
        Ok::<(), EncodeError>(())
    });
}

/// Bytes that may wait on one connection before callers are refused.
pub(super) const OUT_LEN_MAX: usize = 16 << 20;
/// Bytes that may wait on one connection before further replies are cut to the word that they were too much.
const REPLIES_LEN_MAX: usize = 32 << 20;
/// The channel of control frames on shards' connections that say where one-way messages went: the actor's hash and the
/// node, 8 bytes each, little-endian.
pub(super) const HINTS: u8 = 2;
/// The channel of control frames on shards' connections that carry the states of actors that move.
pub(crate) const CARRIES: u8 = 4;
/// The channel of control frames on shards' connections that say something of an actor whose state comes next: its hash and epoch, 8
/// bytes each, little-endian, and what the parts of its shard say.
pub(crate) const LETTERS: u8 = 5;
