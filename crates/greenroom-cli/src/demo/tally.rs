//! What became of the demo's calls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts what all of the demo's callers see, and tells them when to stop.
#[derive(Default)]
pub(super) struct Tally {
    stopped: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
    last_micros: AtomicU64,
}

impl Tally {
    /// Counts a request that began at `began`: calls that were answered, and those that failed.
    pub(super) fn count(&self, began: Instant, answered: u64, failed: u64) {
        self.answered.fetch_add(answered, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
        if answered > 0 {
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.last_micros.store(micros, Ordering::Relaxed);
        }
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// How long the last request took.
    pub(super) fn last_latency(&self) -> Duration {
        Duration::from_micros(self.last_micros.load(Ordering::Relaxed))
    }
}
