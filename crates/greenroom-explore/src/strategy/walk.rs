//! Each step that can come is as likely.

use greenroom::rehearsal::Step;
use greenroom_sim::Random;

use super::Chooser;

pub(super) struct Walk(Random);

impl Default for Walk {
    fn default() -> Self {
        Self(Random::new(0))
    }
}

impl Chooser for Walk {
    fn begin(&mut self, seed: u64) {
        self.0 = Random::new(seed);
    }

    fn pick(&mut self, enabled: &[Step], _default: usize) -> Option<usize> {
        Some(self.0.index(enabled.len()))
    }

    fn fork(&self) -> Option<Box<dyn Chooser>> {
        Some(Box::new(Self::default()))
    }
}
