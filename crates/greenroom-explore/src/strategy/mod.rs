//! Who chooses: pure machines, decided by their seeds.

mod aim;
mod all;
mod deviate;
mod dpor;
mod pct;
mod pos;
mod urw;
mod walk;

use greenroom::rehearsal::Step;

use self::aim::Aim;
use self::all::All;
use self::deviate::Deviate;
use self::dpor::Dpor;
use self::pct::Pct;
use self::pos::Pos;
use self::urw::Urw;
use self::walk::Walk;

/// How schedules are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Strategy {
    /// `Dpor`, `Deviations`, `Pos`, `Pct` and `Urw` take turns: none is best at everything.
    #[default]
    Mixed,
    /// The default order with one step that comes early, for each step and each place; then with two, three, ..: finds what is
    /// simple at once.
    Deviations,
    /// A random priority for each step, drawn anew for those at the actor that has just acted.
    Pos,
    /// A random priority for each sender, and a random place or two where the highest becomes the lowest.
    Pct,
    /// Any step that can come, the likelier the more is expected to come of it: each order of steps is about as likely.
    Urw,
    /// Any step that can come, each as likely: for comparison.
    Walk,
    /// Every trace there is, for small tests: when it ends, so does the test.
    Dpor,
    /// Every schedule there is, those that come to the same, too: for comparison.
    All,
}

/// Chooses one schedule after the other.
pub(crate) trait Chooser: Send {
    /// Another schedule begins.
    fn begin(&mut self, seed: u64);

    /// Which of `enabled`, one at least, comes next; `default` would. `None` if nothing new would come of this schedule.
    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize>;

    /// The schedule has ended, or was cut off, while these messages were still waiting for turns.
    fn end(&mut self, blocked: &[Step]) {
        let _ = blocked;
    }

    /// Whether all schedules there are have been run, the one that has just ended included.
    fn has_all(&self) -> bool {
        false
    }

    /// Another one that draws the same for the same seeds. `None` as long as what a schedule is depends on those before it.
    fn fork(&self) -> Option<Box<dyn Chooser>> {
        None
    }
}

impl Strategy {
    /// Those who take turns; one, unless it is mixed.
    pub(crate) fn choosers(self) -> Vec<Box<dyn Chooser>> {
        match self {
            Strategy::Mixed => {
                let first: Box<dyn Chooser> = Box::new(Traces::default());
                let others = [Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Urw];
                std::iter::once(first).chain(others.into_iter().flat_map(Self::choosers)).collect()
            }
            Strategy::Deviations => vec![Box::new(Deviate::default())],
            Strategy::Pos => vec![Box::new(Aim::over(Box::new(Pos::default())))],
            Strategy::Pct => vec![Box::new(Aim::over(Box::new(Pct::default())))],
            Strategy::Urw => vec![Box::new(Aim::over(Box::new(Urw::default())))],
            Strategy::Walk => vec![Box::new(Aim::over(Box::new(Walk::default())))],
            Strategy::Dpor => vec![Box::new(Dpor::default())],
            Strategy::All => vec![Box::new(All::default())],
        }
    }
}

/// All traces by sleep sets alone, for comparison.
#[cfg(test)]
pub(crate) fn sleep_sets() -> Box<dyn Chooser> {
    Box::new(Dpor::of_sleep_sets())
}

/// All traces, each once, as far as they are not too many; then what is drawn.
struct Traces {
    dpor: Dpor,
    begun: u64,
    draws: bool,
    drawn: Aim,
}

impl Default for Traces {
    fn default() -> Self {
        Self { dpor: Dpor::default(), begun: 0, draws: false, drawn: Aim::over(Box::new(Urw::default())) }
    }
}

impl Chooser for Traces {
    fn begin(&mut self, seed: u64) {
        self.begun += 1;
        self.draws = self.draws || self.begun > DPOR_MAX || self.dpor.has_all();
        if self.draws { self.drawn.begin(seed) } else { self.dpor.begin(seed) }
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        if self.draws { self.drawn.pick(enabled, default) } else { self.dpor.pick(enabled, default) }
    }

    fn end(&mut self, blocked: &[Step]) {
        if self.draws { self.drawn.end(blocked) } else { self.dpor.end(blocked) }
    }

    fn has_all(&self) -> bool {
        !self.draws && self.dpor.has_all()
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        self.draws.then(|| self.drawn.fork()).flatten()
    }
}

/// Schedules that are run to get to all traces.
const DPOR_MAX: u64 = 2_000;
/// Schedules from which it is learnt what there is to be drawn: it does not depend on how many are run.
const LEARNT_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::{Fault, Kind};

    use super::*;

    #[test]
    fn when_all_traces_were_run_the_other_strategies_go_on() {
        let step = Step { number: 1, kind: Kind::Client, at: 2, by: 2, born: 0, read: false, queue: 0 };
        let mut traces = Strategy::Mixed.choosers().remove(0);
        for run in 0..20 {
            traces.begin(run);
            assert_eq!(traces.pick(&[step], 0), Some(0), "run {run} is no schedule");
            traces.end(&[]);
            assert_eq!(traces.has_all(), run == 0);
        }
    }

    #[test]
    fn who_has_learnt_can_be_in_two_places_and_draws_the_same() {
        let step = |number, kind| Step { number, kind, at: number, by: number % 3, born: 0, read: false, queue: 0 };
        let draw = |chooser: &mut Box<dyn Chooser>, seed| -> Vec<Option<usize>> {
            chooser.begin(seed);
            let enabled: Vec<Step> = (1..7).map(|number| step(number, Kind::Client)).collect();
            let faults = [step(8, Kind::Fault(Fault::Lose)), step(9, Kind::Fault(Fault::Lose))];
            let drawn = (0..6).map(|at| chooser.pick(&[&enabled[at..], &faults].concat(), 0)).collect();
            chooser.end(&[]);
            drawn
        };
        for (place, mut chooser) in Strategy::Mixed.choosers().into_iter().enumerate().skip(1) {
            (0..100).for_each(|seed| _ = draw(&mut chooser, seed));
            let mut fork = chooser.fork().unwrap_or_else(|| panic!("the {place}. has learnt"));
            (100..110).for_each(|seed| _ = draw(&mut fork, seed));
            for seed in 200..300 {
                assert_eq!(draw(&mut chooser, seed), draw(&mut fork, seed), "the {place}. with seed {seed}");
            }
        }
        for (place, mut chooser) in Strategy::Mixed.choosers().into_iter().enumerate() {
            draw(&mut chooser, 1);
            assert!(chooser.fork().is_none(), "the {place}. has not learnt");
        }
    }
}
