//! Credit between two nodes: how many bytes of calls may be on a connection that the other side has not dealt with.
//!
//! The receiver gives a window; the sender sends while less than that is outstanding, so at most one frame more. The receiver
//! counts back what it has dealt with, as a total, which may be lost, repeated and overtaken; it says so when a quarter of
//! the window has gathered, by which time a sender that waits has always something coming. Replies cost no credit: they are
//! answers to calls that did, and must pass when calls cannot.
//!
//! [`Transit`] tells how long calls were under way, from the sender's clock in its messages: what is behind the fastest
//! of them was held up. It knows nothing of the two clocks but that they run at about the same pace.

use std::time::Duration;

use thiserror::Error;

use crate::time::Timestamp;

/// The sending side of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// `None` for a peer that gives no credit and wants none.
    window: Option<u64>,
    sent: u64,
    granted: u64,
}

/// The receiving side of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    window: u64,
    received: u64,
    done: u64,
    told: u64,
}

/// A peer that does not keep to its credit: its connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CreditError {
    /// It sent calls without credit.
    #[error("the peer sends calls beyond its credit of {window} bytes")]
    Overdrawn {
        /// The window.
        window: u64,
    },
    /// It counted back more than it was sent.
    #[error("the peer counts {granted} bytes back, of {sent} that it was sent")]
    Overpaid {
        /// What it counts back.
        granted: u64,
        /// What it was sent.
        sent: u64,
    },
}

impl Sending {
    /// A fresh connection to a peer that gave this window.
    pub fn new(window: Option<u64>) -> Self {
        Self { window, sent: 0, granted: 0 }
    }

    /// Whether another call may leave, of whatever size.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.window.is_none_or(|window| self.sent - self.granted < window)
    }

    /// Notes that so many bytes have left.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        assert!(self.may_send(), "a call leaves without credit");
        self.sent += bytes;
    }

    /// Takes in what the peer has counted back in all.
    ///
    /// # Errors
    /// [`CreditError::Overpaid`].
    pub fn granted(&mut self, total: u64) -> Result<(), CreditError> {
        if total > self.sent {
            return Err(CreditError::Overpaid { granted: total, sent: self.sent });
        }
        self.granted = self.granted.max(total);
        Ok(())
    }
}

impl Receiving {
    /// A fresh connection from a peer that is given this window.
    pub fn new(window: u64) -> Self {
        Self { window, received: 0, done: 0, told: 0 }
    }

    /// Takes in a call of so many bytes.
    ///
    /// # Errors
    /// [`CreditError::Overdrawn`].
    #[inline]
    pub fn received(&mut self, bytes: u64) -> Result<(), CreditError> {
        if self.received - self.told >= self.window {
            return Err(CreditError::Overdrawn { window: self.window });
        }
        self.received += bytes;
        Ok(())
    }

    /// Notes that all that came has been dealt with.
    #[inline]
    pub fn all_done(&mut self) {
        self.done = self.received;
    }

    /// The total to tell the peer, if it is time.
    #[inline]
    pub fn due(&mut self) -> Option<u64> {
        assert!(self.told <= self.done && self.done <= self.received, "more is counted back than came");
        if self.done - self.told < self.window.div_ceil(4) {
            return None;
        }
        self.told = self.done;
        Some(self.told)
    }

    /// The total that was last told.
    pub fn told(&self) -> u64 {
        self.told
    }
}

/// How long what comes in was under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transit {
    /// The peer's clock in its last stamp, in µs.
    stamp: u64,
    /// The least difference of the clocks in this period, and in the one before.
    least: Option<(i64, i64)>,
    period: Timestamp,
}

impl Transit {
    /// The peer's clock said `clock` µs when it wrote what is read at `now`.
    pub fn stamped(&mut self, now: Timestamp, clock: u64) {
        let difference = apart(now, clock);
        let passed = now.since(self.period);
        self.least = Some(match self.least {
            None => (difference, difference),
            Some(_) if passed >= PERIOD * 2 => (difference, difference),
            Some((this, _)) if passed >= PERIOD => (difference, this),
            Some((this, before)) => (this.min(difference), before),
        });
        if passed >= PERIOD || self.stamp == 0 {
            self.period = now;
        }
        self.stamp = clock;
    }

    /// How long a call was held up at least that is read at `now`, was written within [`STAMP_EVERY`] after the last stamp,
    /// and follows it.
    pub fn delay(&self, now: Timestamp) -> Duration {
        let Some((this, before)) = self.least else { return Duration::ZERO };
        let behind = apart(now, self.stamp).saturating_sub(this.min(before));
        Duration::from_micros(behind.max(0) as u64).saturating_sub(SLACK)
    }
}

/// Returns by how many microseconds `now` is ahead of a peer's clock, which may say anything.
fn apart(now: Timestamp, clock: u64) -> i64 {
    i64::try_from(now.as_nanos() / 1_000).unwrap_or(i64::MAX).saturating_sub_unsigned(clock)
}

