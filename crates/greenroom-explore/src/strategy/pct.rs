//! Probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010): who has the highest priority acts, and loses it at a few random
//! places. Here senders have priorities.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::Chooser;
use crate::numbers::ByNumber;

pub(super) struct Pct {
    random: Random,
    /// By senders.
    priorities: ByNumber<u64>,
    /// At which steps the highest is lost.
    drops: Vec<usize>,
    taken: usize,
}

impl Default for Pct {
    fn default() -> Self {
        Self { random: Random::new(0), priorities: ByNumber::default(), drops: Vec::new(), taken: 0 }
    }
}

impl Chooser for Pct {
    fn begin(&mut self, seed: u64, length: usize) {
        self.random = Random::new(seed);
        self.priorities.clear();
        self.taken = 0;
        let drops = 1 + self.random.index(DROPS_MAX);
        self.drops = (0..drops).map(|_| self.random.index(length.max(1))).collect();
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let Self { random, priorities, drops, taken } = self;
        // The lower half is for those that have lost theirs.
        let mut priority = |step: &Step| *priorities.entry(step.by).or_insert_with(|| random.bits() | 1 << 63);
        let best = |priority: &mut dyn FnMut(&Step) -> u64| {
            let highest = enabled.iter().enumerate().max_by_key(|(index, step)| (priority(step), usize::MAX - index));
            highest.map_or(default, |(index, _)| index)
        };
        let mut chosen = best(&mut priority);
        if drops.contains(taken) {
            priorities.insert(enabled[chosen].by, (1 << 32) - *taken as u64);
            chosen = best(&mut |step| priorities.get(&step.by).copied().unwrap_or(u64::MAX));
        }
        *taken += 1;
        Some(chosen)
    }
}

const DROPS_MAX: usize = 3;
