//! All schedules, one after the other: depth first, without regard to which of them come to the same.

use greenroom::rehearsal::Step;

use super::Chooser;

#[derive(Default)]
pub(super) struct All {
    /// What was chosen at each place of this schedule, and among how many.
    path: Vec<(usize, usize)>,
    at: usize,
    /// Whether a schedule was run.
    has_begun: bool,
}

impl Chooser for All {
    fn begin(&mut self, _seed: u64) {
        self.at = 0;
        if !std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        while let Some((chosen, len)) = self.path.pop() {
            if chosen + 1 < len {
                self.path.push((chosen + 1, len));
                return;
            }
        }
    }

    fn pick(&mut self, enabled: &[Step], _default: usize) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        if let Some((chosen, _)) = self.path.get(at) {
            return Some(*chosen);
        }
        self.path.push((0, enabled.len()));
        Some(0)
    }

    fn has_all(&self) -> bool {
        self.has_begun && self.path.iter().all(|(chosen, len)| chosen + 1 == *len)
    }
}
