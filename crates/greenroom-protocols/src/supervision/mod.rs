//! What becomes of a spawned actor that has failed: restart it after a pause, stop it, or hand its failure to its parent
//! (Armstrong, *Making reliable distributed systems in the presence of software errors*, 2003, §5).
//!
//! One machine an actor. Pure: the time and the random number come in, one decision comes out.

mod policy;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use self::policy::{Exhausted, Strategy};
pub use self::policy::{RESTARTS_MAX, Supervise};
use crate::time::Timestamp;

/// What is to be done with the actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Make it anew after this pause; its address and what waits for it stay.
    Restart {
        /// The pause.
        after: Duration,
    },
    /// End it.
    Stop,
    /// End it, and let its parent fail.
    Escalate,
}

/// The failures of one actor, as far as they matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supervisor {
    policy: Supervise,
    /// When it was restarted within the limit's period, oldest first.
    recent: VecDeque<Timestamp>,
    /// Failures in a row: each came before the actor had run calmly for a while.
    streak: u32,
    last: Option<Timestamp>,
}

impl Supervisor {
    /// For an actor that has not failed yet.
    pub fn new(policy: Supervise) -> Self {
        Self { policy, recent: VecDeque::new(), streak: 0, last: None }
    }

    /// What was said when the actor was spawned.
    pub fn policy(&self) -> &Supervise {
        &self.policy
    }

    /// The actor has failed at `now`. `roll` is 64 random bits for the jitter.
    pub fn failed(&mut self, now: Timestamp, roll: u64) -> Decision {
        match self.policy.strategy {
            Strategy::Stop => return Decision::Stop,
            Strategy::Escalate => return Decision::Escalate,
            Strategy::Restart => {}
        }
        if self.exhausts(now) {
            return match self.policy.exhausted {
                Exhausted::Stop => Decision::Stop,
                Exhausted::Escalate => Decision::Escalate,
            };
        }
        if self.last.is_some_and(|last| now.since(last) > self.calm()) {
            self.streak = 0;
        }
        let after = self.pause(roll);
        assert!(after <= self.policy.back_off.max, "a pause is longer than the longest");
        self.streak = self.streak.saturating_add(1);
        // A pause is no calm: it counts from when the actor runs again.
        self.last = Some(now + after);
        Decision::Restart { after }
    }

    /// Notes a restart, unless it would be one too many.
    fn exhausts(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.policy.limit else { return false };
        while self.recent.front().is_some_and(|oldest| now.since(*oldest) >= limit.period) {
            self.recent.pop_front();
        }
        if self.recent.len() >= limit.restarts as usize {
            return true;
        }
        self.recent.push_back(now);
        assert!(self.recent.len() <= limit.restarts as usize, "an actor is restarted once too often");
        false
    }

    /// The pause before the next restart: doubled with each failure in a row, then shortened by at most the jitter.
    fn pause(&self, roll: u64) -> Duration {
        let back_off = &self.policy.back_off;
        let doubled = back_off.initial.saturating_mul(1_u32.checked_shl(self.streak).unwrap_or(u32::MAX));
        let whole = doubled.min(back_off.max);
        let share = f64::from(back_off.jitter_percent.min(100)) / 100.0 * (roll >> 11) as f64 / (1_u64 << 53) as f64;
        whole - whole.mul_f64(share).min(whole)
    }

    /// An actor that has run for so long without failing begins anew with the shortest pause.
    fn calm(&self) -> Duration {
        self.policy.back_off.max.max(CALM_MIN)
    }
}

/// The shortest time without a failure after which the earlier ones no longer lengthen the pause.
const CALM_MIN: Duration = Duration::from_secs(10);
