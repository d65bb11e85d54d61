//! What a call may end with, other than its reply.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spent::Spent;
use super::version_gap::VersionGap;

/// Why a call gave no reply of type `T`. `E` is the method's own error; [`Never`] for methods that have none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E = Never> {
    /// The method's own error: the turn ran to its end and said so.
    #[error("{0}")]
    Actor(E),
    /// Nothing has changed: nothing ran, or, of a reliable actor, what ran was not committed. Most refusals are safe to
    /// retry: see [`Refusal::retry_after`].
    #[error("{heading}: {0}", heading = .0.heading())]
    Refused(Refusal),
    /// The method may or may not have run, wholly or in part. Retry only what may run twice.
    #[error("the call may have run: {0}")]
    Unknown(Doubt),
    /// The call would have waited for itself. Nothing ran. The path names the chain of calls, the first caller first.
    #[error("the call chain would deadlock: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
}

/// Why nothing ran, or why nothing of what ran counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A bounded queue is full. Retry after a pause.
    #[error("{queue} is full ({bound}); retry after a pause, or slow the callers down")]
    Overloaded {
        /// The queue that is full.
        queue: String,
        /// How much it holds.
        bound: u64,
    },
    /// The node is stopping. Retry: another node will answer.
    #[error("the node is stopping; retry, another node will answer")]
    Stopping,
    /// The deadline had passed before the turn could start, or was so near that it could not have ended in time. It says
    /// where the time went.
    #[error("the deadline passed before the turn started{}; give the call more time or the actor less work", .0.explained())]
    Expired(Box<Spent>),
    /// The node has more work than it can do in time, and turns this call away so that others end in theirs.
    #[error("node {node} sheds load, as {why}; retry in {retry_after_ms} ms or later")]
    Shed {
        /// The node.
        node: String,
        /// What it has measured.
        why: String,
        /// How long it is likely to last.
        retry_after_ms: u64,
    },
    /// No node of the cluster hosts the kind.
    #[error("actor kind {kind:?} is not registered on any node{}", did_you_mean(.near))]
    UnknownKind {
        /// The kind that was called.
        kind: String,
        /// Known kinds with names like it.
        near: Vec<String>,
    },
    /// The kind has no such method.
    #[error("actor kind {kind:?} has no method {method:?}{}", did_you_mean(.near))]
    UnknownMethod {
        /// The kind that was called.
        kind: String,
        /// The method that was asked for.
        method: String,
        /// Its methods with names like it.
        near: Vec<String>,
    },
    /// The caller speaks a version of the kind's interface that is not served: by no node, or not by the one that has the
    /// actor; or no node reads the actor's state as a newer program wrote it, and no retry helps before one does. It says
    /// which versions there are, and what to do.
    #[error("{0}")]
    Version(Box<VersionGap>),
    /// The arguments do not fit the method.
    #[error("{}{message}", what_does_not_fit(.field))]
    Invalid {
        /// The field that is wrong, as a path; empty when the whole is.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// The key is empty, too long, or not what the actor accepts.
    #[error("the key does not name an actor: {message}")]
    InvalidKey {
        /// What is wrong with it.
        message: String,
    },
    /// The node that hosts the actor cannot be reached now.
    #[error("node {node} cannot be reached: {reason}; retry, the cluster replaces dead nodes within seconds")]
    Unreachable {
        /// The node.
        node: String,
        /// What the system said.
        reason: String,
    },
    /// The directory is not ready to say where the actor is, as a node has just died or joined.
    #[error("the directory is recovering; retry after a pause")]
    Recovering,
    /// The actor moved more often than a call may follow.
    #[error("the actor kept moving; retry")]
    Moved,
    /// The actor's construction or its `activated` hook failed.
    #[error("the actor could not be activated: {message}")]
    Activation {
        /// What it said.
        message: String,
    },
    /// The kind's placement found no node.
    #[error("no node can host it: {message}")]
    Placement {
        /// Why.
        message: String,
    },
    /// The spawned actor has ended, or its node has left the cluster. Its address is never another's: no retry will help.
    #[error("{actor} has ended; what is sent to it is a dead letter")]
    DeadLetter {
        /// The actor.
        actor: String,
    },
    /// A reference that came in a message was used outside of an actor without `bind`.
    #[error("the reference is bound to no node; use `bind(&node)` outside of actors")]
    Unbound,
    /// The argument could not be encoded, or was larger than a frame may be.
    #[error("the arguments could not be sent: {message}")]
    Unsendable {
        /// What the encoder said.
        message: String,
    },
    /// Who may say so has not let the call through: an interceptor, for one. No retry will help.
    #[error("the call is denied: {message}")]
    Denied {
        /// Why.
        message: String,
    },
    /// The turn of a reliable actor failed, by a panic for one, and was not committed: it has had no effect. A retry runs it again,
    /// and ends the same way unless something has changed.
    #[error("the turn failed, so that nothing of it was committed: {message}")]
    NotCommitted {
        /// What it failed by.
        message: String,
    },
    /// The turn of a reminder's tick was not begun: the tick is done or runs now, or the reminder was cancelled or has moved on.
    #[error("the tick's time is over")]
    TickOver {
        /// True if the tick is done.
        ran: bool,
    },
    /// This node's lease has run out: what it had begun may no longer act on others.
    #[error("this node's lease has run out, its turns may no longer act")]
    Fenced,
    /// The kind's actors are activated only if all clusters agree, and some do not answer.
    #[error(
        "{actor} is not activated, as it may be active in a cluster that does not answer ({}); retry when it does, or let the \
         kind be activated meanwhile (activation = \"optimistic\")",
        if silent.is_empty() { "not known which".to_owned() } else { silent.join(", ") }
    )]
    Apart {
        /// The actor.
        actor: String,
        /// The clusters that do not answer, as far as is known.
        silent: Vec<String>,
    },
    /// The kind is a foreign one, and no host offers it now. Nothing ran: retry, a host may be on its way.
    #[error("{}", no_host(.kind, .had, .there))]
    NoHost {
        /// The kind that was called.
        kind: String,
        /// The version that the actor has had, if hosts offer others.
        #[serde(default, skip_serializing_if = "is_zero")]
        had: u16,
        /// The newest version that hosts offer.
        #[serde(default, skip_serializing_if = "is_zero")]
        there: u16,
    },
    /// The cluster is about to leave the multi-cluster, and activates nothing any more.
    #[error("cluster {cluster:?} is leaving the multi-cluster; call another cluster")]
    Leaving {
        /// The cluster.
        cluster: String,
    },
}

