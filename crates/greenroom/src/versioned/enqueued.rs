//! An update on its way.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use greenroom_protocols::bcas::Applied;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::VersionedStateWithOutput;
use super::instance::{Instance, Taken};
use super::tally::Asked;
use crate::shard::Shard;
use crate::state::StateError;

/// An update that has been enqueued. It needs nothing more; `.await` it to wait until it is confirmed, for what it gave.
pub struct Enqueued<S: VersionedStateWithOutput> {
    /// Where, and what became of it there; `None` if the actor is not active.
    taken: Option<(Arc<Instance>, Taken)>,
    state: PhantomData<fn() -> S>,
}

/// Why nothing came of an update.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The update was rejected: it has its place in the sequence, and no effect there.
    #[error("the update was rejected: {reason}")]
    Rejected {
        /// What its `apply` said, or its panic.
        reason: String,
    },
    /// The update is confirmed; what it gave is not known here.
    #[error("the update is confirmed, by another's write: what it gave is not known")]
    OutputUnknown,
    /// It was not confirmed.
    #[error(transparent)]
    State(#[from] StateError),
}

impl<S: VersionedStateWithOutput> Enqueued<S> {
    pub(super) fn new(taken: Option<(Arc<Instance>, Taken)>) -> Self {
        Self { taken, state: PhantomData }
    }

    async fn outcome(self) -> Result<S::Output, UpdateError> {
        let Some((instance, taken)) = self.taken else { return Err(not_active().into()) };
        let mut outcome = match taken {
            Taken::Waits(outcome) => outcome,
            Taken::Full => return Err(instance.overflow().into()),
            Taken::Rejected(reason) => return Err(UpdateError::Rejected { reason }),
        };
        instance.note(Asked::Confirm);
        // What is confirmed has had its outcome sent before.
        instance.confirm(limit()).await?;
        match outcome.try_recv() {
            Ok(Applied::Output(output)) => output.typed::<S>().ok_or(UpdateError::OutputUnknown),
            Ok(Applied::Rejected(rejected)) => Err(UpdateError::Rejected { reason: rejected.to_string() }),
            Ok(Applied::Confirmed) => Err(UpdateError::OutputUnknown),
            Err(_) => Err(instance.unconfirmed("the activation has ended").into()),
        }
    }
}

impl<S: VersionedStateWithOutput> IntoFuture for Enqueued<S> {
    type Output = Result<S::Output, UpdateError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// # Cancel safety
    /// Dropping the future gives up the outcome, not the update.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.outcome())
    }
}

/// What is left of the current turn's time.
pub(super) fn limit() -> Option<std::time::Duration> {
    Shard::with(|shard| shard.and_then(Shard::time_left))
}

pub(super) fn not_active() -> StateError {
    StateError::not_loaded("", "the actor is not active yet; use its versioned states from `activated` on")
}
