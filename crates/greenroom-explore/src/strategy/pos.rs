//! Partial order sampling (Yuan, Yang, Gu, CAV 2018): a step's priority is drawn anew when a step that it races with has come.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::Chooser;
use crate::numbers::ByNumber;

pub(super) struct Pos {
    random: Random,
    /// By the numbers of steps.
    priorities: ByNumber<u64>,
}

impl Default for Pos {
    fn default() -> Self {
        Self { random: Random::new(0), priorities: ByNumber::default() }
    }
}

impl Chooser for Pos {
    fn begin(&mut self, seed: u64) {
        self.random = Random::new(seed);
        self.priorities.clear();
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let Self { random, priorities } = self;
        let mut best = (default, 0);
        for (index, step) in enabled.iter().enumerate() {
            let priority = *priorities.entry(step.number).or_insert_with(|| random.bits());
            if priority >= best.1 {
                best = (index, priority);
            }
        }
        let chosen = enabled[best.0];
        for step in enabled.iter().filter(|step| step.at == chosen.at) {
            priorities.remove(&step.number);
        }
        Some(best.0)
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        Some(Box::new(Self::default()))
    }
}
