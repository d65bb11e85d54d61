//! A shard's connections to other nodes.
//!
//! Each shard dials its own connection to each node that it calls, and answers on the connection that a call came on: so
//! a call and its reply cross no thread that they need not. Frames are encoded straight into the connection's batch,
//! which leaves when the round ends. Cluster protocols have connections of their own, so user traffic delays none of them.

use std::cell::RefMut;
use std::pin::Pin;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use greenroom_protocols::node::NodeId;
use greenroom_wire::CallId;
use greenroom_world::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Shard;
use crate::actor::error::Refusal;

mod cancel;
mod closing;
mod dial;
mod early;
mod farewell;
mod flow;
mod receive;
mod send;
mod shares;
mod streams;
mod table;

pub(crate) use self::dial::Greeted;
use self::farewell::Farewell;
pub(crate) use self::flow::Flow;
pub(crate) use self::send::{CARRIES, LETTERS};
pub(crate) use self::table::LaneId;
pub(super) use self::table::Lanes;
use self::table::{Lane, Link};

impl Shard {
    /// Remembers whom connections wake.
    pub(super) fn set_lane_waker(&self, waker: &Waker) {
        let mut lanes = self.lanes.borrow_mut();
        if lanes.shard.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            lanes.shard = Some(waker.clone());
        }
    }

    /// Whether there is a connection to `to`: those to the dead are dropped as soon as they are known to be.
    pub(super) fn has_lane(&self, to: NodeId) -> bool {
        self.lanes.borrow().dialled.contains_key(&to)
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

    /// A round begins, in which the shard may find work after it had none.
    pub(super) fn lanes_begin_round(&self, was_idle: bool) {
        let mut lanes = self.lanes.borrow_mut();
        lanes.is_early = was_idle;
        lanes.found_work += u64::from(was_idle);
    }

    /// Lets what was put onto a connection leave: now if it is much or the first after a rest, else at the end of the round.
    fn flush_soon(&self, mut lanes: RefMut<'_, Lanes>, id: LaneId) {
        lanes.mark_unflushed(id.index);
        let early = lanes.is_early.then_some(lanes.found_work);
        let Some(lane) = lanes.lane(id) else { return };
        let is_early = early.is_some_and(|found| lane.early.frame(found));
        if !is_early && lane.out.len() < lane.flush_len {
            return;
        }
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

/// Replies that may wait on one connection before its peer gets no more credit, or is not read if it keeps no count.
const OUT_HIGH_LEN: usize = 4 << 20;
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
