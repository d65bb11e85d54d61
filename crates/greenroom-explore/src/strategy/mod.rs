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
pub(crate) trait Chooser {
    /// Another schedule begins; `length` is how many steps the longest had.
    fn begin(&mut self, seed: u64, length: usize);

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
}

impl Strategy {
    pub(crate) fn chooser(self) -> Box<dyn Chooser> {
        match self {
            Strategy::Mixed => Box::new(Mixed::default()),
            Strategy::Deviations => Box::new(Deviate::default()),
            Strategy::Pos => Box::new(Aim::over(Box::new(Pos::default()))),
            Strategy::Pct => Box::new(Aim::over(Box::new(Pct::default()))),
            Strategy::Urw => Box::new(Aim::over(Box::new(Urw::default()))),
            Strategy::Walk => Box::new(Aim::over(Box::new(Walk::default()))),
            Strategy::Dpor => Box::new(Dpor::default()),
            Strategy::All => Box::new(All::default()),
        }
    }
}

/// All traces by sleep sets alone, for comparison.
#[cfg(test)]
pub(crate) fn sleep_sets() -> Box<dyn Chooser> {
    Box::new(Dpor::of_sleep_sets())
}

/// Lets all take turns.
struct Mixed {
    all: Vec<Box<dyn Chooser>>,
    turn: usize,
    begun: u64,
}

impl Default for Mixed {
    fn default() -> Self {
        let all: [_; ALL] = [Strategy::Dpor, Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Urw];
        Self { all: all.map(Strategy::chooser).into(), turn: usize::MAX, begun: 0 }
    }
}

impl Chooser for Mixed {
    fn begin(&mut self, seed: u64, length: usize) {
        self.begun += 1;
        if self.begun == DPOR_MAX * ALL as u64 && self.all.len() == ALL || self.all[0].has_all() {
            // All traces were run, or there are too many.
            self.all.remove(0);
        }
        self.turn = self.turn.wrapping_add(1) % self.all.len();
        self.all[self.turn].begin(seed, length);
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> Option<usize> {
        self.all[self.turn].pick(enabled, default)
    }

    fn end(&mut self, blocked: &[Step]) {
        self.all[self.turn].end(blocked);
    }

    fn has_all(&self) -> bool {
        self.all[self.turn].has_all()
    }
}

/// Strategies that take turns, that of all traces first.
const ALL: usize = 5;
/// Schedules that are run to get to all traces.
const DPOR_MAX: u64 = 2_000;

#[cfg(test)]
mod tests {
    use greenroom::rehearsal::Kind;

    use super::*;

    #[test]
    fn when_all_traces_were_run_the_other_strategies_go_on() {
        let step = Step { number: 1, kind: Kind::Client, at: 2, by: 2, born: 0, read: false, queue: 0 };
        let mut mixed = Strategy::Mixed.chooser();
        for run in 0..20 {
            mixed.begin(run, 1);
            assert_eq!(mixed.pick(&[step], 0), Some(0), "run {run} is no schedule");
            mixed.end(&[]);
            assert_eq!(mixed.has_all(), run == 0);
        }
    }
}
