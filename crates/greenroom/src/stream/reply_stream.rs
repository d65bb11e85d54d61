//! What the caller of a streaming method gets.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use greenroom_protocols::reply_stream::Reader;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::feed::{Feed, Weight};
use super::handle::{Handle, Written};
use super::inlet::Inlet;
use super::pipe::{Pipe, Taken};
use super::pump::{PipeOutlet, Pump};
use crate::actor::error::{CallError, Doubt, Failure, Refusal};
use crate::actor::interface::Portable;
use crate::here::port::Port;
#[cfg(feature = "rehearsal")]
use crate::shard::rehearsal::{NextStep, begin_on_stage, is_told};
use crate::shard::{Item, Shard};

/// A stream of replies: what a method that returns `impl Stream<Item = T>` gives to its caller.
///
/// Nothing runs before it is first polled. From then on its actor's shard makes items, as long as fewer than 64 of them, and
/// about 256 KiB where they are encoded, wait for the consumer: one that is slow holds the producer back.
///
/// It ends with `None` when the method's stream does. If it breaks off, its last item is an error: [`CallError::Unknown`] with
/// [`Doubt::Ended`] when the activation that it came from has ended or moved, with [`Doubt::Disconnected`] when the connection
/// to its node broke. Items are given in order, none is left out and none comes twice; ask for a stream again to go on behind a
/// break. While it is open, the activation that it comes from is not idle.
///
/// Dropping it cancels the stream, on whatever node it is made.
///
/// It travels: an actor may return the stream of another, or take one as an argument. One that was encoded waits for its
/// consumer for 30 s.
pub struct ReplyStream<T: Portable>(Mutex<State<T>>);

enum State<T> {
    /// Made here; nothing has been polled.
    Fresh(Feed<T>),
    /// From a shard of this process.
    Local(Arc<Pipe<T>>),
    /// From another node; nothing has been asked for.
    Named(Handle, Option<Arc<Port>>),
    /// Items come as bytes.
    Encoded(Arc<Inlet>, Reader),
    /// Made outside of all shards: polled in place.
    Direct(Feed<T>),
    Over,
}

// What must stay in place is boxed.
impl<T: Portable> Unpin for ReplyStream<T> {}

impl<T: Portable> ReplyStream<T> {
    /// The stream that a method of the current turn has made.
    #[doc(hidden)]
    pub fn of(items: impl Stream<Item = T> + Send + 'static) -> Self {
        let (tie, home) = Shard::with(|shard| match shard {
            Some(shard) => (shard.tie_current(), Some(shard.here())),
            None => (None, None),
        });
        Self::new(State::Fresh(Feed { tie, home, items: Box::pin(items.map(Ok)), weight: None }))
    }

    /// The same, of items whose sizes `of` tells: fewer of them wait for a consumer of this process the larger they are.
    pub(crate) fn weighed(items: impl Stream<Item = T> + Send + 'static, of: fn(&T) -> usize) -> Self {
        let mut stream = Self::of(items);
        let backlog = Shard::with(|shard| shard.map(|shard| shard.port().node.backlog().clone()));
        if let State::Fresh(feed) = stream.state() {
            feed.weight = backlog.map(|backlog| Weight { of, backlog });
        }
        stream
    }

