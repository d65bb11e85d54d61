//! Who chooses: pure machines, decided by their seeds.

mod deviate;
mod pct;
mod pos;
mod walk;

use greenroom::rehearsal::Step;

use self::deviate::Deviate;
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
}

/// Chooses one schedule after the other.
pub(crate) trait Chooser {
    /// Another schedule begins; `length` is how many steps the longest had.
    fn begin(&mut self, seed: u64, length: usize);

    /// Which of `enabled` comes next; `default` would.
    fn pick(&mut self, enabled: &[Step], default: usize) -> usize;
}

impl Strategy {
    pub(crate) fn chooser(self) -> Box<dyn Chooser> {
        match self {
            Strategy::Mixed => Box::new(Mixed::default()),
            Strategy::Deviations => Box::new(Deviate::default()),
            Strategy::Pos => Box::new(Pos::default()),
            Strategy::Pct => Box::new(Pct::default()),
            Strategy::Walk => Box::new(Walk::default()),
        }
    }
}

/// Lets all take turns.
struct Mixed {
    all: Vec<Box<dyn Chooser>>,
    turn: usize,
}

impl Default for Mixed {
    fn default() -> Self {
        let all = [Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Walk].map(Strategy::chooser).into();
        Self { all, turn: usize::MAX }
    }
}

impl Chooser for Mixed {
    fn begin(&mut self, seed: u64, length: usize) {
        self.turn = self.turn.wrapping_add(1) % self.all.len();
        self.all[self.turn].begin(seed, length);
    }

    fn pick(&mut self, enabled: &[Step], default: usize) -> usize {
        self.all[self.turn].pick(enabled, default)
    }
}
