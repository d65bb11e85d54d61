//! A shard's connections to other nodes.
//!
//! Each shard dials its own connection to each node that it calls, and answers on the connection that a call came on: so
//! a call and its reply cross no thread that they need not. Frames are encoded straight into the connection's batch,
//! which leaves when the round ends. Cluster protocols have connections of their own, so user traffic delays none of them.

use std::cell::RefMut;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use greenroom_protocols::directory::{Grant, Placed};
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::FIRST;
use greenroom_wire::{CallId, Decoder, EncodeError, Encoder, Extension, RouteEncoder, RouteTable, Status};
use greenroom_world::{BoxFuture, Stream, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Shard;
use super::baggage::{self, Baggage};
use super::moves::Carried;
use super::raw::RouteTarget;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::key::ActorId;
use crate::actor::reply::{encode_failure, unencodable};

mod cancel;
mod closing;
mod dial;
mod farewell;
mod flow;
mod receive;
mod streams;

pub(crate) use self::dial::{Greeted, OPEN_TIMEOUT, read_hello, within};
use self::farewell::Farewell;
pub(crate) use self::flow::Flow;

/// A connection of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId {
    index: u32,
    generation: u32,
}

/// A call as it goes out.
pub(super) struct Outgoing<'a> {
    pub(super) id: Option<CallId>,
    pub(super) origin: Option<NodeId>,
    pub(super) hops: u8,
    pub(super) kind: &'a str,
    pub(super) method: &'a str,
    pub(super) key: &'a str,
    pub(super) deadline: Timestamp,
    pub(super) grant: Option<Grant>,
    pub(super) chain: &'a [u8],
    pub(super) baggage: Option<&'a Baggage>,
    /// The version of the kind's interface that the caller speaks.
    pub(super) version: u16,
}

/// One connection, or the attempt at one.
struct Lane {
    peer: NodeId,
    peer_name: String,
    /// Whether this node opened it, and so may call on it.
    dialled: bool,
    /// The peer's shard that calls on it, if the peer opened it.
    caller: Option<u16>,
    link: Link,
    /// Frames that have not left, and may.
    out: BytesMut,
    flow: Flow,
    input: BytesMut,
    decoder: Decoder,
    routes_out: RouteEncoder,
    routes_in: RouteTable<Arc<RouteTarget>>,
    flag: Arc<Flag>,
    /// Whether it is in the list of lanes to flush.
    unflushed: bool,
    /// So many bytes wait no longer for the end of the round: the peer may be idle.
    flush_len: usize,
    /// The latest calls that were forwarded on it for other nodes: they are told if it breaks.
    forwarded: VecDeque<(NodeId, CallId)>,
    heard: Timestamp,
    pinged: Timestamp,
    farewell: Farewell,
    /// Whether streams have been asked for on it.
    streams: bool,
}

enum Link {
    Connecting(BoxFuture<io::Result<dial::Opened>>),
    Open(Box<dyn Stream>),
    Closed,
}

/// Tells the shard which of its connections has something to do.
struct Flag {
    index: u32,
    raised: AtomicBool,
    list: Arc<Mutex<Vec<u32>>>,
    shard: Waker,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.list.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
        }
        self.shard.wake_by_ref();
    }
}

/// The connections of one shard.
#[derive(Default)]
pub(super) struct Lanes {
    slots: Vec<LaneSlot>,
    free: Vec<u32>,
    dialled: BTreeMap<NodeId, LaneId>,
    /// Nodes that leave and take no more calls, but replies, and the connections for these.
    departed: BTreeMap<NodeId, LaneId>,
    raised: Arc<Mutex<Vec<u32>>>,
    unflushed: Vec<u32>,
    shard: Option<Waker>,
    encoder: Encoder,
    next_look: Option<Timestamp>,
}

#[derive(Default)]
struct LaneSlot {
    generation: u32,
    lane: Option<Box<Lane>>,
}

