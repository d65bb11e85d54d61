//! The one call value: nothing happens until it is awaited or sent.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use greenroom_protocols::delivery::Delivery;
use greenroom_world::Timestamp;

use super::error::{CallError, Doubt, Refusal};
use super::interface::{Interface, Method};
use super::outside::Outside;
use super::reference::{Inner, Route};
use super::reply::{self, ReplyTo};
use super::spent::Spent;
use crate::context::TraceContext;
use crate::shard::baggage::Baggage;
#[cfg(feature = "http")]
use crate::shard::baggage::Load;
use crate::shard::calls::{CallSlot, Completion};
use crate::shard::holdback::Unsent;
use crate::shard::one_way::Told;
use crate::shard::submit::Started;
use crate::shard::{Shard, ShardId};
use crate::stream::reply_stream::Reading;

/// A call that has not been made yet.
///
/// - `.await` sends the request and waits for the reply;
/// - [`send`](Call::send) sends it one-way;
/// - [`by`](Call::by) gives it a time limit.
#[must_use = "a call does nothing until it is used: `.await` it, or `.send()` it"]
pub struct Call<M: Method> {
    target: Arc<Inner>,
    method: M,
    /// In nanoseconds; [`NO_LIMIT`] for the node's default. With the bit [`ONCE`].
    limit: u64,
    baggage: Option<Box<Baggage>>,
}

impl<M: Method> Call<M> {
    pub(crate) fn new(target: Arc<Inner>, method: M) -> Self {
        Self { target, method, limit: NO_LIMIT, baggage: None }
    }

    pub(crate) fn into_parts(self) -> (Arc<Inner>, M) {
        (self.target, self.method)
    }

    /// The message that it sends one-way.
    pub(crate) fn into_unsent(self) -> Unsent {
        Unsent::new(self.target, self.method, self.baggage)
    }

    /// Gives the call at most `limit`; inside of a turn never more than is left of that turn's own time. Without it, the
    /// node's default.
    ///
    /// When it has passed, the caller gets [`Unknown`](CallError::Unknown), and a turn that has not started never does.
    pub fn by(mut self, limit: Duration) -> Self {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(NO_LIMIT - 1).min(NO_LIMIT - 1);
        self.limit = self.limit & ONCE | limit;
        self
    }

    /// Tells of the first refusal instead of trying again.
    ///
    /// A call from outside of actors that is [refused](CallError::Refused) for a reason that passes, as overload or a node
    /// that stops, is made again after a growing pause, until its time is over: nothing has run, so that is safe. Calls
    /// between actors are never made again by themselves: their callers have callers, and would multiply the tries.
    pub fn once(mut self) -> Self {
        self.limit |= ONCE;
        self
    }

