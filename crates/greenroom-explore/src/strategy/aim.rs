//! What goes wrong, drawn by what it hits: the how many-th message, answer, await or idle actor of all that earlier schedules had. Drawn by a
//! chance at each step, most of it would come in the beginning.
//!
//! Each schedule draws which kinds of faults it has at all (swarm testing: Groce and others, ISSTA 2012).

use std::collections::BTreeMap;

use greenroom::rehearsal::{Fault, Kind, Step, mix};
use greenroom_sim::Random;

use super::{Chooser, LEARNT_MAX};
use crate::numbers::Numbers;

pub(super) struct Aim {
    /// Chooses among the steps that are no faults.
    steps: Box<dyn Chooser>,
    /// How much there was to be hit in one schedule, at most, and how many schedules say so.
    most: BTreeMap<Fault, usize>,
    learnt: u32,
    /// What there was in this one, by the numbers of steps.
    seen: Numbers,
    here: BTreeMap<Fault, usize>,
    /// What is to be hit: the how many-th.
    aims: Vec<(Fault, usize)>,
}

impl Aim {
    pub(super) fn over(steps: Box<dyn Chooser>) -> Self {
        let (seen, here) = (Numbers::default(), BTreeMap::new());
        Self { steps, most: BTreeMap::new(), learnt: 0, seen, here, aims: Vec::new() }
    }

    /// What the fault is to be hit by, if it is its turn.
    fn is_aimed_at(&mut self, fault: Fault, number: u64) -> bool {
        if !self.seen.insert(number) {
            return false;
        }
        let count = self.here.entry(fault).or_default();
        let place = *count;
        *count += 1;
        self.aims.contains(&(fault, place))
    }
}

impl Chooser for Aim {
    fn begin(&mut self, seed: u64) {
        self.steps.begin(seed);
        let here = std::mem::take(&mut self.here);
        if self.learnt <= LEARNT_MAX {
            self.learnt += 1;
            for (fault, count) in here {
                let most = self.most.entry(fault).or_default();
                *most = (*most).max(count);
            }
        }
        self.seen.clear();
        self.aims.clear();
        let mut random = Random::new(mix(seed, AIMS));
        let swarm: Vec<(Fault, usize)> =
            self.most.iter().filter(|_| random.index(2) == 0).map(|(fault, most)| (*fault, *most)).collect();
        if !swarm.is_empty() {
            for _ in 0..1 + random.index(FAULTS_MAX) {
                let (fault, most) = swarm[random.index(swarm.len())];
                self.aims.push((fault, random.index(most.max(1))));
            }
        }
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        let mut aimed = None;
        let mut plain = enabled.len();
        for (at, step) in enabled.iter().enumerate() {
            if let Kind::Fault(fault) = step.kind {
                plain = plain.min(at);
                if self.is_aimed_at(fault, step.number) {
                    aimed.get_or_insert(at);
                }
            }
        }
        aimed.or_else(|| self.steps.pick(&enabled[..plain], default))
    }

    fn end(&mut self, blocked: &[Step]) {
        self.steps.end(blocked);
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        let steps = self.steps.fork().filter(|_| self.learnt > LEARNT_MAX)?;
        Some(Box::new(Self { most: self.most.clone(), learnt: self.learnt, ..Self::over(steps) }))
    }
}

/// Faults that one schedule is to have, at most.
const FAULTS_MAX: usize = 2;
/// Tells what faults are drawn from from what steps are.
const AIMS: u64 = 0x5157;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Strategy;

    fn step(number: u64, kind: Kind) -> Step {
        Step { number, kind, at: 2, by: 2, born: 0, read: false, queue: 0 }
    }

    #[test]
    fn what_is_hit_is_as_often_late_in_a_schedule_as_early() {
        let mut aim = Strategy::Walk.choosers().remove(0);
        let mut hits = [0; 20];
        for seed in 0..2_000 {
            aim.begin(seed);
            for place in 0..20_u64 {
                let enabled = [step(place, Kind::Client), step(100 + place, Kind::Fault(Fault::Lose))];
                if aim.pick(&enabled, 0) == Some(1) {
                    hits[place as usize] += 1;
                    break;
                }
            }
            aim.end(&[]);
        }
        let (early, late) = (hits[..10].iter().sum::<i32>(), hits[10..].iter().sum::<i32>());
        assert!(early > 200 && late > 200 && late * 4 > early, "{hits:?}");
    }
}
