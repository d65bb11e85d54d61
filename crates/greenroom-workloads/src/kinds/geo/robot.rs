//! Robots: simulated clients, one set in each cluster.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom::prelude::*;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{Access, Failure, Kept};
use crate::dice::Dice;
use crate::report;

/// Accesses byte arrays for the driver.
#[derive(Default, Actor)]
pub struct GeoRobot {}

#[actor(instances = "per_cluster")]
impl GeoRobot {
    /// Makes one access of the array called `key`; its time in nanoseconds.
    pub async fn access(&self, cx: &Cx, kept: Kept, key: String, access: Access) -> Result<u64, Failure> {
        let begun = Instant::now();
        kept.access(cx, &key, access, 0, ACCESS_MAX).await?;
        Ok(nanoseconds(begun.elapsed()))
    }

    /// Lets so many robots access one array for a time, each one access after the other.
    pub async fn load(&self, cx: &Cx, load: Load) -> Loaded {
        let end = Instant::now() + Duration::from_millis(load.for_ms);
        let seen = Mutex::new(Seen::default());
        let robots = join_all((0..load.robots).map(|robot| load.access_until(cx, robot, end, &seen)));
        // What is still on its way then would not be counted.
        let _ = tokio::time::timeout(end.saturating_duration_since(Instant::now()), robots).await;
        seen.into_inner().unwrap_or_else(PoisonError::into_inner).end()
    }
}

/// What robots do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    /// The kind of the array.
    pub kept: Kept,
    /// Its key.
    pub key: String,
    /// How many there are.
    pub robots: u32,
    /// Their accesses that read, and those that write.
    pub accesses: [Access; 2],
    /// The part of writes.
    pub updates: f64,
    /// How long.
    pub for_ms: u64,
    /// What their choices are made from.
    pub seed: u64,
}

/// What robots have seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// Accesses that were answered in time.
    pub in_time: u64,
    /// Those that were not.
    pub late: u64,
    /// Those that failed before that.
    pub errors: u64,
    /// The first failure.
    pub complaint: Option<String>,
    /// Times of those that were answered in time.
    pub latency_ns: Vec<(u64, u64)>,
}

struct Seen {
    loaded: Loaded,
    latency: Histogram<u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { loaded: Loaded::default(), latency: report::histogram() }
    }
}

impl Seen {
    fn end(self) -> Loaded {
        Loaded { latency_ns: report::buckets(&self.latency), ..self.loaded }
    }
}

impl Load {
    async fn access_until(&self, cx: &Cx, robot: u32, end: Instant, seen: &Mutex<Seen>) {
        let mut dice = Dice::new(self.seed ^ u64::from(robot) << 32);
        while Instant::now() < end {
            let is_write = dice.part() < self.updates;
            let offset = dice.below(u64::from(u16::MAX)) as u16;
            let begun = Instant::now();
            let done = self.kept.access(cx, &self.key, self.accesses[usize::from(is_write)], offset, IN_TIME).await;
            let took = begun.elapsed();
            {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                match done {
                    Ok(()) if took <= IN_TIME => {
                        seen.loaded.in_time += 1;
                        report::add(&mut seen.latency, nanoseconds(took), 1);
                    }
                    Err(failure) if took < IN_TIME * 9 / 10 => {
                        seen.loaded.errors += 1;
                        seen.loaded.complaint.get_or_insert(failure.message);
                    }
                    _ => seen.loaded.late += 1,
                }
            }
            if took < YIELD_BELOW {
                // An answer that was there at once must not keep the other robots from theirs.
                tokio::task::yield_now().await;
            }
        }
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Time after which an answer does not count any more (Geo §4.3.1).
pub(crate) const IN_TIME: Duration = Duration::from_millis(1500);
/// Time of a single access.
const ACCESS_MAX: Duration = Duration::from_secs(60);
const YIELD_BELOW: Duration = Duration::from_micros(50);
