//! Which beats come.

use std::time::Duration;

use crate::arrivals::Times;
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

/// Arrivals without an end, the same for the same seed.
pub(super) struct Arrivals {
    times: Times,
    dice: Dice,
    monitors: u64,
    blocking_part: f64,
}

impl Arrivals {
    /// So many a second, for monitors in any order, a part of which block.
    pub(super) fn new(seed: u64, rate: f64, monitors: u32, blocking_part: f64) -> Self {
        Self { times: Times::new(seed, rate), dice: Dice::new(!seed), monitors: u64::from(monitors), blocking_part }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        Some(Arrival {
            at: self.times.next()?,
            monitor: self.dice.below(self.monitors) as usize,
            blocks: self.dice.part() < self.blocking_part,
        })
    }
}

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
    fn beats_come_in_the_parts_that_were_asked_for() {
        let count = 200_000;
        let all: Vec<Arrival> = Arrivals::new(7, 5000.0, 20, 0.2).take(count).collect();
        let blocking = all.iter().filter(|arrival| arrival.blocks).count() as f64;
        assert!((blocking / (0.2 * count as f64) - 1.0).abs() < 0.02, "{blocking}");
        for monitor in 0..20 {
            let beats = all.iter().filter(|arrival| arrival.monitor == monitor).count();
            assert!((beats as f64 / (count as f64 / 20.0) - 1.0).abs() < 0.1, "monitor {monitor}: {beats}");
        }
    }
}
