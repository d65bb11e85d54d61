//! Streams that hosts produce.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use greenroom_protocols::reply_stream::BYTES_MAX;
use greenroom_wire::Status;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{FromNode, STREAMS_MAX};

use super::super::lane::Lane;
use super::super::on_shard::OnShard;
use super::super::turn::{tell, with};
use crate::actor::error::{Doubt, Failure};
use crate::actor::reply::{self, TYPE_VERSION};
use crate::shard::Shard;
use crate::stream::WINDOW;
use crate::stream::feed::Feed;
use crate::stream::handle::Written;
use crate::stream::pipe::{Pipe, Taken};
use crate::stream::pump::Encoded;

/// A stream of a seat.
pub(super) struct Produced {
    pub(super) seat: u64,
    actor: String,
    items: Arc<Pipe<Bytes>>,
    arrived: u64,
    taken: u64,
    /// Items that the host may have sent.
    until: u64,
    /// The largest item's size, once there is one.
    largest: Option<usize>,
}

impl Produced {
    /// Ends it for its consumer, and says that nothing of it is kept.
    pub(super) fn end(&mut self) -> bool {
        self.items.finish(Err(Doubt::Ended { actor: self.actor.clone() }.into()));
        false
    }

    /// Items that may be under way: fewer of them the larger they are.
    fn window(&self) -> u64 {
        let largest = self.largest.unwrap_or(BYTES_MAX / FIRST_ITEMS).max(1);
        (BYTES_MAX / largest).clamp(1, WINDOW as usize) as u64
    }

    /// The window that the host is to be told of, if it is: when half of it is free, so that it is not told of each item.
    fn credit(&mut self) -> Option<u64> {
        let (window, until) = (self.window(), self.taken + self.window());
        if until < self.until + window.div_ceil(2) {
            return None;
        }
        self.until = until;
        Some(window)
    }
}

impl Lane {
    /// The host says that a turn of `seat` has ended in a stream.
    pub(in super::super) fn produce(
        &mut self,
        shard: &Shard,
        seat: u64,
        number: u64,
        actor: String,
    ) -> Result<Begun, String> {
        let streams = &mut self.streams.produced;
        if streams.len() >= STREAMS_MAX {
            return Err(format!("it has {STREAMS_MAX} streams open on a lane, which is the most"));
        }
        let items = Arc::new(Pipe::new(Some(shard.port().node.backlog().hold(0))));
        let begun = Begun { number, items: items.clone() };
        let stream = Produced { seat, actor, items, arrived: 0, taken: 0, until: 0, largest: None };
        match streams.insert(number, stream) {
            Some(_) => Err(format!("stream {number} is open already")),
            None => Ok(begun),
        }
    }

    /// Tells the host that nobody wants a stream of it.
    pub(in super::super) fn give_up(&mut self, number: u64) {
        if self.streams.produced.remove(&number).is_some() {
            self.refuse_stream(number);
        }
    }

    /// Tells the host that nobody wants a stream that it has just begun.
    pub(in super::super) fn refuse_stream(&mut self, number: u64) {
        self.put(&FromNode::StreamCredit { stream: number, window: 0, consumed: 0 });
    }
}

impl OnShard {
    /// An item has come.
    pub(in super::super) fn produced_item(
        &self,
        session: u64,
        number: u64,
        item: u64,
        payload: &[u8],
        len: usize,
    ) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return Ok(()) };
        lane.receive(len)?;
        // One that nobody wants any more is on its way to be ended.
        let Some(stream) = lane.streams.produced.get_mut(&number) else { return Ok(()) };
        if item != stream.arrived {
            return Err(format!("item {item} of stream {number} came in the place of item {}", stream.arrived));
        }
        if item >= stream.until {
            return Err(format!("stream {number} has more items under way than its consumer has room for"));
        }
        stream.arrived += 1;
        stream.largest = stream.largest.max(Some(payload.len()));
        stream.items.put(Bytes::copy_from_slice(payload), payload.len());
        Ok(())
    }

    /// A stream has come to its end.
    pub(in super::super) fn produced_end(
        &self,
        session: u64,
        number: u64,
        items: u64,
        status: Status,
        payload: &[u8],
    ) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return Ok(()) };
        let Some(stream) = lane.streams.produced.remove(&number) else { return Ok(()) };
        if items != stream.arrived {
            return Err(format!("stream {number} ends after {items} items, and {} have come", stream.arrived));
        }
        stream.items.finish(match status {
            Status::Ok => Ok(()),
            _ if payload.is_empty() => Err(Doubt::Dropped.into()),
            _ => Err(reply::failure(payload)),
        });
        Ok(())
    }

    /// The consumer has taken an item, or begins to.
    fn credit(&self, session: u64, number: u64, taken: u64) {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return };
        let Some(stream) = lane.streams.produced.get_mut(&number) else { return };
        stream.taken += taken;
        let consumed = stream.taken;
        if let Some(window) = stream.credit() {
            lane.put(&FromNode::StreamCredit { stream: number, window: window as u32, consumed });
        }
    }

    fn give_up(&self, session: u64, number: u64) {
        if let Some(lane) = self.state.borrow_mut().lanes.get_mut(&session) {
            lane.give_up(number);
        }
    }
}

/// A stream that a turn has ended in.
pub(in super::super) struct Begun {
    pub(in super::super) number: u64,
    items: Arc<Pipe<Bytes>>,
}

/// The items of a host's stream; dropped, it gives the stream up.
pub(in super::super) struct Items {
    session: u64,
    number: u64,
    items: Arc<Pipe<Bytes>>,
    begun: bool,
    over: bool,
}

impl Items {
    pub(in super::super) fn of(session: u64, Begun { number, items }: Begun) -> Self {
        Self { session, number, items, begun: false, over: false }
    }

    /// Gives it a name, which is the reply of the current turn, in the codec of the turn's arguments.
    ///
    /// # Errors
    /// The shard has as many streams as it may.
    pub(in super::super) fn named(self, arguments: &[u8]) -> Result<Bytes, Failure> {
        let unnamed = |message: String| Failure::from(Doubt::Unreadable { message });
        let offered = with(move |shard, _| {
            let feed = Feed { tie: shard.tie_current(), home: None, items: Box::pin(self), weight: None };
            Some(shard.offer_stream(Box::new(feed)))
        });
        let handle = offered.ok_or(Doubt::Dropped)?.map_err(|message| unnamed(message.to_owned()))?;
        let codec = codec::parse(arguments).map_or(Codec::MessagePack, |arguments| arguments.codec);
        let mut name = BytesMut::new();
        let written = codec::encode(codec, TYPE_VERSION, &Written::from(&handle), &mut name);
        written.map_err(|error| unnamed(error.to_string()))?;
        Ok(name.freeze())
    }
}

impl Stream for Items {
    type Item = Result<Encoded, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let (session, number) = (self.session, self.number);
        let credit = |taken| tell(|_, part| part.credit(session, number, taken));
        if !std::mem::replace(&mut self.begun, true) {
            credit(0);
        }
        match ready!(self.items.poll_take(context)) {
            Taken::Item(payload, _) => {
                credit(1);
                Poll::Ready(Some(Ok(Encoded(payload))))
            }
            Taken::End(end) => {
                self.over = true;
                Poll::Ready(end.err().map(Err))
            }
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        self.items.close();
        if !self.over {
            tell(|_, part| part.give_up(self.session, self.number));
        }
    }
}

/// Items that a stream may begin with, before anybody knows how large they are.
const FIRST_ITEMS: usize = 16;
