//! A bounded queue between the shard that polls a stream and whoever consumes it, in one process.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use greenroom_protocols::reply_stream::BYTES_MAX;

use super::WINDOW;
use super::backlog::Held;
use crate::actor::error::Failure;

/// A queue of items, its end, and who waits at its two ends.
pub(crate) struct Pipe<T>(Mutex<State<T>>);

struct State<T> {
    /// Items with their sizes in bytes, where those are known.
    queue: VecDeque<(T, usize)>,
    bytes: usize,
    /// Where that is counted with what waits elsewhere.
    held: Option<Held>,
    end: Option<Result<(), Failure>>,
    /// Whether the reader has gone.
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Whether the writer waits for room, and not for its own items only.
    full: bool,
}

/// The reader has gone: nobody wants the rest.
pub(crate) struct Closed;

/// What a reader finds.
pub(crate) enum Taken<T> {
    /// An item, and its size.
    Item(T, usize),
    /// The end; it is given once.
    End(Result<(), Failure>),
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<T> Pipe<T> {
    /// A queue whose bytes are counted as `held`.
    pub(crate) fn new(held: Option<Held>) -> Self {
        Self(Mutex::new(State {
            queue: VecDeque::new(),
            bytes: 0,
            held,
            end: None,
            closed: false,
            reader: None,
            writer: None,
            full: false,
        }))
    }

    /// Whether there is room for another item. The writer is woken when there is, and when the reader goes.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        let mut state = self.lock();
        if state.closed {
            return Poll::Ready(Err(Closed));
        }
        note(&mut state.writer, context);
        state.full = !state.has_room();
        if state.full { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Puts an item of `size` bytes in.
    pub(crate) fn put(&self, item: T, size: usize) {
        let reader = {
            let mut state = self.lock();
            if state.closed || state.end.is_some() {
                return;
            }
            let bytes = state.bytes + size;
            state.weigh(bytes);
            state.queue.push_back((item, size));
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Ends it behind what is in it. Only the first end counts.
    pub(crate) fn finish(&self, end: Result<(), Failure>) {
        let reader = {
            let mut state = self.lock();
            state.end.get_or_insert(end);
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The next item, or the end.
    pub(crate) fn poll_take(&self, context: &Context<'_>) -> Poll<Taken<T>> {
        let mut state = self.lock();
        let Some((item, size)) = state.queue.pop_front() else {
            if let Some(end) = &state.end {
                return Poll::Ready(Taken::End(end.clone()));
            }
            note(&mut state.reader, context);
            return Poll::Pending;
        };
        let left = state.bytes - size;
        state.weigh(left);
        // The writer fills half a queue at a time: it is not woken for each item.
        let wake = state.full && state.queue.len() <= WINDOW as usize / 2 && state.has_room();
        let writer = if wake { state.writer.take() } else { None };
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Taken::Item(item, size))
    }

    /// The reader goes: what is in it is dropped, and the writer told.
    pub(crate) fn close(&self) {
        let (queue, writer) = {
            let mut state = self.lock();
            state.closed = true;
            state.weigh(0);
            (std::mem::take(&mut state.queue), state.writer.take())
        };
        drop(queue);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn weigh(&mut self, bytes: usize) {
        self.bytes = bytes;
        if let Some(held) = &mut self.held {
            held.set(bytes);
        }
    }

    fn has_room(&self) -> bool {
        self.queue.len() < WINDOW as usize && self.bytes < BYTES_MAX
    }
}

fn note(place: &mut Option<Waker>, context: &Context<'_>) {
    if place.as_ref().is_none_or(|known| !known.will_wake(context.waker())) {
        *place = Some(context.waker().clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn it_holds_a_window_and_no_more() {
        let pipe = Pipe::default();
        while let Poll::Ready(Ok(())) = pipe.poll_room(&context()) {
            pipe.put(1, 0);
        }
        assert_eq!(pipe.lock().queue.len(), WINDOW as usize);
    }

    #[test]
    fn it_holds_fewer_items_if_they_are_large() {
        let pipe = Pipe::default();
        pipe.put(1, BYTES_MAX);
        assert!(pipe.poll_room(&context()).is_pending());
        assert!(matches!(pipe.poll_take(&context()), Poll::Ready(Taken::Item(1, BYTES_MAX))));
        assert!(matches!(pipe.poll_room(&context()), Poll::Ready(Ok(()))));
    }

    #[test]
    fn the_end_comes_behind_the_items_and_nothing_comes_behind_it() {
        let pipe = Pipe::default();
        pipe.put(1, 0);
        pipe.finish(Ok(()));
        pipe.put(2, 0);
        assert!(matches!(pipe.poll_take(&context()), Poll::Ready(Taken::Item(1, 0))));
        assert!(matches!(pipe.poll_take(&context()), Poll::Ready(Taken::End(Ok(())))));
    }

    #[test]
    fn a_writer_whose_reader_has_gone_is_told() {
        let pipe = Pipe::default();
        pipe.put(1, 0);
        pipe.close();
        assert!(matches!(pipe.poll_room(&context()), Poll::Ready(Err(Closed))));
    }
}
