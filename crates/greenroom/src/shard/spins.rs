//! Whether a shard that has nothing to do looks on for a while before it sleeps.
//!
//! Falling asleep and being woken costs a few microseconds, and so does looking on for as long. It pays where work often
//! comes within that time: so it is remembered which of the last times it did.

/// Which of the last spins have found work.
#[derive(Debug)]
pub(super) struct Spins {
    /// The last 64 of them, a bit each.
    found: u64,
    /// Times that the shard has gone to sleep at once.
    skipped: u32,
    /// Whether one goes on.
    spinning: bool,
}

impl Default for Spins {
    /// As if all had found work.
    fn default() -> Self {
        Self { found: u64::MAX, skipped: 0, spinning: false }
    }
}

impl Spins {
    /// There is nothing to do any more: looks on, if that is worth it.
    pub(super) fn begin(&mut self) {
        self.spinning = self.found.count_ones() >= WORTH || self.tries();
    }

    /// There is work, or it is time to sleep.
    pub(super) fn end(&mut self, found: bool) {
        if std::mem::take(&mut self.spinning) {
            self.found = self.found << 1 | u64::from(found);
        }
    }

    /// Whether one goes on.
    pub(super) fn is_spinning(&self) -> bool {
        self.spinning
    }

    /// Now and then it is tried although it has not been worth it.
    fn tries(&mut self) -> bool {
        self.skipped = (self.skipped + 1) % TRY_EVERY;
        self.skipped == 0
    }
}

/// Spins of the last 64 that must have found work.
const WORTH: u32 = 16;
/// Of so many times of nothing to do, one is tried all the same.
const TRY_EVERY: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many idle times are spun, each of which finds work or not.
    fn spun(spins: &mut Spins, times: u32, found: bool) -> u32 {
        (0..times)
            .map(|_| {
                spins.begin();
                let spun = u32::from(spins.is_spinning());
                spins.end(found);
                spun
            })
            .sum()
    }

    #[test]
    fn who_never_finds_work_sleeps_at_once_but_for_one_of_64_times() {
        let mut spins = Spins::default();
        assert_eq!(spun(&mut spins, 49, false), 49, "until three quarters of the last 64 have found nothing");
        assert_eq!(spun(&mut spins, 640, false), 10);
    }

    #[test]
    fn who_finds_work_again_spins_again() {
        let mut spins = Spins::default();
        spun(&mut spins, 1000, false);
        // A quarter of 64, each found by one of 64 tries.
        spun(&mut spins, 64 * 16, true);
        assert_eq!(spun(&mut spins, 100, true), 100);
    }

    #[test]
    fn work_that_comes_while_it_sleeps_says_nothing_of_spinning() {
        let mut spins = Spins::default();
        spun(&mut spins, 100, false);
        spins.end(true);
        assert_eq!(spins.found.count_ones(), 15);
    }
}