impl Lanes {
    fn insert(&mut self, make: impl FnOnce(Arc<Flag>) -> Lane) -> LaneId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(LaneSlot::default());
            (self.slots.len() - 1) as u32
        });
        let shard = self.shard.clone().unwrap_or_else(|| Waker::noop().clone());
        let flag = Arc::new(Flag { index, raised: AtomicBool::new(false), list: self.raised.clone(), shard });
        let slot = &mut self.slots[index as usize];
        slot.lane = Some(Box::new(make(flag.clone())));
        let id = LaneId { index, generation: slot.generation };
        flag.wake();
        id
    }

    fn lane(&mut self, id: LaneId) -> Option<&mut Lane> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation { slot.lane.as_deref_mut() } else { None }
    }

    fn at(&mut self, index: u32) -> Option<(LaneId, &mut Lane)> {
        let slot = self.slots.get_mut(index as usize)?;
        let id = LaneId { index, generation: slot.generation };
        slot.lane.as_deref_mut().map(|lane| (id, lane))
    }

    fn remove(&mut self, id: LaneId) -> Option<Box<Lane>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let lane = slot.lane.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        if self.dialled.get(&lane.peer) == Some(&id) {
            self.dialled.remove(&lane.peer);
        }
        Some(lane)
    }

    fn mark_unflushed(&mut self, index: u32) {
        if let Some((_, lane)) = self.at(index)
            && !std::mem::replace(&mut lane.unflushed, true)
        {
            self.unflushed.push(index);
        }
    }

    /// Connections there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Shard {
    /// Remembers whom connections wake.
    pub(super) fn set_lane_waker(&self, waker: &Waker) {
        let mut lanes = self.lanes.borrow_mut();
        if lanes.shard.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            lanes.shard = Some(waker.clone());
        }
    }

    /// Encodes a call onto this shard's connection to `to`, which is dialled if there is none.
    pub(super) fn lane_call(
        &self,
        to: NodeId,
        call: &Outgoing<'_>,
        write: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
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
        let chain = greenroom_wire::ChainView::parse(call.chain).unwrap_or_default();
        let before = out.len();
        encoder.call(out, &header, chain, write).map_err(|error| unsendable(&error))?;
        if !held {
            let len = out.len() - before;
            lane.flow.sending.sent(len as u64);
            self.flush_soon(lanes, id);
        }
        Ok(())
    }

    /// Encodes a reply onto the connection that the call came on. Without the connection, nobody waits any more.
    pub(crate) fn lane_reply(
        &self,
        id: LaneId,
        call: CallId,
        status: Status,
        write: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
    ) {
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
    pub(crate) fn node_reply(
        &self,
        to: NodeId,
        call: CallId,
        status: Status,
        write: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
    ) {
        // Without a way to the node, the caller's deadline tells it.
        if let Some(id) = self.dialled(to).ok().or_else(|| self.lanes.borrow().departed.get(&to).copied()) {
            self.lane_reply(id, call, status, write);
        }
    }

    /// Whether there is a connection to `to`: those to the dead are dropped as soon as they are known to be.
    pub(super) fn has_lane(&self, to: NodeId) -> bool {
        self.lanes.borrow().dialled.contains_key(&to)
    }

    /// Tells `to` that one-way messages for the actor of this hash had better go to `host`.
    pub(super) fn lane_hint(&self, to: NodeId, hash: u64, host: NodeId) {
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

    /// Sends the state of an activation to `to`; false if there is no way or no room.
    pub(super) fn lane_carry(&self, to: NodeId, id: &ActorId, from: Placed, state: &[u8]) -> bool {
        let Ok(lane_id) = self.dialled(to) else { return false };
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let Some(lane) = lanes.lane(lane_id).filter(|lane| lane.out.len() <= OUT_LEN_MAX) else { return false };
        let written = encoder.control(&mut lane.out, CARRIES, |out| {
            Carried::write(id, from, state, out);
            Ok::<(), EncodeError>(())
        });
        if let Err(error) = &written {
            tracing::warn!(actor = %id, %error, "a state could not be sent");
        }
        self.flush_soon(lanes, lane_id);
        written.is_ok()
    }

    /// Remembers that `origin` waits for a call that went on to `to`. Its reply will not come by here, so what is remembered
    /// is only bounded; who has had its reply ignores being told.
    pub(super) fn remember_forwarded(&self, to: NodeId, origin: NodeId, call: CallId) {
        let mut lanes = self.lanes.borrow_mut();
        let id = lanes.dialled.get(&to).copied();
        if let Some(lane) = id.and_then(|id| lanes.lane(id)) {
            if lane.forwarded.len() == FORWARDED_MAX {
                lane.forwarded.pop_front();
            }
            lane.forwarded.push_back((origin, call));
        }
    }

    /// This shard's connection to `to`.
    pub(super) fn dialled(&self, to: NodeId) -> Result<LaneId, Refusal> {
        let known = self.lanes.borrow().dialled.get(&to).copied();
        match known {
            Some(id) => Ok(id),
            None if self.has_departed(to) => Err(Refusal::Moved),
            None => self.dial(to),
        }
    }

    /// Drives the connections that have something to do. Whether anything came.
    pub(super) fn poll_lanes(&self) -> bool {
        let raised = {
            let lanes = self.lanes.borrow();
            let mut list = lanes.raised.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *list)
        };
        let mut came = false;
        for index in raised {
            let polled = {
                let mut lanes = self.lanes.borrow_mut();
                lanes.at(index).map(|(id, lane)| {
                    lane.flag.raised.store(false, Ordering::Release);
                    (id, lane.flag.clone())
                })
            };
            if let Some((id, flag)) = polled {
                let waker = Waker::from(flag);
                came |= self.poll_lane(id, &mut Context::from_waker(&waker));
            }
        }
        came
    }

    fn poll_lane(&self, id: LaneId, context: &mut Context<'_>) -> bool {
        match self.poll_dial(id, context) {
            Poll::Pending => return false,
            Poll::Ready(Err((sent, reason))) => {
                self.close_lane(id, sent, &reason);
                return true;
            }
            Poll::Ready(Ok(())) => {}
        }
        let mut came = false;
        for _ in 0..READS_A_VISIT {
            match self.read_lane(id, context) {
                Poll::Pending => break,
                Poll::Ready(Ok(())) => came = true,
                Poll::Ready(Err(reason)) => {
                    self.close_lane(id, true, &reason);
                    return true;
                }
            }
        }
        if came {
            // There may be more behind it: look again when the others have had their go.
            context.waker().wake_by_ref();
        }
        self.flush_lane(id, context);
        came
    }

    fn read_lane(&self, id: LaneId, context: &mut Context<'_>) -> Poll<Result<(), String>> {
        {
            let mut lanes = self.lanes.borrow_mut();
            let Some(lane) = lanes.lane(id) else { return Poll::Pending };
            let Link::Open(stream) = &mut lane.link else { return Poll::Pending };
            if lane.out.len() > OUT_HIGH_LEN && !lane.dialled && lane.flow.receiving.is_none() {
                // Who does not read its replies, and keeps no count, is not read either: the next write that goes through
                // looks again.
                return Poll::Pending;
            }
            lane.input.reserve(READ_LEN);
            let mut buffer = ReadBuf::uninit(lane.input.spare_capacity_mut());
            match Pin::new(stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.to_string())),
                Poll::Ready(Ok(())) => {}
            }
            let read = buffer.filled().len();
            if read == 0 {
                return Poll::Ready(Err("it was closed by the peer".to_owned()));
            }
            // SAFETY: the stream has filled `read` bytes of the spare capacity.
            unsafe { lane.input.set_len(lane.input.len() + read) };
            lane.heard = self.now();
        }
        Poll::Ready(self.receive(id))
    }

    /// Lets what was put onto a connection leave: now if it is much, else at the end of the round.
    fn flush_soon(&self, mut lanes: RefMut<'_, Lanes>, id: LaneId) {
        lanes.mark_unflushed(id.index);
        let Some(lane) = lanes.lane(id).filter(|lane| lane.out.len() >= lane.flush_len) else { return };
        // If the peer takes nothing now, it is not asked for each message.
        lane.flush_len = lane.out.len() + FLUSH_LEN;
        let waker = Waker::from(lane.flag.clone());
        drop(lanes);
        self.flush_lane(id, &mut Context::from_waker(&waker));
    }

    /// Writes out what the round has gathered.
    pub(super) fn flush_lanes(&self) {
        let unflushed = std::mem::take(&mut self.lanes.borrow_mut().unflushed);
        for index in unflushed {
            let found = {
                let mut lanes = self.lanes.borrow_mut();
                lanes.at(index).map(|(id, lane)| {
                    lane.unflushed = false;
                    (id, lane.flag.clone())
                })
            };
            if let Some((id, flag)) = found {
                let waker = Waker::from(flag);
                self.flush_lane(id, &mut Context::from_waker(&waker));
            }
        }
    }

    fn flush_lane(&self, id: LaneId, context: &mut Context<'_>) {
        if self.lanes.borrow_mut().lane(id).is_none_or(|lane| lane.out.is_empty()) {
            return;
        }
        // What turns have gathered must not act on others once those may have replaced them.
        if !self.port.node.may_send() {
            return self.close_lane(id, true, "this node's lease has run out");
        }
        let failed = {
            let mut lanes = self.lanes.borrow_mut();
            let encoder = lanes.encoder;
            let Some(lane) = lanes.lane(id) else { return };
            let Link::Open(stream) = &mut lane.link else { return };
            loop {
                if lane.out.is_empty() {
                    if let Some(credit) = lane.flow.due(self.now()) {
                        // It was kept from a peer that did not take its replies.
                        encoder.credit(&mut lane.out, credit);
                        continue;
                    }
                    lane.flush_len = FLUSH_LEN;
                    if lane.out.capacity() > KEEP_LEN_MAX {
                        lane.out = BytesMut::new();
                    }
                    break None;
                }
                match Pin::new(&mut *stream).poll_write(context, &lane.out) {
                    Poll::Pending => break None,
                    Poll::Ready(Ok(0)) => break Some("it takes no more".to_owned()),
                    Poll::Ready(Ok(written)) if written == lane.out.len() => lane.out.clear(),
                    Poll::Ready(Ok(written)) => lane.out.advance(written),
                    Poll::Ready(Err(error)) => break Some(error.to_string()),
                }
            }
        };
        if let Some(reason) = failed {
            self.close_lane(id, true, &reason);
        }
    }

    /// Pings the quiet and closes the silent; says when to look again.
    pub(super) fn look_after_lanes(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.lanes.borrow().next_look;
        if let Some(due) = due.filter(|due| *due > now) {
            return Some(due);
        }
        let mut silent = Vec::new();
        let mut lanes = self.lanes.borrow_mut();
        let encoder = lanes.encoder;
        let mut pinged = Vec::new();
        for index in 0..lanes.slots.len() as u32 {
            let Some((id, lane)) = lanes.at(index) else { continue };
            if now.since(lane.heard) >= SILENCE_MAX {
                silent.push((id, matches!(lane.link, Link::Open(_))));
            } else if now.since(lane.heard.max(lane.pinged)) >= QUIET && matches!(lane.link, Link::Open(_)) {
                lane.pinged = now;
                encoder.ping(&mut lane.out, now.as_nanos());
                pinged.push(index);
            }
        }
        for index in pinged {
            lanes.mark_unflushed(index);
        }
        lanes.next_look = (lanes.len() > 0).then(|| now + QUIET);
        let next = lanes.next_look;
        drop(lanes);
        for (id, open) in silent {
            self.close_lane(id, open, "it has been silent for too long");
        }
        next
    }
}