    /// Lets the call carry `value` under `key` in its [request context](crate::Context), and with it all calls that are
    /// made on its behalf. It covers what the calling turn carries under the key.
    ///
    /// A context that is over its bounds is [refused](Refusal::Invalid) when the call is used.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let baggage = self.baggage();
        if let Err(error) = baggage.context.set(key, value) {
            baggage.unfit = Some(error);
        }
        self
    }

    /// Gives the call of a [reliable](crate::Reliability) actor an idempotency key: among all calls of the actor with this
    /// key it runs once, and the others get the answer that was recorded. So it may be made again after
    /// [`Unknown`](CallError::Unknown), for as long as answers are [kept](crate::Reliability::answers_keep), which is a day.
    /// Each principal on whose behalf the actor is called has keys of its own.
    ///
    /// A call of an actor that is not reliable is [refused](Refusal::Invalid) with a key. A key that is empty or has more than
    /// 1024 bytes is [refused](Refusal::InvalidKey). One-way messages have no answer, and no use for a key.
    pub fn idempotent(mut self, key: &str) -> Self {
        self.baggage().idempotency = Some(key.into());
        self
    }

    /// Lets a message of a reliable actor to another one be processed once *or more*, in any order: cheaper for the
    /// receiver, for what does no harm when it is repeated (RSM §4). Senders of other kinds know nothing of it.
    pub fn at_least_once(mut self) -> Self {
        self.baggage().delivery = Delivery::AtLeastOnce;
        self
    }

    /// Lets a message of a reliable actor to another one be processed once *or not at all*, in any order: it leaves after
    /// the commit, and nothing is written for it (RSM §4). Senders of other kinds know nothing of it.
    pub fn best_effort(mut self) -> Self {
        self.baggage().delivery = Delivery::BestEffort;
        self
    }

    /// Makes the call a part of the trace that `trace` stands in.
    pub fn traced(mut self, trace: TraceContext) -> Self {
        self.baggage().trace = Some(trace);
        self
    }

    /// Lets the call carry what came with a request of the HTTP door.
    #[cfg(feature = "http")]
    pub(crate) fn carrying(mut self, load: &Load) -> Self {
        self.baggage = load.as_ref().map(|load| Box::new((**load).clone()));
        self
    }

    fn baggage(&mut self) -> &mut Baggage {
        self.baggage.get_or_insert_default()
    }

    fn limit(&self) -> Option<Duration> {
        let limit = self.limit & !ONCE;
        (limit != NO_LIMIT).then(|| Duration::from_nanos(limit))
    }

    /// Sends the message one-way: nobody waits, and nobody hears of its end. What is refused on the way is a dead
    /// letter: see [`Node::dead_letters`](crate::Node::dead_letters).
    pub fn send(self) {
        let _ = self.send_to(Told::Nobody);
    }

    /// Sends the message one-way, and says if it was refused at once.
    ///
    /// # Errors
    /// [`Refusal`] when a queue on this node is full or the node is stopping. `Ok` promises no more than that the message
    /// is on its way.
    pub fn try_send(self) -> Result<(), Refusal> {
        self.send_to(Told::Sender)
    }

    #[inline]
    fn send_to(self, told: Told) -> Result<(), Refusal> {
        Shard::with(|shard| match shard {
            Some(shard) if shard.serves(&self.target) => shard.send(self.target, self.method, self.baggage, told),
            _ => match &self.target.port {
                Some(port) => {
                    let message = self.method.into_message(ReplyTo::nobody());
                    port.send::<M::Interface>(&self.target, message, Timestamp::NEVER, self.baggage)
                }
                None => Err(Refusal::Unbound),
            },
        })
    }
}

impl<M: Method> IntoFuture for Call<M> {
    type Output = Result<M::Reply, CallError<M::Error>>;
    type IntoFuture = Calling<M>;

    fn into_future(self) -> Calling<M> {
        Calling(State::Unsent(self))
    }
}

/// A call under way. The request leaves at the first poll.
///
/// # Cancel safety
/// Dropping it gives up the reply, and cancels the call as far as word of that gets in time: a request that has not begun
/// never does, and a turn that runs for it [sees it](crate::Cx::cancelled). It may have run, or may still run to its end.
pub struct Calling<M: Method>(State<M>);

enum State<M: Method> {
    Unsent(Call<M>),
    Under(Way),
    Done,
}

/// A call under way, its types apart.
enum Way {
    /// Made by a turn of this shard.
    OnShard(ShardId, CallSlot, Made),
    /// Made outside of all shards.
    Outside(Box<Outside>),
}

impl Way {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Completion> {
        let (home, call, made) = match self {
            Way::OnShard(home, call, made) => (*home, *call, made),
            Way::Outside(outside) => return outside.poll(context),
        };
        let polled = Shard::with(|shard| match shard {
            Some(shard) if shard.id() == home => shard.poll_call(call, context),
            _ => None,
        });
        let completion = match polled {
            Some(polled) => ready!(polled),
            None => {
                let message = "the call's future has left the actor that made it".to_owned();
                Completion::Failed(Box::new(Doubt::Unreadable { message }.into()))
            }
        };
        if !matches!(completion, Completion::Value(_)) {
            Shard::with(|shard| {
                shard.into_iter().for_each(|shard| shard.learn_of_call(&made.target, call, &completion))
            });
        }
        Poll::Ready(completion)
    }

    /// Lets references that come with the reply be bound as the caller's is, where no actor reads it.
    fn reading(&self) -> Option<Reading> {
        match self {
            Way::OnShard(..) => None,
            Way::Outside(outside) => Some(Reading::at(outside.made().target.port.clone())),
        }
    }

    fn made(&self) -> &Made {
        match self {
            Way::OnShard(_, _, made) => made,
            Way::Outside(outside) => outside.made(),
        }
    }

