//! When requests come, whatever becomes of those before them.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::dice::Dice;
use crate::report::unix_ns;

/// Times at which requests are due, in nanoseconds since 1970: those that are due together come together.
pub(super) type Due = Vec<u64>;

/// Starts a thread that tells when requests are due, `rate` a second in the mean and as if nobody knew of each other
/// (Poisson), from `from_ns` until `until_ns`. Who takes them late finds out how late by their times.
pub(super) fn start(rate: f64, seed: u64, from_ns: u64, until_ns: u64) -> mpsc::Receiver<Due> {
    let (send, receive) = mpsc::channel(WAITING_LEN_MAX);
    std::thread::spawn(move || {
        let mut gaps = Gaps { dice: Dice::new(seed), rate };
        let mut next = from_ns + gaps.next();
        while next < until_ns {
            std::thread::sleep(Duration::from_nanos(next.saturating_sub(unix_ns())));
            let now = unix_ns().min(until_ns);
            let mut due = Vec::new();
            while next < now {
                due.push(next);
                next += gaps.next();
            }
            if !due.is_empty() && send.blocking_send(due).is_err() {
                return;
            }
        }
    });
    receive
}

/// Times between requests.
struct Gaps {
    dice: Dice,
    rate: f64,
}

impl Gaps {
    /// Nanoseconds to the next one.
    fn next(&mut self) -> u64 {
        // A rate of nothing has no next request.
        Duration::try_from_secs_f64(self.dice.gap(self.rate)).map_or(u64::MAX / 4, |gap| gap.as_nanos() as u64)
    }
}

/// Sets of requests that wait to be taken.
const WAITING_LEN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_of_the_rate_and_vary_as_those_of_a_poisson_process() {
        let mut gaps = Gaps { dice: Dice::new(5), rate: 1000.0 };
        let drawn: Vec<f64> = (0..20_000).map(|_| gaps.next() as f64).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
    }

    #[test]
    fn requests_are_told_in_order_and_within_their_time() {
        let from = unix_ns();
        let mut arrivals = start(2000.0, 1, from, from + 100_000_000);
        let mut all = Vec::new();
        while let Some(due) = arrivals.blocking_recv() {
            all.extend(due);
        }
        assert!(all.is_sorted() && all.iter().all(|at| (from..from + 100_000_000).contains(at)));
        assert!(!all.is_empty());
    }
}
