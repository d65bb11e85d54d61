//! When something comes: at random, independent of each other (a Poisson process), whether what came before is answered or not.

use std::ops::Range;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver};

use crate::dice::Dice;

/// Times without an end, from the beginning on; the same for the same seed.
pub(crate) struct Times {
    dice: Dice,
    rate: f64,
    at_s: f64,
}

impl Times {
    /// So many a second.
    pub(crate) fn new(seed: u64, rate: f64) -> Self {
        Self { dice: Dice::new(seed), rate, at_s: 0.0 }
    }
}

impl Iterator for Times {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.at_s += self.dice.gap(self.rate);
        Duration::try_from_secs_f64(self.at_s).ok()
    }
}

/// What came due of what counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Offered {
    /// All of it.
    pub(crate) arrivals: u64,
    /// What of it found too much else waiting to be taken.
    pub(crate) refused: u64,
}

/// Hands arrivals on when they are `due`, from a thread of its own, as times from `began` on. Those before the end of `counted` come; those
/// within it count.
///
/// # Errors
/// There is no thread to be had.
pub(crate) fn start<A: Send + 'static>(
    arrivals: impl Iterator<Item = A> + Send + 'static,
    due: fn(&A) -> Duration,
    began: Instant,
    counted: Range<Duration>,
) -> std::io::Result<(Receiver<A>, JoinHandle<Offered>)> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let hand_on = move || {
        let mut offered = Offered::default();
        for arrival in arrivals.take_while(|arrival| due(arrival) < counted.end) {
            let at = due(&arrival);
            // What has come due during a sleep goes out at once, all of it.
            let early = (began + at).saturating_duration_since(Instant::now());
            if !early.is_zero() {
                thread::sleep(early);
            }
            let counts = u64::from(counted.contains(&at));
            offered.arrivals += counts;
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

/// Arrivals that wait to be taken; more are refused.
const WAITING_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_when_something_comes() {
        let some = |seed| Times::new(seed, 1000.0).take(100).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn times_are_of_the_rate_and_vary_as_those_of_a_poisson_process() {
        let all: Vec<Duration> = Times::new(7, 5000.0).take(200_000).collect();
        assert!(all.is_sorted());
        let near = |seen: f64, wanted: f64| (seen / wanted - 1.0).abs() < 0.02;
        let gaps: Vec<f64> = all.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!(near(mean, 1.0 / 5000.0), "{mean}");
        assert!(near(square, 2.0 * mean * mean), "gaps of a Poisson process vary as much as they are long");
    }

    #[test]
    fn what_nobody_takes_is_counted_as_refused_once_as_much_waits_as_may() {
        let (span, settle) = (Duration::from_millis(20), Duration::from_millis(10));
        let times = || Times::new(3, 1e6);
        let due = times().take_while(|at| *at < span).count();
        let settling = times().take_while(|at| *at < settle).count();
        let started = start(times(), |at| *at, Instant::now(), settle..span);
        let (mut waiting, thread) = started.expect("there are threads");
        let offered = thread.join().expect("it does not panic");
        assert_eq!(offered.arrivals, (due - settling) as u64);
        assert!(settling > WAITING_MAX, "those before fill the queue");
        assert_eq!(offered.refused, offered.arrivals);
        let taken = std::iter::from_fn(|| waiting.try_recv().ok()).count();
        assert_eq!(taken, WAITING_MAX);
    }
}