impl Refusal {
    /// How long to wait before a retry can help; `None` where no retry will.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Refusal::Version(gap) if gap.state.is_some() => None,
            Refusal::Overloaded { .. } | Refusal::Moved => Some(Duration::from_millis(50)),
            Refusal::Apart { .. }
            | Refusal::Stopping
            | Refusal::Recovering
            | Refusal::Unreachable { .. }
            | Refusal::NoHost { .. }
            | Refusal::Fenced => Some(Duration::from_secs(1)),
            Refusal::Shed { retry_after_ms, .. } => Some(Duration::from_millis(*retry_after_ms)),
            Refusal::Expired(_)
            | Refusal::Activation { .. }
            | Refusal::Placement { .. }
            | Refusal::NotCommitted { .. }
            | Refusal::Version(_) => Some(Duration::from_secs(1)),
            Refusal::UnknownKind { .. }
            | Refusal::UnknownMethod { .. }
            | Refusal::Invalid { .. }
            | Refusal::InvalidKey { .. }
            | Refusal::DeadLetter { .. }
            | Refusal::Unbound
            | Refusal::Denied { .. }
            | Refusal::TickOver { .. }
            | Refusal::Leaving { .. }
            | Refusal::Unsendable { .. } => None,
        }
    }

    /// What every refusal says first.
    fn heading(&self) -> &'static str {
        match self {
            Refusal::NotCommitted { .. } => "nothing has changed",
            _ => "refused, nothing ran",
        }
    }
}

