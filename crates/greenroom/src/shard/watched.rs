//! Turns that somebody watches: interceptors, or who reads logs in detail.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::{LocalFuture, Timestamp};
use tracing::level_filters::LevelFilter;
use tracing::{Instrument, Span};

use super::Shard;
use super::activation::Activation;
use super::frames::{Begun, Caller};
use super::turns::Access;
use crate::actor::error::Refusal;
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::key::ActorId;
use crate::actor::reference::Inner;
use crate::actor::reply::{AnyReply, Watcher, refused};
use crate::intercept::{CallInfo, Interceptor, Watch};

/// Whether somebody reads a span for each turn: a look at one number if nobody does.
#[inline(always)]
pub(super) fn spans_are_read() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG && turns_are_read()
}

#[cold]
fn turns_are_read() -> bool {
    tracing::enabled!(target: "greenroom::turn", tracing::Level::DEBUG)
}

impl<A: Behaviour> Activation<A> {
    /// Begins a turn, unless an interceptor refuses it.
    #[cold]
    pub(super) fn begin_watched(
        self: &Rc<Self>,
        shard: &Shard,
        access: Access,
        mut message: Message<A>,
        (deadline, queued): (Timestamp, Option<Duration>),
        mut caller: Caller,
    ) -> Begun {
        let number = A::Interface::method(&message);
        let method = self.kind.methods()[usize::from(number)].name;
        let reply = A::Interface::reply(&mut message);
        let looks = Looks { actor: &self.cx.id, method, queued: queued.unwrap_or_default() };
        match looks.begin(shard, self.kind.interceptors(), reply, &mut caller) {
            Ok(watched) => {
                let (job, turn) = self.turn(shard, access, message);
                shard.begin_turn(self.clone(), job, deadline, caller, watched.follow(turn))
            }
            Err(refusal) => refuse(A::Interface::reply(&mut message), &caller, refusal),
        }
    }
}

/// What is looked at before a turn begins.
struct Looks<'a> {
    actor: &'a ActorId,
    method: &'static str,
    /// How long its message has waited.
    queued: Duration,
}

impl Looks<'_> {
    /// Lets interceptors see the turn that `reply` is of, and makes its span.
    fn begin(
        self,
        shard: &Shard,
        interceptors: Option<&Arc<[Arc<dyn Interceptor>]>>,
        reply: &mut dyn AnyReply,
        caller: &mut Caller,
    ) -> Result<Watched, Refusal> {
        let Self { actor, method, queued } = self;
        let (waiting, baggage) = match caller {
            Caller::Apart { chain, .. } => (shard.awaited_by(&chain.link).map(Box::from), &mut chain.baggage),
            Caller::Below { baggage, .. } => (shard.current_actor(), baggage),
        };
        let mut watch = None;
        if let Some(chain) = interceptors {
            let came_with = baggage.as_ref().and_then(|baggage| baggage.trace.clone());
            let mut call = CallInfo { actor, method, caller: waiting, queued, came_with, baggage };
            let begun = Watch::begin(chain, &mut call, shard.now())?;
            reply.watch(Watcher(begun.outcome()));
            watch = Some(begun);
        }
        let trace = baggage.as_ref().and_then(|baggage| baggage.trace.as_ref());
        let span = tracing::debug_span!(
            target: "greenroom::turn",
            "turn",
            actor = %actor,
            method,
            trace = trace.map(|trace| tracing::field::display(trace.trace_hex())),
        );
        Ok(Watched { watch, span })
    }
}

/// Who sees a turn from its begin to its end.
struct Watched {
    watch: Option<Watch>,
    span: Span,
}

impl Watched {
    fn follow(self, turn: LocalFuture) -> LocalFuture {
        let Self { watch, span } = self;
        let watched = async move {
            turn.await;
            drop(watch);
        };
        Box::pin(watched.instrument(span))
    }
}

fn refuse(reply: &mut dyn AnyReply, caller: &Caller, refusal: Refusal) -> Begun {
    if let Caller::Below { .. } = caller {
        // Who waits is on this stack, and is told there.
        reply.disarm();
        return Begun::Failed(Box::new(refusal.into()));
    }
    reply.take().finish(refused(refusal));
    Begun::Over
}

impl Shard {
    /// Lets interceptors see a message that leaves the current turn.
    #[cold]
    pub(super) fn outgoing(
        &self,
        target: &Inner,
        method: &'static str,
        awaited: bool,
        baggage: &mut super::baggage::Load,
    ) -> Result<(), Refusal> {
        let caller = if awaited { self.current_actor() } else { None };
        let came_with = baggage.as_ref().and_then(|baggage| baggage.trace.clone());
        let mut call = CallInfo { actor: &target.id, method, caller, queued: Duration::ZERO, came_with, baggage };
        self.port().node.kinds().interceptors().outgoing(&mut call)
    }

    /// The actor whose turn is being polled.
    fn current_actor(&self) -> Option<Box<str>> {
        self.current().map(|frame| frame.activation.id().to_string().into())
    }
}
