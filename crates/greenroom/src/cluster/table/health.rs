//! How the table's store has been answering, for operators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_store::StoreError;
use greenroom_world::World;

/// What this node has seen of the table's store since it started. A refused condition is an answer like any other.
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "it is asked for at the HTTP door alone"))]
pub(crate) struct Health {
    world: Arc<dyn World>,
    store: String,
    answers: AtomicU64,
    failures: AtomicU64,
    /// Nanoseconds of the world's clock; 0 before the first answer.
    answered_at: AtomicU64,
    /// Why the last operation failed, if it did.
    failing: Mutex<Option<String>>,
}

#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "it is asked for at the HTTP door alone"))]
impl Health {
    /// Of a store that messages call `store`, which holds no password.
    pub(crate) fn new(world: Arc<dyn World>, store: String) -> Self {
        let [answers, failures, answered_at] = Default::default();
        Self { world, store, answers, failures, answered_at, failing: Mutex::default() }
    }

    /// Notes what came of one operation.
    pub(super) fn note<T>(&self, result: &Result<T, StoreError>) {
        let failure = result.as_ref().err().filter(|error| !error.is_conflict());
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failure.map(StoreError::to_string);
        if failure.is_some() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        } else {
            self.answers.fetch_add(1, Ordering::Relaxed);
            self.answered_at.store(self.world.now().as_nanos().max(1), Ordering::Relaxed);
        }
    }

    /// The store, as messages call it.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// Operations that were answered.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Operations that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Time since the last answer; `None` before the first.
    pub(crate) fn since_answer(&self) -> Option<Duration> {
        let at = Some(self.answered_at.load(Ordering::Relaxed)).filter(|at| *at > 0)?;
        Some(Duration::from_nanos(self.world.now().as_nanos().saturating_sub(at)))
    }

    /// Why the last operation failed, if it did.
    pub(crate) fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
