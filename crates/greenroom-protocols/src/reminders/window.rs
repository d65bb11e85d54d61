//! What is in memory of a range's hints: all that come up until some time, as many as there is room for.

use super::{HORIZON, LOADED_MAX, Now, Position, RESCAN, Wall};
use crate::time::Timestamp;

/// How far a range has been read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Window {
    /// Hints that come up before this are loaded, but for those that [`Window::goes_on`] is to load.
    until: Wall,
    /// The earliest hint made since the last scan from the beginning began.
    noted: Wall,
    scan: Scan,
    /// When the range is read again whatever is known of it.
    rescan_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Scan {
    /// Not at all since some time.
    Rests,
    Runs,
    /// After this position, when there is room.
    GoesOn(Position),
    Failed(Timestamp),
}

impl Window {
    /// A range of which nothing is known.
    pub(super) fn new() -> Self {
        Self { until: Wall(0), noted: Wall::NEVER, scan: Scan::Rests, rescan_at: Timestamp::NEVER }
    }

    pub(super) fn noted(&mut self, wake: Wall) {
        self.noted = self.noted.min(wake);
    }

    pub(super) fn rescan(&mut self) {
        self.rescan_at = Timestamp::default();
    }

    /// Where to scan from now; `None` if not now.
    pub(super) fn scan(&mut self, now: Now, loaded: usize) -> Option<Option<Position>> {
        let after = match self.scan {
            Scan::Runs => return None,
            Scan::GoesOn(after) if loaded < LOADED_MAX / 2 => Some(after),
            Scan::GoesOn(_) => return None,
            Scan::Failed(until) if now.clock < until => return None,
            Scan::Rests | Scan::Failed(_) => {
                let comes_up = self.until.min(self.noted) <= now.wall + HORIZON;
                if !comes_up && now.clock < self.rescan_at || loaded >= LOADED_MAX {
                    return None;
                }
                self.noted = Wall::NEVER;
                self.rescan_at = now.clock + RESCAN;
                None
            }
        };
        self.scan = Scan::Runs;
        Some(after)
    }

    /// When [`Window::scan`] next has something to do, if nothing happens before.
    pub(super) fn deadline(&self, now: Now, loaded: usize) -> Option<Timestamp> {
        match self.scan {
            Scan::Runs | Scan::GoesOn(_) => None,
            Scan::Failed(until) => Some(until),
            Scan::Rests if loaded >= LOADED_MAX => None,
            Scan::Rests => {
                let first = self.until.min(self.noted);
                let comes_up = now.clock + first.since(now.wall + HORIZON);
                Some(if first == Wall::NEVER { self.rescan_at } else { comes_up.min(self.rescan_at) })
            }
        }
    }

    /// The scan has come to a hint that comes up at `wake`, beyond the horizon.
    pub(super) fn reached(&mut self, wake: Wall) {
        (self.scan, self.until) = (Scan::Rests, wake);
    }

    /// There is no more room; the last hint that found some is `last`.
    pub(super) fn is_full(&mut self, last: Option<Position>) {
        self.goes_on(last);
    }

    /// There are more hints after `last`.
    pub(super) fn goes_on(&mut self, last: Option<Position>) {
        match last {
            Some(last) => self.scan = Scan::GoesOn(last),
            // Not even one: from the beginning, when there is room.
            None => (self.scan, self.until) = (Scan::Rests, Wall(0)),
        }
    }

    pub(super) fn scan_failed(&mut self, now: Now) {
        // What was known of the range is not, as the scan may have been to go on.
        (self.scan, self.until) = (Scan::Failed(now.clock + PAUSE), Wall(0));
    }
}

/// Pause after a scan that has failed.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);
