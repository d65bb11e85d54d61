//! Each interleaving as likely, or nearly so: a step's weight is how many steps are expected to come of it, itself included (after Zhao and
//! others, ASPLOS 2025). What comes of what is learnt from the first schedules, and then stays.
//!
//! Were steps held up by nothing but those that they come of, each order of them would be exactly as likely.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::{Chooser, LEARNT_MAX};
use crate::numbers::ByNumber;

pub(super) struct Urw {
    random: Random,
    learnt: u32,
    /// How many steps came of each, by its number: all together, and in how many schedules.
    sizes: ByNumber<(u32, u32)>,
    /// The steps of this schedule, each with the place of the one that it came of; what is learnt from.
    path: Vec<(u64, Option<usize>)>,
    weights: Vec<u64>,
}

impl Default for Urw {
    fn default() -> Self {
        Self { random: Random::new(0), learnt: 0, sizes: ByNumber::default(), path: Vec::new(), weights: Vec::new() }
    }
}

impl Urw {
    fn learn(&mut self) {
        let mut sizes = vec![1; self.path.len()];
        for (at, (number, parent)) in self.path.iter().enumerate().rev() {
            let size = sizes[at];
            if let Some(parent) = parent {
                sizes[*parent] += size;
            }
            let (sum, times) = self.sizes.entry(*number).or_default();
            (*sum, *times) = (*sum + size, *times + 1);
        }
        self.path.clear();
    }

    fn weight(&self, step: &Step) -> u64 {
        self.sizes.get(&step.number).map_or(UNIT, |(sum, times)| UNIT * u64::from(*sum) / u64::from(*times))
    }
}

impl Chooser for Urw {
    fn begin(&mut self, seed: u64) {
        self.learn();
        self.learnt = (self.learnt + 1).min(LEARNT_MAX + 1);
        self.random = Random::new(seed);
    }

    fn pick(&mut self, enabled: &[Step], _default: usize) -> Option<usize> {
        let weights = enabled.iter().map(|step| self.weight(step)).collect();
        self.weights = weights;
        let mut drawn = self.random.below(self.weights.iter().sum());
        let chosen = self.weights.iter().position(|weight| match drawn.checked_sub(*weight) {
            Some(left) => {
                drawn = left;
                false
            }
            None => true,
        });
        let chosen = chosen.unwrap_or(0);
        if self.learnt <= LEARNT_MAX {
            let step = &enabled[chosen];
            let parent = self.path.iter().rposition(|(number, _)| *number == step.born);
            self.path.push((step.number, parent));
        }
        Some(chosen)
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        let (learnt, sizes) = (self.learnt, self.sizes.clone());
        (learnt > LEARNT_MAX).then(|| Box::new(Self { learnt, sizes, ..Self::default() }) as _)
    }
}

/// The weight of a step of which nothing comes.
const UNIT: u64 = 16;

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::Kind;

    use super::*;

    /// How often a single step came at each place among those of a chain.
    fn places(mut chooser: impl Chooser) -> Vec<u32> {
        let step = |number, born| Step { number, kind: Kind::Client, at: number, by: 0, born, read: false, queue: 0 };
        let mut places = vec![0; CHAIN as usize + 1];
        for seed in 0..6_000 {
            chooser.begin(seed);
            let (mut next, mut at) = (1, None);
            for place in 0..=CHAIN as usize {
                let chain = (next <= CHAIN).then(|| step(next, next - 1));
                let enabled: Vec<Step> = chain.into_iter().chain(at.is_none().then(|| step(100, 0))).collect();
                match enabled[chooser.pick(&enabled, 0).expect("it goes on")].number {
                    100 => at = Some(place),
                    _ => next += 1,
                }
            }
            places[at.expect("it has come")] += 1;
            chooser.end(&[]);
        }
        places
    }

    #[test]
    fn a_single_step_comes_as_often_late_as_early_beside_a_chain() {
        let weighed = places(Urw::default());
        let (least, most) = (weighed.iter().min().copied(), weighed.iter().max().copied());
        assert!(least >= Some(850) && most <= Some(1_150), "{weighed:?}");
        let walked = places(super::super::Walk::default());
        assert!(walked[CHAIN as usize] < 300, "{walked:?}");
    }

    const CHAIN: u64 = 5;
}