    /// Gives up the reply.
    fn abandon(&self) {
        match self {
            Way::OnShard(home, call, made) => Shard::with(|shard| match shard {
                Some(shard) if shard.id() == *home => shard.abandon(*call, &made.target),
                // Dropped elsewhere: the call's slot is cleared when its deadline passes.
                _ => {}
            }),
            Way::Outside(outside) => outside.abandon(),
        }
    }
}

/// Whom a call was made to, and when: what it takes to say where its time went.
pub(super) struct Made {
    pub(super) target: Arc<Inner>,
    pub(super) at: Timestamp,
}

impl Made {
    /// Says in the error of a call that ran out of time what is known here of that time.
    fn explain<E>(&self, error: &mut CallError<E>) {
        match error {
            CallError::Unknown(Doubt::TimedOut(spent)) => self.say(spent, true),
            CallError::Refused(Refusal::Expired(spent)) => self.say(spent, false),
            _ => {}
        }
    }

    #[cold]
    fn say(&self, spent: &mut Spent, may_run: bool) {
        Shard::with(|shard| {
            let now = match (shard, &self.target.port) {
                (Some(shard), _) => shard.now(),
                (None, Some(port)) => port.node.world().now(),
                (None, None) => return,
            };
            spent.limit = Some(now.since(self.at));
            if let (Some(shard), Route::Here(..), true) = (shard, self.target.route(), may_run) {
                spent.behind = shard.runs_for(&self.target);
            }
        });
    }
}

// Nothing here is pinned in place: the reply is kept by the shard.
impl<M: Method> Unpin for Calling<M> {}

impl<M: Method> Future for Calling<M> {
    type Output = Result<M::Reply, CallError<M::Error>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.0 {
                State::Unsent(_) => {
                    let State::Unsent(call) = std::mem::replace(&mut self.0, State::Done) else { continue };
                    match start(call) {
                        Ok(Begun::Ended(result)) => return Poll::Ready(result),
                        Ok(Begun::Waits(way)) => self.0 = State::Under(way),
                        Err(refusal) => return Poll::Ready(Err(CallError::Refused(refusal))),
                    }
                }
                State::Under(way) => {
                    let completion = ready!(way.poll(context));
                    let reading = way.reading();
                    let mut result = reply::result(completion);
                    drop(reading);
                    if let Err(error) = &mut result {
                        way.made().explain(error);
                    }
                    self.0 = State::Done;
                    return Poll::Ready(result);
                }
                State::Done => panic!("a call was polled after its end"),
            }
        }
    }
}

/// What has become of a call at its first poll.
enum Begun<M: Method> {
    Ended(Result<M::Reply, CallError<M::Error>>),
    Waits(Way),
}

fn start<M: Method>(call: Call<M>) -> Result<Begun<M>, Refusal> {
    let (kind, reliable) = (call.target.id.kind, M::Interface::RELIABLE);
    Shard::with(|shard| match shard {
        Some(shard) if shard.serves(&call.target) => {
            shard.port().node.check_idempotency(kind, reliable, call.baggage.as_deref())?;
            let limit = call.limit();
            Ok(match shard.start(&call.target, call.method, limit, call.baggage)? {
                Started::Ended(result) => Begun::Ended(result),
                Started::Waits(slot) => {
                    let made = Made { target: call.target, at: shard.now() };
                    Begun::Waits(Way::OnShard(shard.id(), slot, made))
                }
            })
        }
        _ => {
            let (limit, once) = (call.limit(), call.limit & ONCE != 0);
            let node = &call.target.port.as_ref().ok_or(Refusal::Unbound)?.node;
            node.check_idempotency(kind, reliable, call.baggage.as_deref())?;
            let at = node.world().now();
            let made = Made { target: call.target, at };
            let outside = Outside::begin(made, call.method, call.baggage, limit, once)?;
            Ok(Begun::Waits(Way::Outside(Box::new(outside))))
        }
    })
}

impl<M: Method> Drop for Calling<M> {
    fn drop(&mut self) {
        if let State::Under(way) = &self.0 {
            way.abandon();
        }
    }
}

/// No limit but the node's default.
const NO_LIMIT: u64 = ONCE - 1;
/// The bit of a limit that says not to try again.
const ONCE: u64 = 1 << 63;
