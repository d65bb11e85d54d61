//! Probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010): who has the highest priority acts, and loses it at a few random
//! places. Here senders have priorities.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::{Chooser, LEARNT_MAX};
use crate::numbers::ByNumber;

pub(super) struct Pct {
    random: Random,
    /// By senders.
    priorities: ByNumber<u64>,
    /// At which steps the highest is lost.
    drops: Vec<usize>,
    taken: usize,
    /// Schedules that were learnt from, and how many steps the longest had.
    learnt: u32,
    length: usize,
}

impl Default for Pct {
    fn default() -> Self {
        let (random, priorities) = (Random::new(0), ByNumber::default());
        Self { random, priorities, drops: Vec::new(), taken: 0, learnt: 0, length: LENGTH }
    }
}

impl Chooser for Pct {
    fn begin(&mut self, seed: u64) {
        if self.learnt < LEARNT_MAX {
            self.learnt += u32::from(self.taken > 0);
            self.length = self.length.max(self.taken);
        }
        self.random = Random::new(seed);
        self.priorities.clear();
        self.taken = 0;
        let drops = 1 + self.random.index(DROPS_MAX);
        self.drops = (0..drops).map(|_| self.random.index(self.length)).collect();
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let Self { random, priorities, drops, taken, .. } = self;
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

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        let (learnt, length) = (self.learnt, self.length);
        (learnt == LEARNT_MAX).then(|| Box::new(Self { learnt, length, ..Self::default() }) as _)
    }
}

const DROPS_MAX: usize = 3;
/// How long a schedule is taken to be before any was run.
const LENGTH: usize = 16;

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::Kind;

    use super::*;

    #[test]
    fn who_has_the_highest_priority_acts_until_it_is_lost() {
        let step = |by| Step { number: by, kind: Kind::Client, at: by, by, born: 0, read: false, queue: 0 };
        let enabled: Vec<Step> = (1..=3).map(step).collect();
        let mut pct = Pct::default();
        let mut changes = |seed| {
            pct.begin(seed);
            let picked: Vec<_> = (0..LENGTH).map(|_| pct.pick(&enabled, 0)).collect();
            picked.windows(2).filter(|pair| pair[0] != pair[1]).count()
        };
        let all: Vec<usize> = (0..100).map(&mut changes).collect();
        assert!(all.iter().all(|changes| *changes <= DROPS_MAX), "{all:?}");
        assert!(all.iter().any(|changes| *changes > 0), "{all:?}");
    }
}