/// Why it is not known whether the call ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// The turn has run, but the actor's state was not saved after it, or it is not known whether it was. What the turn
    /// sent to others has left.
    #[error("the turn ran, but its state was not saved: {message}")]
    Unsaved {
        /// What the store said.
        message: String,
    },
    /// No reply came before the deadline. It says where the time went, as far as the caller knows.
    #[error("no reply {}{}", .0.within(), .0.explained())]
    TimedOut(Box<Spent>),
    /// The connection broke while the call was out.
    #[error("the connection to node {node} broke while the call was out")]
    Disconnected {
        /// The node at its other end.
        node: String,
    },
    /// The turn panicked; the activation has been restarted clean.
    #[error("the turn panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The node's lease ran out while the turn was suspended; its reply does not count.
    #[error("the node's lease ran out while the turn was suspended")]
    Fenced,
    /// The turn was dropped unfinished, as its node stopped or the actor was killed.
    #[error("the turn was dropped unfinished, as its node stopped or it was killed")]
    Dropped,
    /// The stream came from an activation that has ended: it was idle, moved, or its node stopped.
    #[error("the activation of {actor} that the stream came from has ended; ask it for the stream again")]
    Ended {
        /// The actor.
        actor: String,
    },
    /// The call went to another cluster, which fell silent.
    #[error("{actor} may have run it in another cluster, which fell silent")]
    Apart {
        /// The actor.
        actor: String,
    },
    /// The host that ran the turn has ended, or was lost: another one goes on without what the turn held in memory.
    #[error("the host that ran the turn of {actor} was lost while it ran")]
    HostLost {
        /// The actor.
        actor: String,
    },
    /// The reply came but could not be read.
    #[error("the reply could not be read: {message}")]
    Unreadable {
        /// What the decoder said.
        message: String,
    },
}

/// The error of a method that has none: no value of it exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Never {}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for Never {}

/// A call's end without the method's own error: what the runtime itself may answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    Refused(Refusal),
    Unknown(Doubt),
    Cycle(Vec<String>),
}

impl<E> From<Failure> for CallError<E> {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => CallError::Refused(refusal),
            Failure::Unknown(doubt) => CallError::Unknown(doubt),
            Failure::Cycle(path) => CallError::Cycle(path),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

impl From<Doubt> for Failure {
    fn from(doubt: Doubt) -> Self {
        Failure::Unknown(doubt)
    }
}

impl<E> CallError<E> {
    /// The same error for a caller with another error type of its own; `Err` holds the method's own error.
    pub fn split<F>(self) -> Result<CallError<F>, E> {
        match self {
            CallError::Actor(error) => Err(error),
            CallError::Refused(refusal) => Ok(CallError::Refused(refusal)),
            CallError::Unknown(doubt) => Ok(CallError::Unknown(doubt)),
            CallError::Cycle(path) => Ok(CallError::Cycle(path)),
        }
    }
}

/// What is wrong where a key is refused: the name of the header that gives it at the HTTP door.
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// What of a call does not fit, by the field that is wrong: what an idempotency key's refusal says is no word on the arguments.
fn what_does_not_fit(field: &str) -> &'static str {
    if matches!(field, IDEMPOTENCY_KEY | "idempotency_key") { "" } else { "the arguments do not fit the method: " }
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

fn no_host(kind: &str, had: &u16, there: &u16) -> String {
    match there {
        0 => {
            format!("no host offers actor kind {kind:?} now; retry, or start one (it dials a node and offers the kind)")
        }
        _ => format!(
            "the actor has had version {had} of actor kind {kind:?}, which no host offers any more: hosts offer version {there}; retry, it \
             begins anew with that, or start a host of version {had}"
        ),
    }
}

pub(super) fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [one] => format!("; did you mean {one:?}?"),
        several => format!("; did you mean one of {}?", several.join(", ")),
    }
}
/// Reason of [`Refusal::Activation`] if the host was lost that ran the activation hook.
pub(crate) const HOST_LOST_ACTIVATING: &str = "the host was lost that made it";
