//! Weights that lose half of themselves in [`HALF_LIFE`], without being touched (forward decay: Cormode et al., ICDE '09).

use std::time::Duration;

use crate::time::Timestamp;

/// What turns weights at one time into weights at an origin and back: weights at the origin compare and add as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decay {
    origin: Timestamp,
}

impl Decay {
    /// Weights as they are now.
    pub fn new(now: Timestamp) -> Self {
        Self { origin: now }
    }

    /// How much a weight of `now` is worth at the origin.
    #[inline]
    pub fn factor(&self, now: Timestamp) -> f64 {
        half_lives(now.since(self.origin)).exp2()
    }

    /// Brings the origin to `now` if it is old. All weights are then to be multiplied by what this gives.
    pub fn renew(&mut self, now: Timestamp) -> Option<f64> {
        let age = half_lives(now.since(self.origin));
        (age >= ORIGIN_AGE_MAX).then(|| {
            self.origin = now;
            (-age).exp2()
        })
    }
}

/// How much comes in a second to a sum that decays, if it stays as it is.
pub fn a_second(sum: f64) -> f64 {
    sum * std::f64::consts::LN_2 / HALF_LIFE.as_secs_f64()
}

/// The same of a sum to which nothing was added before `counted` ago.
pub fn a_second_within(sum: f64, counted: Duration) -> f64 {
    a_second(sum) / (1.0 - (-half_lives(counted.max(COUNTED_MIN))).exp2())
}

fn half_lives(time: Duration) -> f64 {
    time.as_secs_f64() / HALF_LIFE.as_secs_f64()
}

/// Time in which a weight loses half of itself.
pub const HALF_LIFE: Duration = Duration::from_secs(30);
/// Half-lives after which the origin is brought up to date, so that a weight at the origin stays far below the largest `f32`.
const ORIGIN_AGE_MAX: f64 = 64.0;
/// What comes in less time is too little to say how much comes in a second.
const COUNTED_MIN: Duration = Duration::from_secs(1);
