//! Topics: events that are published to a name, and come to all who subscribe to it.
//!
//! A topic is an actor of a built-in kind (`actor.rs`), so it is placed, found and kept single like all others. It keeps a bounded
//! queue a subscriber (`queue.rs`, `hub.rs`) and hands out [reply streams](crate::ReplyStream); there is nothing else between
//! nodes. Subscriptions of actors are such streams, followed beside the actor's turns (`deliver.rs`), and so are those of whole
//! kinds (`kinds.rs`), beside the topic's.
//!
//! Events travel as JSON texts, encoded once when they are published: outside clients read them as they are.

pub(crate) mod actor;
mod deliver;
mod hub;
pub(crate) mod kinds;
mod queue;
pub(crate) mod shown;

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

pub use self::actor::Published;
use self::actor::TopicsRef;
pub(crate) use self::actor::{Parcel, Terms};
pub(crate) use self::deliver::Try;
pub use self::queue::{EventId, Slow};
use crate::actor::call::Call;
use crate::actor::cx::{Cx, Scope};
use crate::actor::error::{CallError, Doubt, Refusal};
use crate::actor::interface::Method;
use crate::actor::key::Key;
use crate::here::node::Node;
use crate::shard::Shard;
use crate::stream::reply_stream::ReplyStream;

/// A topic whose events are `E`s.
///
/// ```
/// use greenroom::prelude::*;
/// use greenroom::{Delivery, Topic};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = Node::builder().start().await?;
/// let prices = Topic::<f64>::of(&node, "prices/eu");
/// let mut watch = prices.watch().await?;
/// prices.publish(&1.5).await?;
/// assert!(matches!(watch.next().await, Some(Ok(Delivery::Event(1.5)))));
/// # node.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Topic<E> {
    name: Key,
    node: Node,
    terms: Terms,
    of: PhantomData<fn(E) -> E>,
}

/// What a subscriber gets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Delivery<E> {
    /// An event.
    Event(E),
    /// Events are missing here: so many, or `None` if it is not known how many, perhaps none, as the topic has moved.
    Missed(Option<u64>),
}

/// Why an event was not published.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The event has no form in JSON. Nobody got it.
    #[error("the event cannot be written as JSON: {message}")]
    Unwritable {
        /// What the serializer said.
        message: String,
    },
    /// The topic has refused it, or was not reached.
    #[error(transparent)]
    Call(#[from] CallError<String>),
}

impl<E> Topic<E> {
    /// The topic called `name`, as seen from `scope`: a node, or an actor's `cx`.
    pub fn of(scope: &impl Scope, name: impl Into<Key>) -> Self {
        let node = Node::at(scope.port().clone());
        Self { name: name.into(), node, terms: Terms::default(), of: PhantomData }
    }

    /// Subscribes with this policy for when the subscriber is slow, and a queue of `queue_len` events (at most 4096). Without it,
    /// [`Slow::Backpressure`] and 256.
    #[must_use]
    pub fn slow(mut self, slow: Slow, queue_len: u32) -> Self {
        (self.terms.slow, self.terms.queue_len) = (slow, queue_len);
        self
    }

    /// Subscribes behind the event `id`, as far as the topic still knows what came then.
    #[must_use]
    pub fn after(mut self, id: EventId) -> Self {
        self.terms.from = Some(id.following());
        self
    }

    /// The topic's name.
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// How many subscribe.
    ///
    /// # Errors
    /// [`CallError`]: the topic was not reached.
    pub fn subscribers(&self) -> impl Future<Output = Result<u64, CallError>> + Send + use<E> {
        self.topic().subscribers()
    }

    fn topic(&self) -> Named {
        Named(TopicsRef::of(&self.node, self.name.clone()))
    }
}

impl<E: Serialize> Topic<E> {
    /// Publishes `event`: returns once it is in the queues of all who subscribe, in the order of this publisher's calls.
    ///
    /// # Errors
    /// [`PublishError`]. After [`CallError::Unknown`] some may have it, or all; publishing again may give it twice.
    ///
    /// # Cancel safety
    /// A request that has left is published.
    pub async fn publish(&self, event: &E) -> Result<Published, PublishError> {
        self.topic().publish(text(event)?).await
    }

