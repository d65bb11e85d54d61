//! Who chooses: pure machines, decided by their seeds.

mod all;
mod deviate;
mod dpor;
mod pct;
mod pos;
mod walk;

use greenroom::rehearsal::Step;

use self::all::All;
use self::deviate::Deviate;
use self::dpor::Dpor;
use self::pct::Pct;
use self::pos::Pos;
use self::walk::Walk;

/// How schedules are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Strategy {
    /// All the others take turns: none is best at everything.
    #[default]
    Mixed,
    /// The default order with one step that comes early, for each step and each place; then with two, three, ..: finds what is
    /// simple at once.
    Deviations,
    /// A random priority for each step, drawn anew for those at the actor that has just acted.
    Pos,
    /// A random priority for each sender, and a random place or two where the highest becomes the lowest.
    Pct,
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
            Strategy::Pos => Box::new(Pos::default()),
            Strategy::Pct => Box::new(Pct::default()),
            Strategy::Walk => Box::new(Walk::default()),
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
        let all = [Strategy::Dpor, Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Walk];
        Self { all: all.map(Strategy::chooser).into(), turn: usize::MAX, begun: 0 }
    }
}

impl Chooser for Mixed {
    fn begin(&mut self, seed: u64, length: usize) {
        self.begun += 1;
        if self.begun == DPOR_MAX * self.all.len() as u64 {
            // It does not get to its end.
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

/// Schedules that are run to get to all traces.
const DPOR_MAX: u64 = 2_000;
