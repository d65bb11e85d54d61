//! The default order, but for a few steps (delay bounding: Emmi, Qadeer, Rakamaric, POPL 2011): first each single step that could come early, at
//! each place; then more at once, at random.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::Chooser;

pub(super) struct Deviate {
    random: Random,
    /// How many steps could come at each place of the default order; known once it was run.
    widths: Vec<usize>,
    phase: Phase,
    /// The place of the next step.
    at: usize,
    /// At which places of this schedule another step comes, and which one.
    early: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// Nothing was run.
    New,
    /// The default order is run.
    Default,
    /// The step at this place is the next one that comes early: the one that is in this place of those that can come.
    Single(usize, usize),
    Several,
}

impl Default for Deviate {
    fn default() -> Self {
        let random = Random::new(0);
        Self { random, widths: Vec::new(), phase: Phase::New, at: 0, early: Vec::new() }
    }
}

impl Deviate {
    /// The next single step, from this one on.
    fn single(&self, mut place: usize, mut which: usize) -> Phase {
        while let Some(width) = self.widths.get(place) {
            if which < *width {
                return Phase::Single(place, which);
            }
            (place, which) = (place + 1, 1);
        }
        Phase::Several
    }
}

impl Chooser for Deviate {
    fn begin(&mut self, seed: u64) {
        self.at = 0;
        self.early.clear();
        self.phase = match self.phase {
            Phase::New => Phase::Default,
            Phase::Default => self.single(0, 1),
            Phase::Single(place, which) => self.single(place, which + 1),
            Phase::Several => Phase::Several,
        };
        match self.phase {
            Phase::New | Phase::Default => {}
            Phase::Single(place, which) => self.early.push((place, which)),
            Phase::Several => {
                self.random = Random::new(seed);
                let count = 2 + self.random.index(SEVERAL_MAX - 1);
                for _ in 0..count {
                    let place = self.random.index(self.widths.len().max(1));
                    self.early.push((place, 1 + self.random.index(WHICH_MAX)));
                }
            }
        }
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        if matches!(self.phase, Phase::Default) {
            self.widths.push(enabled.len());
        }
        let early = self.early.iter().find(|(place, _)| *place == self.at);
        self.at += 1;
        // Counted from the one that would come.
        Some(early.map_or(default, |(_, which)| (default + which) % enabled.len()))
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        let (phase, widths) = (self.phase, self.widths.clone());
        matches!(phase, Phase::Several).then(|| Box::new(Self { phase, widths, ..Self::default() }) as _)
    }
}

/// Steps that come early in one schedule, at most.
const SEVERAL_MAX: usize = 4;
/// Among so many of those that can come, one is drawn.
const WHICH_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::Kind;

    use super::*;

    #[test]
    fn each_single_step_comes_early_once() {
        let step = |number| Step { number, kind: Kind::Start, at: number, by: 0, born: 0, read: false, queue: 0 };
        let mut deviate = Deviate::default();
        let mut run = |seed| -> Vec<Option<usize>> {
            deviate.begin(seed);
            (1..=3).map(|_| deviate.pick(&[step(1), step(2)], 0)).collect()
        };
        let runs: Vec<_> = (0..4).map(&mut run).collect();
        let early = |place: usize| (0..3).map(|at| Some(usize::from(at == place))).collect::<Vec<_>>();
        assert_eq!(runs, [early(3), early(0), early(1), early(2)]);
    }
}
