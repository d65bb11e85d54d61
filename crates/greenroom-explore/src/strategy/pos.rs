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

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::Kind;

    use super::*;

    #[test]
    fn what_races_with_a_step_is_drawn_anew() {
        let step = |number, at| Step { number, kind: Kind::Start, at, by: 0, born: 0, read: false, queue: 0 };
        let (one, other) = (step(1, 1), step(2, 2));
        // Which of two comes first, once a third one has come that touches this actor.
        let first_behind = |seed, at| {
            let mut pos = Pos::default();
            pos.begin(seed);
            let third = pos.pick(&[one, other, step(3, at)], 0) == Some(2);
            third.then(|| pos.pick(&[one, other], 0))
        };
        let pairs: Vec<_> = (0..200).filter_map(|seed| first_behind(seed, 3).zip(first_behind(seed, 1))).collect();
        assert!(pairs.len() > 30, "{pairs:?}");
        assert!(pairs.iter().any(|(apart, raced)| apart != raced), "{pairs:?}");
    }
}
