//! What a partition answers to a call, and how the caller gets it.

use greenroom_protocols::delivery::{self, Answer};
use greenroom_wire::Status;
use serde::{Deserialize, Serialize};

use super::name::{Body, Payload};
use crate::actor::error::{CallError, Doubt, Failure, Never, Refusal};
use crate::actor::reply::{self, AnyReply, CallName, CallSite, RuntimeEnd, Watcher, encode_failure};
use crate::here::Here;
use crate::shard::calls::Completion;

/// What has become of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Answered {
    /// Its turn is committed.
    Reply { status: u8, payload: Payload },
    /// Its turn failed and has no effects.
    Failed(String),
    /// No turn ran: there is no room.
    Busy,
    /// No turn ran: the idempotency key belongs to another request.
    OtherRequest,
    /// No turn ran: there is no such actor.
    NoActor,
    /// No turn ran: this cluster has so many partitions, and the caller believes in another number.
    Partitions(u32),
    /// The partition has left this node meanwhile; the turn may be committed.
    Lost,
    /// No turn ran: the partition keeps as many answers as it may, on this node.
    Full { node: String, bytes_max: u64 },
}

impl Answered {
    /// What a partition of `node` answers.
    pub(super) fn of(answer: Answer<Body>, node: &Here) -> Self {
        match answer {
            Answer::Done(Some(Body::Reply { status, payload })) => Self::Reply { status, payload },
            // Calls from outside always have an answer: this is one of a program that knows more.
            Answer::Done(_) => Self::unreadable("the answer that was recorded is none".to_owned()),
            Answer::Unread(message) => Self::unreadable(message),
            Answer::Failed(message) => Self::Failed(message),
            Answer::Busy => Self::Busy,
            Answer::Full => {
                let bytes_max = node.config().reliable.answers_bytes_max;
                Self::Full { node: node.name().to_owned(), bytes_max }
            }
            Answer::OverShare { held, left } => {
                let bytes_max = node.config().reliable.answers_bytes_max;
                let why = format!(
                    "the answers to this principal's calls with idempotency keys (or to those without one) are {held} bytes of the \
                     {bytes_max} that a partition of reliable actors keeps, {left} are left for all others, and none of them is \
                     forgotten before its time; raise `answers_bytes_max` or lower `answers_keep` under `[reliable]`"
                );
                Self::refused(Refusal::Shed { node: node.name().to_owned(), why, retry_after_ms: FULL_RETRY_MS })
            }
            Answer::OtherRequest => Self::OtherRequest,
            Answer::NoActor => Self::NoActor,
            Answer::Crowded => {
                let bound = delivery::Config::default().queued_of_actor_max as u64;
                Self::refused(Refusal::Overloaded { queue: "what may wait for a reliable actor".to_owned(), bound })
            }
            Answer::Unloadable(message) => Self::refused(Refusal::Activation { message }),
        }
    }
}

impl Answered {
    /// No turn ran, for this reason.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self::failing(&refusal.into())
    }

    /// The call may have been answered before, and that answer cannot be read.
    fn unreadable(message: String) -> Self {
        Self::failing(&Doubt::Unreadable { message }.into())
    }

    fn failing(failure: &Failure) -> Self {
        let (status, payload) = encode_failure(failure);
        Self::Reply { status: status.to_byte(), payload: Payload(payload) }
    }
}

/// The reply of who called a reliable actor, in the place of the one that its partition gives.
pub(super) struct Answering(pub(super) Box<dyn AnyReply>);

impl AnyReply for Answering {
    fn call(&self) -> Option<CallSite> {
        None
    }

    fn key(&self) -> CallName {
        self.0.key()
    }

    fn awaited(&self) -> bool {
        self.0.awaited()
    }

    fn take(&mut self) -> Box<dyn AnyReply> {
        Box::new(Self(self.0.take()))
    }

    fn disarm(&mut self) {
        self.0.disarm();
    }

    /// Replies are held where turns end.
    fn hold(&mut self) {}

    /// Turns answer elsewhere.
    fn watch(&mut self, _: Watcher) {}

    fn finish(self: Box<Self>, end: RuntimeEnd) {
        let completion = match reply::result::<Answered, Never>(end.0) {
            Ok(answered) => answered.completion(),
            Err(CallError::Actor(never)) => match never {},
            Err(CallError::Refused(refusal)) => failed(refusal),
            Err(CallError::Unknown(doubt)) => failed(doubt),
            Err(CallError::Cycle(path)) => Completion::Failed(Box::new(Failure::Cycle(path))),
        };
        self.0.finish(RuntimeEnd(completion));
    }
}

impl Answered {
    /// How the call ends for who made it.
    pub(super) fn completion(self) -> Completion {
        match self {
            Self::Reply { status, payload } => match Status::from_byte(status) {
                Status::Other(other) => {
                    failed(Doubt::Unreadable { message: format!("it has the unknown status {other}") })
                }
                status => Completion::Wire { status, payload: payload.0, from: None },
            },
            Self::Lost => failed(Doubt::Dropped),
            Self::Failed(message) => failed(Refusal::NotCommitted { message }),
            Self::Busy => {
                let queue = "a partition of reliable actors".to_owned();
                failed(Refusal::Overloaded { queue, bound: delivery::Config::default().queued_max as u64 })
            }
            Self::Full { node, bytes_max } => {
                let why = format!(
                    "a partition of reliable actors keeps as many answers to calls with idempotency keys as it may, \
                     {bytes_max} bytes, and none is forgotten before its time (`answers_bytes_max` and `answers_keep` under \
                     `[reliable]`)"
                );
                failed(Refusal::Shed { node, why, retry_after_ms: FULL_RETRY_MS })
            }
            Self::OtherRequest => {
                let message = "its idempotency key was used for another request, by its method or its arguments, which has run or may \
                    still run; this one did not run. To repeat the earlier request, send what it said: under a new key, it \
                    would run once more"
                    .to_owned();
                failed(Refusal::Invalid { field: String::new(), message })
            }
            Self::NoActor => {
                let message = "there is no such actor: it was never created, or has halted".to_owned();
                failed(Refusal::InvalidKey { message })
            }
            Self::Partitions(partitions) => {
                let message = format!(
                    "the cluster has {partitions} partitions of reliable actors, and the node that was called by counts \
                     otherwise; write `partitions = {partitions}` under `[reliable]` in its configuration"
                );
                failed(Refusal::Placement { message })
            }
        }
    }
}

/// Answers go when their time is over, and that is long.
const FULL_RETRY_MS: u64 = 60_000;

fn failed(failure: impl Into<Failure>) -> Completion {
    Completion::Failed(Box::new(failure.into()))
}
