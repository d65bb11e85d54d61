//! The time that clients and lobbies go by.

use tokio::time::Instant;

use crate::report::unix_ns;

/// The machine's time, or that of a simulated world.
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock(Option<Instant>);

impl Clock {
    /// That of the simulated world that this is called in, from now on.
    pub(crate) fn simulated() -> Self {
        Self(Some(Instant::now()))
    }

    /// Whether time is simulated.
    pub(crate) fn is_simulated(self) -> bool {
        self.0.is_some()
    }

    /// Nanoseconds since 1970, or since a simulation began.
    pub(crate) fn now_ns(self) -> u64 {
        self.0.map_or_else(unix_ns, |began| u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
