//! Turns of ticks that may have taken their process down.
//!
//! A turn that aborts its process leaves no outcome. The owner of the range learns that the process has died
//! ([`Delivered::Died`](super::Delivered::Died)), or it died itself and the next owner finds a tick that was due before it came. Such a
//! tick is a *suspect*: its next turn begins only after its record holds a [`TickAttempt`]. A recorded attempt that an owner finds whose
//! predecessor died counts one more death. A tick with as many deaths as a range allows is parked: its record stays, and does not come up any more.
//! Other ticks pay nothing.

use serde::{Deserialize, Serialize};

use super::{Record, Wall};

/// Attempt at the turn of a tick that may take its process down: a part of the reminder's record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TickAttempt {
    /// Processes that have died during turns of the tick, as far as is known.
    pub deaths: u32,
    /// True while a turn of the tick may run.
    pub is_running: bool,
}

/// Deaths that one owner knows of one tick.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Attempts {
    /// The attempt that this owner has recorded last, until its process dies.
    recorded: Option<TickAttempt>,
    /// True from the death of a process until the next turn begins.
    has_died: bool,
}

impl Attempts {
    /// Returns how many turns of the tick in `record` have taken their process down. `after_death` is when this owner came, if the owner
    /// before may have died: then an attempt that it had recorded has died with it, and so, as is presumed, has the first turn of a tick that
    /// was due.
    pub(super) fn deaths<P>(&self, record: &Record<P>, after_death: Option<Wall>) -> u32 {
        match record.attempt {
            Some(attempt) if self.recorded == Some(attempt) => attempt.deaths,
            Some(attempt) => attempt.deaths + u32::from(self.has_died || attempt.is_running && after_death.is_some()),
            None => u32::from(self.has_died || after_death.is_some_and(|since| record.due <= since)),
        }
    }

    /// Takes in that the record holds `attempt`.
    pub(super) fn recorded(&mut self, attempt: TickAttempt) {
        self.recorded = Some(attempt);
    }

    /// Takes in that a turn begins.
    pub(super) fn begin(&mut self) {
        self.has_died = false;
    }

    /// Takes in that the process of a turn has died.
    pub(super) fn died(&mut self) {
        (self.recorded, self.has_died) = (None, true);
    }
}
