//! The host's side of its lease: whether it may act.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Timestamp;

/// A host's right to act in one session. No clocks are compared: all times are of the host's own clock, which must count the time
/// that its machine was suspended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pulse {
    lease: Duration,
    number: u64,
    /// Alives that are not answered yet, the oldest first: when each was sent.
    sent: VecDeque<(u64, Timestamp)>,
    until: Timestamp,
    due: Timestamp,
}

impl Pulse {
    /// The right of a session that was welcomed with `lease`, for a Hello that was sent at `hello`.
    pub fn new(hello: Timestamp, lease: Duration) -> Self {
        let due = hello + lease / ALIVES;
        Self { lease, number: 0, sent: VecDeque::new(), until: hello + own(lease), due }
    }

    /// Whether the host may act: to be asked before each turn, and again after whatever a turn has waited for.
    pub fn may_act(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// When the right ends, unless it is renewed.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// When the next Alive is to be sent.
    pub fn due(&self) -> Timestamp {
        self.due
    }

    /// An Alive is sent `now`, before anything else is done: its number.
    pub fn send(&mut self, now: Timestamp) -> u64 {
        self.number += 1;
        if self.sent.len() == UNANSWERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((self.number, now));
        self.due = now + self.lease / ALIVES;
        self.number
    }

    /// The node has answered the Alive `number`: the right counts from when that was sent. An answer to none changes nothing.
    pub fn answered(&mut self, number: u64, lease: Duration) {
        while let Some(&(oldest, sent)) = self.sent.front().filter(|(oldest, _)| *oldest <= number) {
            self.sent.pop_front();
            if oldest == number {
                self.until = self.until.max(sent + own(lease));
            }
        }
    }
}

/// What the host takes of a lease: clocks may run a little apart.
fn own(lease: Duration) -> Duration {
    lease * 99 / 100
}

/// Alives in the time of a lease.
const ALIVES: u32 = 5;

/// Alives that are remembered without an answer.
const UNANSWERED_MAX: usize = 64;
