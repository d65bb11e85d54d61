//! Weights that lose half of themselves in [`HALF_LIFE`], without being touched (forward decay: Cormode et al., ICDE '09).

use std::time::Duration;

use crate::time::Timestamp;

/// What turns weights at one time into weights at an origin and back: weights at the origin compare and add as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decay {
    origin: Timestamp,
}

impl Decay {
    /// Weights as they are now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { origin: now }
    }

    /// How much a weight of `now` is worth at the origin.
    #[inline]
    pub(crate) fn factor(&self, now: Timestamp) -> f64 {
        half_lives(now.since(self.origin)).exp2()
    }

    /// Brings the origin to `now` if it is old. All weights are then to be multiplied by what this gives.
    pub(crate) fn renew(&mut self, now: Timestamp) -> Option<f64> {
        let age = half_lives(now.since(self.origin));
        (age >= ORIGIN_AGE_MAX).then(|| {
            self.origin = now;
            (-age).exp2()
        })
    }
}

/// How much comes in a second to a sum that decays, if it stays as it is.
pub(crate) fn a_second(sum: f64) -> f64 {
    sum * std::f64::consts::LN_2 / HALF_LIFE.as_secs_f64()
}

fn half_lives(time: Duration) -> f64 {
    time.as_secs_f64() / HALF_LIFE.as_secs_f64()
}

/// Time in which a weight loses half of itself.
pub const HALF_LIFE: Duration = Duration::from_secs(30);
/// Half-lives after which the origin is brought up to date, so that a weight at the origin stays far below the largest `f32`.
const ORIGIN_AGE_MAX: f64 = 64.0;
