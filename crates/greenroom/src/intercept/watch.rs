//! Interceptors around one turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use greenroom_world::Timestamp;

use super::{CallInfo, End, Interceptor, Outcome};
use crate::actor::error::{CallError, Refusal};
use crate::actor::key::ActorId;
use crate::context::TraceContext;
use crate::shard::Shard;
use crate::shard::baggage::Load;

/// The outcomes that a turn's reply can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplyOutcome {
    Ok,
    /// The method's own error.
    OwnError,
    /// A failure: an exception, a state that was not saved, a host that was lost.
    Failure,
}

impl ReplyOutcome {
    /// Returns the outcome of a turn that answered `result`.
    pub(crate) fn of<T, E>(result: &Result<T, CallError<E>>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(CallError::Actor(_)) => Self::OwnError,
            Err(_) => Self::Failure,
        }
    }
}

/// What a turn's caller was told, to be read when the turn is over; 0 if nothing.
#[derive(Clone, Default)]
pub(crate) struct OutcomeCell(Arc<AtomicU8>);

impl OutcomeCell {
    pub(crate) fn tell(&self, outcome: ReplyOutcome) {
        let byte = match outcome {
            ReplyOutcome::Ok => OK,
            ReplyOutcome::OwnError => OWN_ERROR,
            ReplyOutcome::Failure => FAILURE,
        };
        self.0.store(byte, Ordering::Relaxed);
    }

    /// True if the turn has run to its end and answered, also by the method's own error; what it saves is saved then.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed), OK | OWN_ERROR)
    }

    fn told(&self) -> Outcome {
        match self.0.load(Ordering::Relaxed) {
            OK => Outcome::Ok,
            OWN_ERROR | FAILURE => Outcome::Error,
            _ => Outcome::Broken,
        }
    }
}

/// A turn that interceptors have let begin. Dropped at its end, it tells them.
pub(crate) struct Watch {
    chain: Arc<[Arc<dyn Interceptor>]>,
    actor: ActorId,
    method: &'static str,
    caller: Option<Box<str>>,
    queued: Duration,
    came_with: Option<TraceContext>,
    baggage: Load,
    began: Timestamp,
    outcome: OutcomeCell,
}

impl Watch {
    /// Lets the interceptors of `chain` see a call that comes in.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn begin(
        chain: &Arc<[Arc<dyn Interceptor>]>,
        call: &mut CallInfo<'_>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        for (let_through, one) in chain.iter().enumerate() {
            if let Err(refusal) = one.incoming(call) {
                let end = End { outcome: Outcome::Refused, took: Default::default() };
                chain[..let_through].iter().rev().for_each(|one| one.finished(call, &end));
                return Err(refusal);
            }
        }
        Ok(Self {
            chain: chain.clone(),
            actor: call.actor.clone(),
            method: call.method,
            caller: call.caller.clone(),
            queued: call.queued,
            came_with: call.came_with.clone(),
            baggage: call.baggage.clone(),
            began: now,
            outcome: OutcomeCell::default(),
        })
    }

    /// Where the reply is to say what it was.
    pub(crate) fn outcome(&self) -> OutcomeCell {
        self.outcome.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let now = Shard::with(|shard| shard.map(|shard| shard.port().node.world().now()));
        let took = now.map(|now| now.since(self.began)).unwrap_or_default();
        let end = End { outcome: self.outcome.told(), took };
        let (actor, method, caller) = (&self.actor, self.method, self.caller.take());
        let (queued, came_with) = (self.queued, self.came_with.take());
        let call = CallInfo { actor, method, caller, queued, came_with, baggage: &mut self.baggage };
        self.chain.iter().rev().for_each(|one| one.finished(&call, &end));
    }
}

const OK: u8 = 1;
const OWN_ERROR: u8 = 2;
const FAILURE: u8 = 3;
