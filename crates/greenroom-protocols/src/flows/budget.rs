//! How many messages a shard samples in a second: as many as it may while its moves save messages, and ever fewer while nothing does.

use super::gap::SAMPLES_MAX;

/// What was counted in some time, in messages.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Savings {
    /// All that were sampled, of each end that is on the shard.
    pub counted: f64,
    /// Those of actors that have moved, which are nearer for it, less those that are farther.
    pub saved: f64,
}

impl Savings {
    fn faded(self) -> Self {
        Self { counted: self.counted * KEPT, saved: self.saved * KEPT }
    }
}

/// What a shard spends on samples.
///
/// Who looks for gains where there are none takes as many samples as who finds some, and those are what the search costs. So after
/// [`EAGER_SECONDS`] busy seconds without gains the budget shrinks by a tenth a second, down to [`SAMPLES_MIN`]; it doubles while moves
/// save messages, and when so few messages come that it binds nobody. Nobody becomes blind by it: an actor is judged by as many samples as before.
#[derive(Clone, Debug)]
pub struct Budget {
    samples: u32,
    /// Busy seconds before it shrinks.
    eager: u32,
    lately: Savings,
}

impl Default for Budget {
    fn default() -> Self {
        Self { samples: SAMPLES_MAX, eager: EAGER_SECONDS, lately: Savings::default() }
    }
}

impl Budget {
    /// Samples of either kind in the next second, after one in which so much was saved and so many messages of one kind came.
    pub fn second(&mut self, savings: Savings, messages: u64) -> u32 {
        let before = self.lately.faded();
        self.lately = Savings { counted: before.counted + savings.counted, saved: before.saved + savings.saved };
        let gains = self.lately.saved > GAIN_MIN * self.lately.counted;
        let binds = messages > u64::from(self.samples / 2);
        if gains || !binds {
            self.samples = (self.samples * 2).min(SAMPLES_MAX);
        } else if self.eager > 0 {
            self.eager -= 1;
        } else {
            self.samples = (self.samples / 10 * 9).max(SAMPLES_MIN);
        }
        self.samples
    }

    /// The cluster has changed: there may be something to gain again.
    pub fn renew(&mut self) {
        (self.samples, self.eager) = (SAMPLES_MAX, EAGER_SECONDS);
    }
}

/// Samples of either kind a second, however little there is to gain.
pub const SAMPLES_MIN: u32 = SAMPLES_MAX / 8;
/// Busy seconds in which nothing need be gained: nobody moves in the first ten after a change of the cluster.
pub const EAGER_SECONDS: u32 = 20;
/// The part of the messages that has to be saved for a full budget. A move saves nearly all messages of its actor.
const GAIN_MIN: f64 = 0.02;
/// What is left of a second's savings after the next one.
const KEPT: f64 = 0.9;
