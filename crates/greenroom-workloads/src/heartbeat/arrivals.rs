//! When beats come: at random, independent of each other, whether those before them are answered or not.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver};

use crate::dice::Dice;

/// A beat that is due.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Arrival {
    /// When, from the beginning on.
    pub(super) at: Duration,
    /// The place of the monitor that it is for.
    pub(super) monitor: usize,
    /// Whether it blocks its thread.
    pub(super) blocks: bool,
}

/// Arrivals without an end: a Poisson process, the same for the same seed.
pub(super) struct Arrivals {
    dice: Dice,
    rate: f64,
    monitors: u64,
    blocking_part: f64,
    at_s: f64,
}

impl Arrivals {
    /// So many a second, for monitors in any order, a part of which block.
    pub(super) fn new(seed: u64, rate: f64, monitors: u32, blocking_part: f64) -> Self {
        Self { dice: Dice::new(seed), rate, monitors: u64::from(monitors), blocking_part, at_s: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.at_s += self.dice.gap(self.rate);
        Some(Arrival {
            at: Duration::try_from_secs_f64(self.at_s).ok()?,
            monitor: self.dice.below(self.monitors) as usize,
            blocks: self.dice.part() < self.blocking_part,
        })
    }
}

/// What came due of what counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Offered {
    /// Beats that came due.
    pub(super) beats: u64,
    /// Those of them that found too many others waiting to be sent.
    pub(super) refused: u64,
}

/// Hands beats on when they are due, from a thread of its own, counted from `began` on, until `span` is over. Those that are due
/// from `settle` on count.
pub(super) fn start(
    arrivals: Arrivals,
    began: Instant,
    settle: Duration,
    span: Duration,
) -> std::io::Result<(Receiver<Arrival>, JoinHandle<Offered>)> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let hand_on = move || {
        let mut offered = Offered::default();
        for arrival in arrivals.take_while(|arrival| arrival.at < span) {
            // What has come due during a sleep goes out at once, all of it.
            let early = (began + arrival.at).saturating_duration_since(Instant::now());
            if !early.is_zero() {
                thread::sleep(early);
            }
            let counts = u64::from(arrival.at >= settle);
            offered.beats += counts;
            match sender.try_send(arrival) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => offered.refused += counts,
                Err(TrySendError::Closed(_)) => break,
            }
        }
        offered
    };
    let thread = thread::Builder::new().name("bench-arrivals".to_owned()).spawn(hand_on)?;
    Ok((receiver, thread))
}

/// Beats that are due and wait to be sent; more are refused.
const WAITING_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_when_beats_come_to_whom_and_which_of_them_block() {
        let some = |seed| Arrivals::new(seed, 1000.0, 10, 0.5).take(100).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn beats_come_at_the_rate_and_in_the_parts_that_were_asked_for() {
        let count = 200_000;
        let all: Vec<Arrival> = Arrivals::new(7, 5000.0, 20, 0.2).take(count).collect();
        assert!(all.is_sorted_by_key(|arrival| arrival.at));
        let near = |seen: f64, wanted: f64| (seen / wanted - 1.0).abs() < 0.02;
        let gaps: Vec<f64> = all.windows(2).map(|two| (two[1].at - two[0].at).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!(near(mean, 1.0 / 5000.0), "{mean}");
        assert!(near(square, 2.0 * mean * mean), "gaps of a Poisson process vary as much as they are long");
        let blocking = all.iter().filter(|arrival| arrival.blocks).count();
        assert!(near(blocking as f64, 0.2 * count as f64), "{blocking}");
        for monitor in 0..20 {
            let beats = all.iter().filter(|arrival| arrival.monitor == monitor).count();
            assert!((beats as f64 / (count as f64 / 20.0) - 1.0).abs() < 0.1, "monitor {monitor}: {beats}");
        }
    }

    #[test]
    fn what_nobody_takes_is_counted_as_refused_once_as_many_wait_as_may() {
        let (span, settle) = (Duration::from_millis(20), Duration::from_millis(10));
        let arrivals = || Arrivals::new(3, 1e6, 10, 0.0);
        let due = arrivals().take_while(|arrival| arrival.at < span).count();
        let settling = arrivals().take_while(|arrival| arrival.at < settle).count();
        let (mut waiting, thread) = start(arrivals(), Instant::now(), settle, span).expect("there are threads");
        let offered = thread.join().expect("it does not panic");
        assert_eq!(offered.beats, (due - settling) as u64);
        assert!(settling > WAITING_MAX, "those before fill the queue");
        assert_eq!(offered.refused, offered.beats);
        let taken = std::iter::from_fn(|| waiting.try_recv().ok()).count();
        assert_eq!(taken, WAITING_MAX);
    }
}