    fn new(state: State<T>) -> Self {
        Self(Mutex::new(state))
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// Why the stream broke off; it is over then.
    ///
    /// # Cancel safety
    /// Safe: no item is lost.
    pub async fn next(&mut self) -> Option<Result<T, CallError>> {
        StreamExt::next(self).await
    }

    fn state(&mut self) -> &mut State<T> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, Failure>>> {
        let state = self.state();
        loop {
            let end = match state {
                State::Over => return Poll::Ready(None),
                State::Fresh(_) | State::Named(..) => {
                    *state = begin(std::mem::replace(state, State::Over))?;
                    continue;
                }
                State::Local(pipe) => match ready!(pipe.poll_take(context)) {
                    Taken::Item(item, _) => return Poll::Ready(Some(Ok(item))),
                    Taken::End(end) => end,
                },
                State::Encoded(inlet, reader) => match ready!(inlet.pipe.poll_take(context)) {
                    Taken::Item(payload, size) => {
                        if let Some(total) = reader.took(size) {
                            inlet.tell(total);
                        }
                        match codec::decode(&payload) {
                            Ok(item) => return Poll::Ready(Some(Ok(item))),
                            Err(error) => Err(Doubt::Unreadable { message: error.to_string() }.into()),
                        }
                    }
                    Taken::End(end) => end,
                },
                State::Direct(feed) => return feed.items.as_mut().poll_next(context),
            };
            // What is still open is told by being dropped.
            drop(Self::new(std::mem::replace(state, State::Over)));
            return Poll::Ready(end.err().map(Err));
        }
    }
}

/// Lets somebody make items.
fn begin<T: Portable>(state: State<T>) -> Result<State<T>, Failure> {
    match state {
        State::Fresh(Feed { home: Some(home), tie, items, weight }) => {
            let pipe = Arc::new(Pipe::new(weight.as_ref().map(|weight| weight.backlog.hold(0))));
            let outlet = PipeOutlet { pipe: pipe.clone(), size: weight.map(|weight| weight.of) };
            let producer = tie.as_ref().map(|tie| tie.actor().clone());
            // Dropped on the way, as the node stops, it ends the stream.
            let pump = Pump::new(Feed { tie, home: Some(home), items, weight: None }, outlet);
            #[cfg(feature = "rehearsal")]
            let pump = in_steps(pump);
            let run = move |shard: &Shard| shard.begin_beside(producer.as_ref(), Box::pin(pump));
            #[cfg(feature = "rehearsal")]
            let Some(run) = begin_on_stage(home.id, run) else { return Ok(State::Local(pipe)) };
            home.push(Item::Run(Box::new(run))).map_err(|_| Failure::from(Doubt::Dropped))?;
            Ok(State::Local(pipe))
        }
        State::Fresh(feed) => Ok(State::Direct(feed)),
        State::Named(handle, Some(port)) => {
            let inlet = Inlet::open(handle, Codec::MessagePack, &port);
            let reader = inlet.reader();
            Ok(State::Encoded(inlet, reader))
        }
        State::Named(_, None) => Err(Refusal::Unbound.into()),
        begun => Ok(begun),
    }
}

/// On a stage, nothing is made before another step.
#[cfg(feature = "rehearsal")]
async fn in_steps(pump: impl Future<Output = ()>) {
    NextStep::default().await;
    pump.await;
}

impl<T: Portable> Stream for ReplyStream<T> {
    type Item = Result<T, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.poll_item(context));
        Poll::Ready(item.map(|item| item.map_err(CallError::from)))
    }
}

impl<T: Portable> Drop for ReplyStream<T> {
    fn drop(&mut self) {
        match std::mem::replace(self.state(), State::Over) {
            State::Local(pipe) => pipe.close(),
            State::Encoded(inlet, _) => inlet.close(),
            // Nobody else can ask for it: the producer need not wait.
            State::Named(handle, Some(port)) => Inlet::give_up(handle, &port),
            State::Fresh(_) | State::Direct(_) | State::Named(_, None) | State::Over => {}
        }
    }
}

impl<T: Portable> fmt::Debug for ReplyStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyStream")
    }
}

impl<T: Portable> Serialize for ReplyStream<T> {
    /// Gives it a name by which it can be consumed from another node. It is spent here then.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[cfg(feature = "rehearsal")]
        if is_told() {
            return serializer.serialize_str("a stream");
        }
        let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Over);
        let feed = match state {
            State::Fresh(feed) | State::Direct(feed) => feed,
            // Another node's, and unopened: its name will do there, too.
            State::Named(handle, _) => return Written::from(&handle).serialize(serializer),
            begun => {
                let mut begun = Self::new(begun);
                let items = futures_util::stream::poll_fn(move |context| begun.poll_item(context));
                Feed { tie: None, home: None, items: Box::pin(items), weight: None }
            }
        };
        let offered = Shard::with(|shard| match shard {
            Some(shard) => shard.offer_stream(Box::new(feed)),
            None => Err("a stream can be sent by actors only"),
        });
        Written::from(&offered.map_err(serde::ser::Error::custom)?).serialize(serializer)
    }
}

impl<'de, T: Portable> Deserialize<'de> for ReplyStream<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let handle = Written::deserialize(deserializer)?.stream.parse().map_err(serde::de::Error::custom)?;
        let port = Shard::with(|shard| shard.map(|shard| shard.port().clone())).or_else(bound);
        Ok(Self::new(State::Named(handle, port)))
    }
}

thread_local! {
    static BOUND: std::cell::RefCell<Option<Arc<Port>>> = const { std::cell::RefCell::new(None) };
}

fn bound() -> Option<Arc<Port>> {
    BOUND.with_borrow(Clone::clone)
}

/// As long as it is there, what came to a caller outside of all shards is read, so that streams in it know their node.
pub(crate) struct Reading {
    before: Option<Arc<Port>>,
}

impl Reading {
    pub(crate) fn at(port: Option<Arc<Port>>) -> Self {
        Self { before: BOUND.replace(port) }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        BOUND.set(self.before.take());
    }
}
