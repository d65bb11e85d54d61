//! Streams that are made here: named, asked for, under way, and given up.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use greenroom_wire::codec::Codec;
use greenroom_wire::{CallId, EncodeError, Encoder, Status, StreamCredit};
use greenroom_world::Timestamp;

use crate::actor::error::{Doubt, Failure};
use crate::actor::reply::encode_failure;
use crate::shard::calls::CallSlot;
use crate::shard::{Item, LaneId, Shard, ShardId};
use crate::stream::flow::{Flow, SharedFlow};
use crate::stream::handle::Handle;
use crate::stream::inlet::Claim;
use crate::stream::pump::AnyFeed;

/// A stream that has a name.
pub(super) struct Outgoing {
    token: u64,
    state: State,
}

enum State {
    /// Nobody has asked for it yet.
    Waiting(Box<dyn AnyFeed>),
    UnderWay(SharedFlow),
}

/// When streams that nobody asks for are dropped.
#[derive(Default)]
pub(super) struct Unclaimed(VecDeque<(Timestamp, CallSlot)>);

impl Shard {
    /// Gives a stream a name.
    pub(crate) fn offer_stream(&self, feed: Box<dyn AnyFeed>) -> Result<Handle, &'static str> {
        let token = self.port().node.world().random();
        let state = State::Waiting(feed);
        let slot = self.streams.outgoing.borrow_mut().insert(Outgoing { token, state });
        let slot = slot.ok_or("this shard has as many streams as it may; end some of them")?;
        self.streams.unclaimed.borrow_mut().0.push_back((self.now() + CLAIM_TIME, slot));
        let stream = CallId { shard: self.index(), index: slot.index, generation: slot.generation };
        Ok(Handle { node: self.port().node.me(), stream, token })
    }

    /// Drops the streams that nobody has asked for in time; says when to look again.
    pub(in crate::shard) fn sweep_streams(&self, now: Timestamp) -> Option<Timestamp> {
        loop {
            let (due, slot) = *self.streams.unclaimed.borrow().0.front()?;
            if due > now {
                return Some(due);
            }
            self.streams.unclaimed.borrow_mut().0.pop_front();
            let mut outgoing = self.streams.outgoing.borrow_mut();
            let waits = matches!(outgoing.find(slot), Some(Outgoing { state: State::Waiting(_), .. }));
            let dropped = if waits { outgoing.remove(slot) } else { None };
            // The stream is a user's: it is dropped when no borrow is held.
            drop(outgoing);
            drop(dropped);
        }
    }

    /// What a consumer says, on a connection of any shard of this node.
    pub(in crate::shard) fn take_stream_credit(&self, lane: LaneId, credit: StreamCredit) {
        let from = (self.id(), lane);
        if credit.stream.shard == self.index() {
            return self.credit_stream(from, credit);
        }
        match self.port().node.shards().get(usize::from(credit.stream.shard)) {
            Some(port) => self.post(port.id, Item::Run(Box::new(move |shard| shard.credit_stream(from, credit)))),
            None => self.no_such_stream(from, credit.consumer),
        }
    }

    fn credit_stream(&self, from: (ShardId, LaneId), credit: StreamCredit) {
        let slot = CallSlot { index: credit.stream.index, generation: credit.stream.generation };
        let mut outgoing = self.streams.outgoing.borrow_mut();
        let found = outgoing.find(slot).filter(|found| found.token == credit.token);
        match found {
            None if credit.window == 0 => {}
            None => {
                drop(outgoing);
                self.no_such_stream(from, credit.consumer);
            }
            Some(Outgoing { state: State::UnderWay(flow), .. }) => {
                let flow = flow.clone();
                drop(outgoing);
                // It has one consumer: whom else the name has reached is not told of it.
                if (flow.lane, flow.consumer) != (from, credit.consumer) {
                    self.no_such_stream(from, credit.consumer);
                } else if credit.window == 0 {
                    flow.close();
                } else {
                    flow.consumed(credit.consumed);
                }
            }
            Some(_) if credit.window == 0 => {
                let dropped = outgoing.remove(slot);
                drop(outgoing);
                drop(dropped);
            }
            Some(waiting) => {
                let flow = Flow::new(slot, from, credit.consumer, credit.window);
                let before = std::mem::replace(&mut waiting.state, State::UnderWay(flow.clone()));
                drop(outgoing);
                let codec = if credit.codec == Codec::Json.tag() { Codec::Json } else { Codec::MessagePack };
                if let State::Waiting(feed) = before {
                    let producer = feed.producer().cloned();
                    self.begin_beside(producer.as_ref(), feed.into_flow(flow, codec));
                }
            }
        }
    }

    /// Gives a named stream of this shard to a consumer of this process.
    pub(super) fn claim_stream(&self, inlet: Claim) {
        let slot = CallSlot { index: inlet.handle.stream.index, generation: inlet.handle.stream.generation };
        let mut outgoing = self.streams.outgoing.borrow_mut();
        let waits = matches!(outgoing.find(slot), Some(Outgoing { token, state: State::Waiting(_) })
            if *token == inlet.handle.token);
        let claimed = if waits { outgoing.remove(slot) } else { None };
        drop(outgoing);
        match claimed {
            Some(Outgoing { state: State::Waiting(feed), .. }) => {
                let producer = feed.producer().cloned();
                let codec = inlet.codec;
                self.begin_beside(producer.as_ref(), feed.into_inlet(inlet, codec));
            }
            _ => inlet.pipe.finish(Err(gone())),
        }
    }

    /// Drops a named stream of this shard that nobody will ask for.
    pub(super) fn drop_stream(&self, handle: Handle) {
        let slot = CallSlot { index: handle.stream.index, generation: handle.stream.generation };
        let mut outgoing = self.streams.outgoing.borrow_mut();
        let waits = matches!(outgoing.find(slot), Some(Outgoing { token, state: State::Waiting(_) })
            if *token == handle.token);
        let dropped = if waits { outgoing.remove(slot) } else { None };
        drop(outgoing);
        drop(dropped);
    }

    /// Tells a consumer that what it asks for is not there.
    fn no_such_stream(&self, lane: (ShardId, LaneId), consumer: CallId) {
        let (status, payload) = encode_failure(&gone());
        self.send_end(lane, consumer, status, &payload);
    }

    fn send_end(&self, lane: (ShardId, LaneId), consumer: CallId, status: Status, payload: &[u8]) {
        let mut out = BytesMut::new();
        // A failure is far below any frame limit.
        let _ = Encoder::default().stream_end(&mut out, consumer, 0, status, |out| {
            out.extend_from_slice(payload);
            Ok::<(), EncodeError>(())
        });
        self.send_frames(lane, &mut out);
    }

    /// Puts whole frames onto a connection of any shard of this node, and empties `frames`.
    pub(crate) fn send_frames(&self, (owner, lane): (ShardId, LaneId), frames: &mut BytesMut) {
        if owner == self.id() {
            self.lane_frames(lane, frames);
            frames.clear();
        } else {
            let frames = frames.split().freeze();
            self.post(owner, Item::Run(Box::new(move |shard| shard.lane_frames(lane, &frames))));
        }
    }

    /// A stream under way has come to its end.
    pub(crate) fn forget_flow(&self, slot: CallSlot) {
        let forgotten = self.streams.outgoing.borrow_mut().remove(slot);
        drop(forgotten);
    }

    /// Ends the streams that are under way on a connection which has closed.
    pub(in crate::shard) fn end_flows(&self, lane: (ShardId, LaneId)) {
        let flows: Vec<SharedFlow> = {
            let mut outgoing = self.streams.outgoing.borrow_mut();
            let on_it = |stream: &Outgoing| matches!(&stream.state, State::UnderWay(flow) if flow.lane == lane);
            let names = outgoing.names(on_it);
            let flow = |name| match outgoing.find(name) {
                Some(Outgoing { state: State::UnderWay(flow), .. }) => Some(flow.clone()),
                _ => None,
            };
            names.into_iter().filter_map(flow).collect()
        };
        for flow in flows {
            flow.close();
        }
    }
}

/// What who asks for a stream that is not there is told.
fn gone() -> Failure {
    Doubt::Dropped.into()
}

/// Time in which a stream that was encoded must be asked for.
const CLAIM_TIME: Duration = Duration::from_secs(30);
