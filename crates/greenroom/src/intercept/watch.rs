//! Interceptors around one turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use greenroom_world::Timestamp;

use super::{CallInfo, End, Interceptor, Outcome};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::context::TraceContext;
use crate::shard::Shard;
use crate::shard::baggage::Load;

/// What a turn's caller was told, to be read when the turn is over.
#[derive(Clone, Default)]
pub(crate) struct OutcomeCell(Arc<AtomicU8>);

impl OutcomeCell {
    pub(crate) fn tell(&self, outcome: Outcome) {
        let byte = match outcome {
            Outcome::Broken | Outcome::Refused => BROKEN,
            Outcome::Ok => OK,
            Outcome::Error => ERROR,
        };
        self.0.store(byte, Ordering::Relaxed);
    }

    fn told(&self) -> Outcome {
        match self.0.load(Ordering::Relaxed) {
            OK => Outcome::Ok,
            ERROR => Outcome::Error,
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

const BROKEN: u8 = 0;
const OK: u8 = 1;
const ERROR: u8 = 2;