fn put_failure(encoder: &Encoder, out: &mut BytesMut, call: CallId, failure: &Failure) {
    let (status, payload) = encode_failure(failure);
    // A failure is far below any frame limit.
    let _ = encoder.reply(out, call, status, |out| {
        out.extend_from_slice(&payload);
        Ok::<(), EncodeError>(())
    });
}

/// Bytes that may wait on one connection before callers are refused.
const OUT_LEN_MAX: usize = 16 << 20;
/// Bytes that may wait on one connection before further replies are cut to the word that they were too much.
const REPLIES_LEN_MAX: usize = 32 << 20;
/// Replies that may wait on one connection before its peer gets no more credit, or is not read if it keeps no count.
const OUT_HIGH_LEN: usize = 4 << 20;
/// The channel of control frames on shards' connections that say where one-way messages went: the actor's hash and the
/// node, 8 bytes each, little-endian.
const HINTS: u8 = 2;
/// The channel of control frames on shards' connections that carry the states of actors that move.
const CARRIES: u8 = 4;
/// Forwarded calls that a connection remembers.
const FORWARDED_MAX: usize = 1024;
/// Bytes on one connection that leave before the round ends.
const FLUSH_LEN: usize = 32 << 10;
/// A batch buffer that has grown over this is given back once it is empty.
const KEEP_LEN_MAX: usize = 1 << 20;
/// Bytes asked for in one read.
const READ_LEN: usize = 64 << 10;
/// Reads from one connection before others have their go.
const READS_A_VISIT: usize = 2;
/// Silence after which a connection is pinged.
const QUIET: Duration = Duration::from_secs(5);
/// Silence after which a connection is closed.
const SILENCE_MAX: Duration = Duration::from_secs(15);
