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
/// Who looks for gains where there are none takes as many samples as who finds some, and those are what the search costs. So after a change of
/// the cluster it is [`SAMPLES_MIN`] for [`CALM_SECONDS`] if nobody may move in them, and whole after that. After [`EAGER_SECONDS`] busy seconds without
/// gains it shrinks by a tenth a second, down to [`SAMPLES_MIN`]; it doubles while moves save messages, and when so few messages come that it binds
/// nobody. Nobody becomes blind by it: an actor is judged by as many samples as before.
#[derive(Clone, Debug)]
pub struct Budget {
    samples: u32,
    /// Seconds before it is whole.
    calm: u32,
    /// Busy seconds before it shrinks.
    eager: u32,
    lately: Savings,
}

impl Default for Budget {
    fn default() -> Self {
        Self { samples: SAMPLES_MAX, calm: 0, eager: EAGER_SECONDS, lately: Savings::default() }
    }
}

impl Budget {
    /// Samples of either kind in the next second, after one in which so much was saved and so many messages of one kind came.
    pub fn second(&mut self, savings: Savings, messages: u64) -> u32 {
        let before = self.lately.faded();
        self.lately = Savings { counted: before.counted + savings.counted, saved: before.saved + savings.saved };
        if self.calm > 0 {
            self.calm -= 1;
            return SAMPLES_MIN;
        }
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

    /// The cluster has changed: there may be something to gain again, for who moves between nodes not before it is `calm` no more.
    pub fn renew(&mut self, calm: bool) {
        let calm = if calm { CALM_SECONDS } else { 0 };
        *self = Self { samples: SAMPLES_MAX, calm, eager: EAGER_SECONDS - calm, ..*self };
    }
}

/// Samples of either kind a second, however little there is to gain.
pub const SAMPLES_MIN: u32 = SAMPLES_MAX / 8;
/// Nobody moves to another node in the first ten seconds after a change of the cluster; three of them show who would do better there.
pub const CALM_SECONDS: u32 = 7;
/// Busy seconds, those included, in which nothing need be gained.
pub const EAGER_SECONDS: u32 = 20;
/// The part of the messages that has to be saved for a full budget. A move saves nearly all messages of its actor.
const GAIN_MIN: f64 = 0.02;
/// What is left of a second's savings after the next one.
const KEPT: f64 = 0.9;
