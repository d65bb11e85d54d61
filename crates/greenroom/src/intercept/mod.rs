//! Interceptors: code of a node's owner that sees the calls that come in and go out, and may refuse them.

mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Key};
use crate::context::{Context, ContextError, TraceContext};
use crate::shard::baggage::{Baggage, Load};

pub(crate) use self::watch::{OutcomeCell, ReplyOutcome, Watch};

/// Sees the calls of a node: give one to [`Builder::intercept`](crate::Builder::intercept) or
/// [`Builder::intercept_kind`](crate::Builder::intercept_kind).
///
/// The hooks run on the shards' threads, in the order in which the interceptors were given, so they must not block. A
/// kind that nobody intercepts pays nothing for those that are.
pub trait Interceptor: Send + Sync + 'static {
    /// Before a turn begins on this node, whoever has sent its message.
    ///
    /// # Errors
    /// A refusal: the turn never begins, later interceptors do not hear of it, and the caller is told.
    /// [`Refusal::Denied`] is for who may not call.
    fn incoming(&self, _call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// After a turn on this node, for those whose [`incoming`](Self::incoming) has let it begin; the last one first.
    fn finished(&self, _call: &CallInfo<'_>, _end: &End) {}

    /// Before a message leaves its caller: a turn on this node, or code beside the actors. Messages that come from other
    /// nodes or by the HTTP door are not outgoing here.
    ///
    /// # Errors
    /// A refusal: the message is not sent, and the caller is told.
    fn outgoing(&self, _call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// A call, as interceptors see it.
pub struct CallInfo<'a> {
    pub(crate) actor: &'a ActorId,
    pub(crate) method: &'static str,
    pub(crate) caller: Option<Box<str>>,
    pub(crate) queued: Duration,
    pub(crate) came_with: Option<TraceContext>,
    pub(crate) baggage: &'a mut Load,
}

impl CallInfo<'_> {
    /// The called actor.
    pub fn actor(&self) -> &ActorId {
        self.actor
    }

    /// The called actor's kind.
    pub fn kind(&self) -> &'static str {
        self.actor.kind.name()
    }

    /// The called actor's key.
    pub fn key(&self) -> &Key {
        &self.actor.key
    }

    /// The method.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The actor that waits for the reply, as `kind/key`. `None` for one-way messages, and for callers that are no actors.
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// How long the message has waited in the actor's mailbox, to a thousandth of a second. Zero for one that leaves.
    pub fn queued(&self) -> Duration {
        self.queued
    }

    /// The request context that the call carries.
    pub fn context(&self) -> Context {
        self.baggage.as_ref().map(|baggage| baggage.context.clone()).unwrap_or_default()
    }

    /// Lets the call carry `value` under `key`.
    ///
    /// # Errors
    /// [`ContextError`]; nothing has changed.
    pub fn set_context(&mut self, key: &str, value: &str) -> Result<(), ContextError> {
        self.change(|baggage| baggage.context.set(key, value))
    }

    /// Where the call stands in a distributed trace.
    pub fn trace(&self) -> Option<TraceContext> {
        self.baggage.as_ref().and_then(|baggage| baggage.trace.clone())
    }

    /// Where the call stood in a distributed trace before interceptors changed that.
    pub fn came_with_trace(&self) -> Option<&TraceContext> {
        self.came_with.as_ref()
    }

    /// Makes the call a part of the trace that `trace` stands in.
    pub fn set_trace(&mut self, trace: TraceContext) {
        let _ = self.change(|baggage| {
            baggage.trace = Some(trace);
            Ok::<(), ContextError>(())
        });
    }

    fn change<E>(&mut self, change: impl FnOnce(&mut Baggage) -> Result<(), E>) -> Result<(), E> {
        change(Arc::make_mut(self.baggage.get_or_insert_default()))
    }
}

impl fmt::Debug for CallInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallInfo({}.{})", self.actor, self.method)
    }
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// What its caller was told.
    pub outcome: Outcome,
    /// Time from the turn's beginning to its end, what it waited for included.
    pub took: Duration,
}

/// What a turn's caller was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The method's value.
    Ok,
    /// The method's own error.
    Error,
    /// Nothing: the turn panicked, or its node was torn down.
    Broken,
    /// A refusal of a later interceptor: nothing ran.
    Refused,
}

/// Interceptors, in the order in which they were given. `None` for all kinds.
#[derive(Default, Clone)]
pub(crate) struct Given(Vec<(Option<String>, Arc<dyn Interceptor>)>);

/// The interceptors of one kind; none for most.
pub(crate) type Ordered = Option<Arc<[Arc<dyn Interceptor>]>>;

impl Given {
    pub(crate) fn add(&mut self, kind: Option<String>, interceptor: Arc<dyn Interceptor>) {
        self.0.push((kind, interceptor));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The interceptors of `kind`.
    pub(crate) fn of(&self, kind: &str) -> Ordered {
        let of_kind = |wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| wanted == kind);
        let chain: Vec<_> = self.0.iter().filter(|(wanted, _)| of_kind(wanted)).map(|(_, one)| one.clone()).collect();
        (!chain.is_empty()).then(|| chain.into())
    }

    /// Lets those of the called actor's kind see a message that leaves its caller.
    #[cold]
    pub(crate) fn outgoing(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        let kind = call.kind();
        self.0
            .iter()
            .filter(|(wanted, _)| wanted.as_ref().is_none_or(|wanted| wanted == kind))
            .try_for_each(|(_, one)| one.outgoing(call))
    }
}
