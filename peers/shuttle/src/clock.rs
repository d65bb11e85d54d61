//! What a run takes of one core.

use std::fs;
use std::time::{Duration, Instant};

/// The time that this thread was on a core, where the system tells; else the time that has passed.
pub struct Clock {
    began: Instant,
    on_core: Option<Duration>,
}

impl Clock {
    pub fn start() -> Self {
        Self { began: Instant::now(), on_core: on_core() }
    }

    pub fn took(&self) -> Duration {
        let on_core = self.on_core.zip(on_core()).map(|(before, now)| now.saturating_sub(before));
        on_core.unwrap_or_else(|| self.began.elapsed())
    }
}

fn on_core() -> Option<Duration> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
