//! A stream's way onto a connection to its consumer's node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use greenroom_protocols::reply_stream::{BYTES_MAX, Producer};
use greenroom_wire::codec::Codec;
use greenroom_wire::{CallId, EncodeError, Encoder, Status};

use super::pipe::Closed;
use super::pump::{Item, Outlet};
use crate::actor::error::Failure;
use crate::actor::reply::{encode_failure, unencodable};
use crate::shard::calls::CallSlot;
use crate::shard::{LaneId, Shard, ShardId};

/// What a stream's pump and the shard's table share.
pub(crate) type SharedFlow = Rc<Flow>;

/// A stream under way to another node.
pub(crate) struct Flow {
    /// Its place in the table of the shard that polls it.
    slot: CallSlot,
    /// The shard that has the connection, and the connection.
    pub(crate) lane: (ShardId, LaneId),
    /// Its name at the consumer's node.
    pub(crate) consumer: CallId,
    window: RefCell<Producer>,
    /// Whether the consumer has gone.
    closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Flow {
    pub(crate) fn new(slot: CallSlot, lane: (ShardId, LaneId), consumer: CallId, window: u32) -> SharedFlow {
        let window = RefCell::new(Producer::new(window, BYTES_MAX));
        Rc::new(Self { slot, lane, consumer, window, closed: Cell::new(false), waker: RefCell::default() })
    }

    /// The consumer has taken `total` items. A count that cannot be ends the stream.
    pub(crate) fn consumed(&self, total: u64) {
        let counted = self.window.borrow_mut().consumed(total);
        match counted {
            Ok(()) => self.wake(),
            Err(_) => self.close(),
        }
    }

    /// The consumer has gone, or the way to it.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.wake();
    }

    fn wake(&self) {
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Encodes items for the connection.
pub(super) struct FlowOutlet {
    flow: SharedFlow,
    codec: Codec,
    encoder: Encoder,
    /// Frames that the connection has not got yet.
    out: BytesMut,
}

impl FlowOutlet {
    pub(super) fn new(flow: SharedFlow, codec: Codec) -> Self {
        Self { flow, codec, encoder: Encoder::default(), out: BytesMut::new() }
    }

    fn send(&mut self) {
        if self.out.is_empty() {
            return;
        }
        Shard::with(|shard| match shard {
            Some(shard) => shard.send_frames(self.flow.lane, &mut self.out),
            // The node is being torn down, and its connections with it.
            None => self.out.clear(),
        });
    }
}

impl<T: Item> Outlet<T> for FlowOutlet {
    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        if self.flow.closed.get() {
            return Poll::Ready(Err(Closed));
        }
        let mut waker = self.flow.waker.borrow_mut();
        if waker.as_ref().is_none_or(|known| !known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        if self.flow.window.borrow().may_send() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn put(&mut self, item: T) -> Result<(), Failure> {
        let mut window = self.flow.window.borrow_mut();
        let mut size = 0;
        let encoded = self.encoder.stream_item(&mut self.out, self.flow.consumer, window.sent(), |out| {
            let start = out.len();
            item.write(self.codec, out)?;
            size = out.len() - start;
            Ok::<(), EncodeError>(())
        });
        encoded.map_err(|error| unencodable(&error))?;
        window.send(size);
        drop(window);
        if self.out.len() >= SEND_LEN {
            self.send();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.send();
    }

    fn finish(&mut self, end: Result<(), Failure>) {
        if self.flow.closed.get() {
            return;
        }
        let (status, payload) = match &end {
            Ok(()) => (Status::Ok, Default::default()),
            Err(failure) => encode_failure(failure),
        };
        let number = self.flow.window.borrow().sent();
        // A failure is far below any frame limit.
        let _ = self.encoder.stream_end(&mut self.out, self.flow.consumer, number, status, |out| {
            out.extend_from_slice(&payload);
            Ok::<(), EncodeError>(())
        });
        self.send();
    }
}

impl Drop for FlowOutlet {
    fn drop(&mut self) {
        self.flow.closed.set(true);
        let slot = self.flow.slot;
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.forget_flow(slot);
            }
        });
    }
}

/// Encoded items that are handed to the connection before the poll ends.
const SEND_LEN: usize = 32 << 10;
