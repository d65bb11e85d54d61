//! Who has come to a node's listeners and was not let in, and frames that nobody could read.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_world::Timestamp;

/// Counts of what was refused.
#[derive(Default)]
pub(crate) struct Strangers {
    bad_frames: AtomicU64,
    refused: AtomicU64,
    /// When one was last warned of, in nanoseconds of the world's clock; 0 for never.
    told: AtomicU64,
}

impl Strangers {
    pub(crate) fn count_bad_frame(&self) {
        self.bad_frames.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn bad_frames(&self) -> u64 {
        self.bad_frames.load(Ordering::Relaxed)
    }

    /// Counts a connection that was refused.
    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that was refused at `now`. A warning says why, now and then: strangers must not fill the log.
    pub(crate) fn refuse(&self, now: Timestamp, from: &str, why: &io::Error) {
        self.count_refused();
        let told = self.told.load(Ordering::Relaxed);
        if told == 0 || now.since(Timestamp::from_nanos(told)) >= PAUSE {
            self.told.store(now.as_nanos().max(1), Ordering::Relaxed);
            tracing::warn!(%from, %why, total = self.refused(), "a connection was refused");
        } else {
            tracing::debug!(%from, %why, "a connection was refused");
        }
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Time between two warnings.
const PAUSE: Duration = Duration::from_secs(10);
