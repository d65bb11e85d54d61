//! How fast a node gives its actors away.

use std::time::Duration;

use super::Config;
use crate::time::Timestamp;

/// Each move takes its part of a second, by its number and by its bytes, whichever is more; a tenth of a second may be ahead.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Pace {
    paid_until: Timestamp,
}

impl Pace {
    /// When the next move may be ordered.
    pub(super) fn free_at(&self) -> Timestamp {
        self.paid_until - AHEAD
    }

    /// Pays for a move of so many bytes.
    pub(super) fn spend(&mut self, now: Timestamp, bytes: u32, config: &Config) {
        let second = Duration::from_secs(1);
        let by_number = second.as_nanos() / u128::from(config.actors_per_s.max(1));
        let by_bytes = second.as_nanos() * u128::from(bytes) / u128::from(config.bytes_per_s.max(1));
        let nanos = u64::try_from(by_number.max(by_bytes)).unwrap_or(u64::MAX);
        self.paid_until = self.paid_until.max(now) + Duration::from_nanos(nanos);
    }
}

/// How far the pace may be ahead.
const AHEAD: Duration = Duration::from_millis(100);
