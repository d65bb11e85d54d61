//! Brings the items of a feed to an outlet, as far as that has room. Runs on a shard, beside turns.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use greenroom_wire::EncodeError;
use greenroom_wire::codec::{self, Codec};
use greenroom_world::LocalFuture;

use super::feed::Feed;
use super::flow::{FlowOutlet, SharedFlow};
use super::inlet::Claim;
use super::pipe::{Closed, Pipe};
use crate::actor::error::{Doubt, Failure};
use crate::actor::interface::Portable;
use crate::actor::key::ActorId;
use crate::actor::reply::{TYPE_VERSION, unencodable};
use crate::shard::Shard;
#[cfg(feature = "rehearsal")]
use crate::shard::rehearsal::is_staged;

/// Where items go.
pub(crate) trait Outlet<T> {
    /// Whether there is room for another. The task is woken when there is, and when the consumer goes.
    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>>;

    /// Takes an item, for which there was room.
    fn put(&mut self, item: T) -> Result<(), Failure>;

    /// Lets what was put in be seen.
    fn flush(&mut self) {}

    /// Ends the stream for its consumer.
    fn finish(&mut self, end: Result<(), Failure>);
}

/// The way of a stream's items from a feed to an outlet.
pub(crate) struct Pump<T, O: Outlet<T>> {
    feed: Feed<T>,
    outlet: O,
    over: bool,
}

// Its parts are boxed where they must stay in place.
impl<T, O: Outlet<T>> Unpin for Pump<T, O> {}

impl<T, O: Outlet<T>> Pump<T, O> {
    pub(crate) fn new(feed: Feed<T>, outlet: O) -> Self {
        Self { feed, outlet, over: false }
    }

    /// Moves what can be moved. The stream's end, once it has come; `None` within if the consumer has gone.
    fn run(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(), Failure>>> {
        if let Poll::Ready(failure) = self.feed.poll_broken(context) {
            return Poll::Ready(Some(Err(failure)));
        }
        if fenced() {
            return Poll::Ready(Some(Err(Doubt::Fenced.into())));
        }
        for _ in 0..items_a_poll() {
            // Room first: nothing is made that nobody has room for.
            match self.outlet.poll_room(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Closed)) => return Poll::Ready(None),
                Poll::Ready(Ok(())) => {}
            }
            let items = self.feed.items.as_mut();
            let polled = catch_unwind(AssertUnwindSafe(|| items.poll_next(context)));
            let end = match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Some(Ok(item)))) => match self.outlet.put(item) {
                    Ok(()) => continue,
                    Err(failure) => Err(failure),
                },
                Ok(Poll::Ready(Some(Err(failure)))) => Err(failure),
                Ok(Poll::Ready(None)) => Ok(()),
                Err(panic) => Err(self.panicked(&*panic)),
            };
            return Poll::Ready(Some(end));
        }
        // Others have their go.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        let message = crate::shard::panic_message(panic);
        let actor = self.feed.tie.as_ref().map(|tie| tie.actor().to_string()).unwrap_or_default();
        tracing::error!(%actor, message, "a stream panicked; it ends there");
        Doubt::Panicked { message }.into()
    }
}

impl<T, O: Outlet<T>> Future for Pump<T, O> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.run(context) {
            Poll::Pending => {
                self.outlet.flush();
                return Poll::Pending;
            }
            Poll::Ready(Some(end)) => self.outlet.finish(end),
            Poll::Ready(None) => {}
        }
        self.over = true;
        Poll::Ready(())
    }
}

impl<T, O: Outlet<T>> Drop for Pump<T, O> {
    fn drop(&mut self) {
        if !self.over {
            self.outlet.finish(Err(Doubt::Dropped.into()));
        }
    }
}

/// Items that one poll moves before others have their go.
fn items_a_poll() -> usize {
    #[cfg(feature = "rehearsal")]
    if is_staged() {
        return 1;
    }
    ITEMS_A_POLL
}

/// Whether the node of this shard may not act on others any more.
fn fenced() -> bool {
    Shard::with(|shard| shard.is_some_and(|shard| !shard.fence_open()))
}

/// To a consumer of this process, as they are.
pub(crate) struct PipeOutlet<T> {
    pub(crate) pipe: Arc<Pipe<T>>,
    /// An item's size, if that can be told.
    pub(crate) size: Option<fn(&T) -> usize>,
}

impl<T> Outlet<T> for PipeOutlet<T> {
    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.pipe.poll_room(context)
    }

    fn put(&mut self, item: T) -> Result<(), Failure> {
        let size = self.size.map_or(0, |size| size(&item));
        self.pipe.put(item, size);
        Ok(())
    }

    fn finish(&mut self, end: Result<(), Failure>) {
        self.pipe.finish(end);
    }
}

/// To a consumer of this process that wants bytes.
struct InletOutlet {
    inlet: Claim,
    codec: Codec,
}

/// An item that can be written.
pub(crate) trait Item: Send + 'static {
    /// Appends it, as a payload.
    fn write(&self, codec: Codec, out: &mut BytesMut) -> Result<(), EncodeError>;
}

impl<T: Portable> Item for T {
    fn write(&self, codec: Codec, out: &mut BytesMut) -> Result<(), EncodeError> {
        codec::encode(codec, TYPE_VERSION, self, out)
    }
}

/// An item that has come as a payload.
pub(crate) struct Encoded(pub(crate) Bytes);

impl Item for Encoded {
    fn write(&self, codec: Codec, out: &mut BytesMut) -> Result<(), EncodeError> {
        codec::rewrite(&self.0, codec, out)
            .map_err(|error| EncodeError::Value { codec: codec.name(), what: error.to_string().into() })
    }
}

impl<T: Item> Outlet<T> for InletOutlet {
    fn poll_room(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        self.inlet.pipe.poll_room(context)
    }

    fn put(&mut self, item: T) -> Result<(), Failure> {
        let mut out = BytesMut::new();
        item.write(self.codec, &mut out).map_err(|error| unencodable(&error))?;
        let size = out.len();
        self.inlet.pipe.put(out.freeze(), size);
        Ok(())
    }

    fn finish(&mut self, end: Result<(), Failure>) {
        self.inlet.pipe.finish(end);
    }
}

/// A stream that has been given a name and waits for its consumer, its type apart.
pub(crate) trait AnyFeed {
    /// Whom it comes from.
    fn producer(&self) -> Option<&ActorId>;

    /// What brings its items onto a connection.
    fn into_flow(self: Box<Self>, flow: SharedFlow, codec: Codec) -> LocalFuture;

    /// What brings its items to a consumer of this process that wants bytes.
    fn into_inlet(self: Box<Self>, inlet: Claim, codec: Codec) -> LocalFuture;
}

impl<T: Item> AnyFeed for Feed<T> {
    fn producer(&self) -> Option<&ActorId> {
        self.tie.as_ref().map(|tie| tie.actor())
    }

    fn into_flow(self: Box<Self>, flow: SharedFlow, codec: Codec) -> LocalFuture {
        Box::pin(Pump::new(*self, FlowOutlet::new(flow, codec)))
    }

    fn into_inlet(self: Box<Self>, inlet: Claim, codec: Codec) -> LocalFuture {
        Box::pin(Pump::new(*self, InletOutlet { inlet, codec }))
    }
}

/// The same where nobody chooses who has a go.
const ITEMS_A_POLL: usize = 64;
