//! Which messages are sampled.

use std::time::Duration;

use super::budget::SAMPLES_MIN;

/// Counts messages down to the next sample: one load, one store and one branch for each.
///
/// A gap is drawn evenly from [1, 2s - 1], so that its mean is the stride s and no rhythm of the messages meets a rhythm of the
/// samples. Each second the stride is set anew by what came, so that about as many samples are taken as there is a budget for, and not more.
#[derive(Clone, Debug)]
pub struct Gap {
    left: u32,
    stride: u32,
    /// The stride under which the gap that is counted down was drawn.
    weight: u32,
    /// Samples in this second, and the messages that they stand for.
    taken: u32,
    seen: u64,
    /// Samples at most in this second.
    budget: u32,
    /// Samples at which the stride is doubled within the second.
    doubles_at: u32,
    drawn: bool,
}

impl Default for Gap {
    fn default() -> Self {
        Self::new()
    }
}

impl Gap {
    /// The next message is sampled, and all until there are too many.
    pub fn new() -> Self {
        let (budget, doubles_at) = (SAMPLES_MAX, doubles_at(SAMPLES_MAX));
        Self { left: 1, stride: 1, weight: 1, taken: 0, seen: 0, budget, doubles_at, drawn: true }
    }

    /// One that always takes its stride for a gap.
    #[doc(hidden)]
    pub fn not_drawn() -> Self {
        Self { drawn: false, ..Self::new() }
    }

    /// Counts a message. If this is true, it is sampled: [`Gap::sampled`] must be called, else no other one will ever be.
    #[inline]
    pub fn message(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    /// Messages to the next sample, that one counted.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// For who counts down by itself, from [`Gap::left`]: all but the next one to be sampled have come, and so has that.
    pub fn due(&mut self) {
        self.left = 0;
    }

    /// How many messages the sample stands for. `draw` is a random word of its own.
    ///
    /// # Panics
    /// If the message was not one to be sampled.
    pub fn sampled(&mut self, draw: u64) -> u32 {
        assert_eq!(self.left, 0, "a message is sampled whose turn it is not");
        let weight = self.weight;
        self.taken += 1;
        self.seen += u64::from(weight);
        if self.taken >= self.doubles_at {
            // More come than in the second before.
            self.stride = self.stride.saturating_mul(2).min(STRIDE_MAX);
            // Sixteen times, for a thousand times as many messages as the budget, before there are too many.
            self.doubles_at += (self.budget - doubles_at(self.budget)) / 16;
        }
        self.begin(draw);
        weight
    }

    /// About so many messages have come since the last second.
    pub fn messages(&self) -> u64 {
        self.seen
    }

    /// Sets the stride by what came in the time that has passed, so that no more than `budget` samples are taken in the next second: to be
    /// called about once in one. A gap is cut short that is longer than any new one. `draw` is a random word of its own.
    pub fn second(&mut self, passed: Duration, budget: u32, draw: u64) {
        self.budget = budget.clamp(SAMPLES_MIN, SAMPLES_MAX);
        let may_be = f64::from(self.budget) * passed.as_secs_f64();
        let stride = (self.seen as f64 * SLACK / may_be.max(1.0)).ceil();
        self.stride = (stride as u32).clamp(1, STRIDE_MAX);
        (self.taken, self.seen, self.doubles_at) = (0, 0, doubles_at(self.budget));
        if self.left >= 2 * self.stride {
            self.begin(draw);
        }
    }

    fn begin(&mut self, draw: u64) {
        self.weight = self.stride;
        let choices = u64::from(2 * self.stride - 1);
        self.left = if self.drawn { 1 + (draw % choices) as u32 } else { self.stride };
    }

    /// The mean gap.
    pub fn stride(&self) -> u32 {
        self.stride
    }
}

/// Samples at which more is known to come than in the second before.
fn doubles_at(budget: u32) -> u32 {
    budget / 4 * 3
}

/// Samples a second, at most.
pub const SAMPLES_MAX: u32 = 8 * 1024;
/// A sample stands for so many messages at most: more would come than any shard can send.
const STRIDE_MAX: u32 = 1 << 20;
/// The stride is set for so much more than came, as the next second may bring more.
const SLACK: f64 = 1.5;