/// A sender stamps when it has not for so long.
pub const STAMP_EVERY: Duration = Duration::from_millis(500);
/// Time over which the fastest message counts.
const PERIOD: Duration = Duration::from_secs(10);
/// What is not counted as delay: the time between two stamps, and what two clocks may part over two periods at the drift of a
/// hundredth each.
const SLACK: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::mix::mix;

    #[test]
    fn whatever_a_peers_clock_says_a_delay_is_told() {
        let now = Timestamp::default() + Duration::from_secs(1);
        for clocks in [[0, u64::MAX], [u64::MAX, 0], [1 << 63, 1 << 63], [u64::MAX, 1 << 62]] {
            let mut transit = Transit::default();
            clocks.into_iter().for_each(|clock| transit.stamped(now, clock));
            let _ = transit.delay(Timestamp::NEVER);
        }
    }

    #[test]
    fn a_peer_without_credit_is_sent_everything() {
        let mut sending = Sending::new(None);
        sending.sent(u64::MAX / 2);
        assert!(sending.may_send());
    }

    #[test]
    fn who_sends_beyond_its_credit_is_found_out() {
        let mut receiving = Receiving::new(100);
        assert_eq!(receiving.received(60), Ok(()));
        assert_eq!(receiving.received(5_000), Ok(()), "one frame may be over");
        assert_eq!(receiving.received(1), Err(CreditError::Overdrawn { window: 100 }));
    }

    #[test]
    fn who_counts_back_what_was_never_sent_is_found_out() {
        let mut sending = Sending::new(Some(100));
        sending.sent(60);
        assert_eq!(sending.granted(61), Err(CreditError::Overpaid { granted: 61, sent: 60 }));
        assert_eq!(sending.granted(60), Ok(()));
        assert_eq!(sending.granted(30), Ok(()), "an older total changes nothing");
        assert!(sending.may_send());
    }

    /// Random sizes, delays and lost totals: nobody who keeps to the rules is found at fault, what is outstanding is
    /// bounded, and a sender never waits for a receiver that has dealt with everything.
    #[test]
    fn whatever_the_order_an_honest_sender_is_never_stuck_and_never_at_fault() {
        for seed in 0..300_u64 {
            let mut dice = mix(seed);
            let mut random = |max: u64| {
                dice = mix(dice);
                dice % max
            };
            let window = 1 + random(1_000);
            let frame_max = 1 + random(2_000);
            let (mut sending, mut receiving) = (Sending::new(Some(window)), Receiving::new(window));
            let (mut calls, mut totals) = (VecDeque::new(), VecDeque::new());
            let (mut moved, mut waiting) = (0, 0_u64);
            for _ in 0..2_000 {
                match random(4) {
                    0 if sending.may_send() => {
                        let bytes = 1 + random(frame_max);
                        sending.sent(bytes);
                        calls.push_back(bytes);
                    }
                    1 => {
                        if let Some(bytes) = calls.pop_front() {
                            receiving.received(bytes).expect("it is honest");
                            waiting += bytes;
                        }
                    }
                    2 if random(3) == 0 => {
                        receiving.all_done();
                        (moved, waiting) = (moved + waiting, 0);
                        totals.extend(receiving.due());
                    }
                    3 => {
                        if let Some(total) = totals.pop_front() {
                            sending.granted(total).expect("it is honest");
                        }
                    }
                    _ => {}
                }
                let outstanding = calls.iter().sum::<u64>() + waiting;
                assert!(outstanding < window + frame_max, "seed {seed}");
            }
            assert!(moved > window, "seed {seed}");
            while let Some(bytes) = calls.pop_front() {
                receiving.received(bytes).expect("it is honest");
            }
            receiving.all_done();
            totals.extend(receiving.due());
            totals.drain(..).for_each(|total| sending.granted(total).expect("it is honest"));
            assert!(sending.may_send(), "seed {seed}: all is dealt with, and it waits");
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn what_was_held_up_is_known_and_what_was_quick_is_not_blamed() {
        let mut transit = Transit::default();
        // The clocks differ by an hour.
        transit.stamped(at(3_600_005), 1_000);
        assert_eq!(transit.delay(at(3_600_005)), Duration::ZERO);
        transit.stamped(at(3_601_007), 1_001_000);
        assert_eq!(transit.delay(at(3_601_400)), Duration::ZERO, "it may have been written after the stamp");
        // The next ones wait for eight seconds in somebody's buffer.
        transit.stamped(at(3_610_000), 2_001_000);
        let delay = transit.delay(at(3_610_000));
        assert!(delay > Duration::from_secs(7) && delay < Duration::from_secs(8), "{delay:?}");
    }

    #[test]
    fn clocks_that_drift_apart_blame_nobody() {
        let mut transit = Transit::default();
        for second in 0..10_000_u64 {
            // The receiver's clock gains two hundredths on the sender's.
            let now = at(1_000_000 + second * 1_020 + second % 7);
            transit.stamped(now, 1 + second * 1_000_000);
            assert_eq!(transit.delay(now), Duration::ZERO, "after {second} s");
        }
    }

    #[test]
    fn after_a_long_silence_the_difference_is_measured_anew() {
        let mut transit = Transit::default();
        transit.stamped(at(1_000), 1_000_000);
        transit.stamped(at(500_000), 490_000_000);
        assert_eq!(transit.delay(at(500_000)), Duration::ZERO);
    }
}