    /// Publishes `event` one-way: nobody hears whether it was.
    pub fn send(&self, event: &E) {
        match text(event) {
            Ok(event) => self.topic().send(event),
            Err(error) => tracing::warn!(topic = %self.name, %error, "an event was not published"),
        }
    }
}

/// An event as it travels.
fn text(event: &impl Serialize) -> Result<String, PublishError> {
    serde_json::to_string(event).map_err(|error| PublishError::Unwritable { message: error.to_string() })
}

/// A topic whose events are texts: all that need not be compiled for each type of event.
struct Named(TopicsRef);

impl Named {
    fn subscribers(self) -> BoxFuture<'static, Result<u64, CallError>> {
        self.0.subscribers().into_future().boxed()
    }

    fn publish(self, event: String) -> BoxFuture<'static, Result<Published, PublishError>> {
        self.0.publish(event).into_future().map(|published| Ok(published?)).boxed()
    }

    fn send(self, event: String) {
        self.0.publish(event).send();
    }

    fn subscribe(self, terms: Terms) -> BoxFuture<'static, Result<Parcels, CallError<String>>> {
        self.0.subscribe(terms).into_future().map(|parcels| Ok(Parcels(parcels?))).boxed()
    }
}

/// What comes to a subscriber.
struct Parcels(ReplyStream<Parcel>);

impl Parcels {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Parcel, CallError>>> {
        self.0.poll_next_unpin(context)
    }
}

impl<E: DeserializeOwned> Topic<E> {
    /// Subscribes: the events from now on.
    ///
    /// # Errors
    /// [`CallError`]: the topic was not reached, or has as many subscribers as it may.
    pub async fn watch(&self) -> Result<Watch<E>, CallError<String>> {
        let parcels = self.topic().subscribe(self.terms).await?;
        Ok(Watch { parcels, last: None, of: PhantomData })
    }

    /// Subscribes the actor `to`: for each event, the call that `call` makes is made until it is acknowledged, one after the
    /// other. What `call` cannot be told, [`Delivery::Missed`], goes to the log.
    ///
    /// It lasts as long as the activation whose turn says so, which it keeps from being idle, or until it is
    /// [cancelled](Subscription::cancel). The `activated` hook is the place for it.
    ///
    /// # Panics
    /// Outside of actors' turns.
    pub fn subscribe<R, M>(
        self,
        cx: &Cx,
        to: R,
        call: impl Fn(&R, E) -> Call<M> + Send + Sync + 'static,
    ) -> Subscription
    where
        E: Send + 'static,
        R: Send + Sync + 'static,
        M: Method,
    {
        let topic = self.name.clone();
        self.follow(cx, to, move |to, delivery| match delivery {
            Delivery::Event(event) => Some(call(to, event)),
            Delivery::Missed(count) => {
                tracing::warn!(%topic, ?count, "a subscriber has missed events");
                None
            }
        })
    }

    /// As [`subscribe`](Self::subscribe), for actors that want to know what they have missed.
    pub fn subscribe_all<R, M>(
        self,
        cx: &Cx,
        to: R,
        call: impl Fn(&R, Delivery<E>) -> Call<M> + Send + Sync + 'static,
    ) -> Subscription
    where
        E: Send + 'static,
        R: Send + Sync + 'static,
        M: Method,
    {
        self.follow(cx, to, move |to, delivery| Some(call(to, delivery)))
    }

    fn follow<R, M>(
        self,
        cx: &Cx,
        to: R,
        call: impl Fn(&R, Delivery<E>) -> Option<Call<M>> + Send + Sync + 'static,
    ) -> Subscription
    where
        E: Send + 'static,
        R: Send + Sync + 'static,
        M: Method,
    {
        follow(cx, self.name, self.terms, deliver::by_calls(to, call))
    }
}

