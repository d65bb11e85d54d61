//! Streams that hosts consume.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use greenroom_protocols::reply_stream::{Reader, WINDOW_MAX};
use greenroom_wire::Status;
use greenroom_wire::host::{FromNode, STREAMS_MAX};

use super::super::on_shard::OnShard;
use super::super::turn::{tell, with};
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::shard::Shard;
use crate::stream::handle::Handle;
use crate::stream::inlet::Inlet;
use crate::stream::pipe::Taken;

/// A stream that goes to a host.
pub(super) struct Consumed {
    /// Items that the host has room for, since the beginning.
    until: u64,
    /// What brings the items.
    waker: Option<Waker>,
}

impl Consumed {
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl OnShard {
    /// Opens the stream called `name` under a number of the host's.
    ///
    /// # Errors
    /// There is no such name, or no room for another stream.
    pub(in super::super) fn open_stream(
        &self,
        shard: &Shard,
        session: u64,
        (name, number, window): (&str, u64, u32),
    ) -> Result<(), Refusal> {
        let invalid =
            |field: &str, message: &str| Refusal::Invalid { field: field.to_owned(), message: message.to_owned() };
        let handle: Handle = name.parse().map_err(|error| invalid("name", error))?;
        let codec = {
            let mut state = self.state.borrow_mut();
            let Some(lane) = state.lanes.get_mut(&session) else { return Ok(()) };
            let streams = &mut lane.streams.consumed;
            if streams.len() >= STREAMS_MAX {
                let queue = format!("the streams that host {:?} consumes", lane.session.name);
                return Err(Refusal::Overloaded { queue, bound: STREAMS_MAX as u64 });
            }
            if streams.contains_key(&number) {
                return Err(invalid("stream", "a stream is open under this number already"));
            }
            streams.insert(number, Consumed { until: window.min(WINDOW_MAX).into(), waker: None });
            lane.session.reads.first()
        };
        let inlet = Inlet::open(handle, codec, shard.port());
        let reader = inlet.reader();
        let relay = Relay { session, number, inlet, reader, sent: 0 };
        shard.begin_beside(None, Box::pin(relay));
        Ok(())
    }

    /// The host's word on its room. No window gives the stream up.
    pub(in super::super) fn consumed_credit(&self, session: u64, number: u64, window: u32, consumed: u64) {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return };
        let streams = &mut lane.streams.consumed;
        let Some(stream) = streams.get_mut(&number) else { return };
        stream.until = stream.until.max(consumed.saturating_add(window.min(WINDOW_MAX).into()));
        stream.wake();
        if window == 0 {
            streams.remove(&number);
        }
    }

    /// Whether the host has room for the item of this number; `false` if it wants no more.
    fn poll_room(&self, session: u64, number: u64, item: u64, waker: &Waker) -> Poll<bool> {
        let mut state = self.state.borrow_mut();
        let Some(stream) = state.lanes.get_mut(&session).and_then(|lane| lane.streams.consumed.get_mut(&number)) else {
            return Poll::Ready(false);
        };
        stream.waker = Some(waker.clone());
        if item < stream.until { Poll::Ready(true) } else { Poll::Pending }
    }

    /// Sends an item; `false` if it is too large for a frame.
    fn put_item(&self, session: u64, stream: u64, number: u64, payload: &[u8]) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return true };
        lane.put(&FromNode::StreamItem { stream, number, payload }) || !lane.is_open()
    }

    fn end_consumed(&self, session: u64, stream: u64, number: u64, end: Result<(), Failure>) {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return };
        let (status, payload) = match end {
            Ok(()) => (Status::Ok, Bytes::new()),
            Err(failure) => lane.session.reads.failure(&failure),
        };
        if lane.streams.consumed.remove(&stream).is_some() {
            lane.put(&FromNode::StreamEnd { stream, number, status, payload: &payload });
        }
    }
}

/// Brings the items of a stream to the host that has asked for it.
struct Relay {
    session: u64,
    number: u64,
    inlet: Arc<Inlet>,
    reader: Reader,
    sent: u64,
}

impl Future for Relay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { session, number, inlet, reader, sent } = self.get_mut();
        for _ in 0..ITEMS_A_POLL {
            let room = with(|_, part| Some(part.poll_room(*session, *number, *sent, context.waker())));
            match room.unwrap_or(Poll::Ready(false)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(false) => return Poll::Ready(()),
                Poll::Ready(true) => {}
            }
            let end = match inlet.pipe.poll_take(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Taken::End(end)) => end,
                Poll::Ready(Taken::Item(payload, size)) => {
                    if let Some(total) = reader.took(size) {
                        inlet.tell(total);
                    }
                    if with(|_, part| Some(part.put_item(*session, *number, *sent, &payload))) == Some(true) {
                        *sent += 1;
                        continue;
                    }
                    let message = "an item of the stream is too large for a host's frame".to_owned();
                    Err(Doubt::Unreadable { message }.into())
                }
            };
            tell(|_, part| part.end_consumed(*session, *number, *sent, end));
            return Poll::Ready(());
        }
        // Others have their go.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.inlet.close();
    }
}

/// Items that one poll moves before others of the shard have their go.
const ITEMS_A_POLL: usize = 64;