/// Has `deliver` tried with each event of a topic until it is acknowledged, one after the other, as long as the activation lasts whose
/// turn says so.
///
/// # Panics
/// Outside of actors' turns.
pub(crate) fn follow(
    cx: &Cx,
    name: Key,
    terms: Terms,
    deliver: impl AsyncFn(&Parcel) -> Try + 'static,
) -> Subscription {
    let ended = Arc::new(Ended::default());
    let (port, until) = (cx.port.clone(), ended.clone());
    Shard::with(|shard| {
        let shard = shard.expect("actors subscribe in turns of theirs");
        let tie = shard.tie_current().expect("actors subscribe in turns of theirs");
        let following = async move {
            let gone = std::future::poll_fn(|context| tie.poll_ended(context).map(drop));
            tokio::select! {
                biased;
                () = gone => {}
                () = until.wait() => {}
                () = deliver::to_actor(port, name, terms, deliver) => {}
            }
        };
        shard.begin_beside(Some(cx.id()), following.boxed_local());
    });
    Subscription(ended)
}

impl<E> fmt::Debug for Topic<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({})", self.name)
    }
}

/// An actor's subscription. Dropping it changes nothing.
#[derive(Debug)]
pub struct Subscription(Arc<Ended>);

#[derive(Default, Debug)]
struct Ended {
    ended: AtomicBool,
    told: Notify,
}

impl Ended {
    async fn wait(&self) {
        while !self.ended.load(Ordering::Acquire) {
            self.told.notified().await;
        }
    }
}

impl Subscription {
    /// Ends it: after the delivery that is under way there is no other.
    pub fn cancel(&self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.told.notify_one();
    }
}

/// A subscriber's events, as a stream. Dropping it unsubscribes.
pub struct Watch<E> {
    parcels: Parcels,
    last: Option<EventId>,
    of: PhantomData<fn() -> E>,
}

impl<E: DeserializeOwned> Watch<E> {
    /// The next event. It ends with an error only: [`Doubt::Ended`] or [`Doubt::Disconnected`] when the topic has moved, and
    /// [`Refusal::Overloaded`] when this subscriber was too slow for its policy.
    ///
    /// # Errors
    /// Why the subscription is over. To go on, watch again [`after`](Topic::after) the [`last`](Self::last) event.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<Delivery<E>, CallError>> {
        StreamExt::next(self).await
    }

    /// The last event that was given.
    pub fn last(&self) -> Option<EventId> {
        self.last
    }
}

impl<E> Unpin for Watch<E> {}

impl<E: DeserializeOwned> Stream for Watch<E> {
    type Item = Result<Delivery<E>, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let parcel = loop {
            match ready!(self.parcels.poll_next(context)) {
                Some(Ok(Parcel::Began(_))) => {}
                Some(Ok(parcel)) => break parcel,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        };
        if let Parcel::Event(id, _) = &parcel {
            self.last = Some(*id);
        }
        Poll::Ready(Some(match decoded(&parcel) {
            Ok(Some(delivery)) => Ok(delivery),
            Ok(None) => Err(CallError::Refused(too_slow())),
            Err(error) => Err(CallError::Unknown(Doubt::Unreadable { message: error.to_string() })),
        }))
    }
}

impl<E> fmt::Debug for Watch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("last", &self.last).finish()
    }
}

/// What a parcel is to its subscriber; `None` if it is the end.
fn decoded<E: DeserializeOwned>(parcel: &Parcel) -> Result<Option<Delivery<E>>, serde_json::Error> {
    Ok(match parcel {
        Parcel::Event(_, text) => Some(Delivery::Event(serde_json::from_str(text)?)),
        Parcel::Missed(count) => Some(Delivery::Missed(*count)),
        Parcel::Began(_) | Parcel::TooSlow => None,
    })
}

/// What a subscriber that was cut off is told.
pub(crate) fn too_slow() -> Refusal {
    Refusal::Overloaded { queue: "the subscriber's queue at its topic".into(), bound: 0 }
}
