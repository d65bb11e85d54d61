//! What a turn knows of the tick that began it.

use std::time::{Duration, SystemTime};

/// The tick of a timer or a reminder that began the current turn: [`Cx::tick`](crate::Cx::tick).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Tick {
    /// The name of the reminder; `None` for a timer.
    pub reminder: Option<String>,
    /// When it was to come: of several that were missed, the first.
    ///
    /// A reminder's tick that comes again, as nobody knows whether it has run, has the same time.
    pub due: SystemTime,
    /// How much later the turn has begun.
    pub late_by: Duration,
    /// Ticks after this one whose time has passed as well. They do not come any more: this one stands for them all.
    pub missed: u64,
}

/// A tick, and what tells the reminder's registration from others of its name; 0 for a timer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ticked {
    pub(crate) tick: Tick,
    pub(crate) registration: u64,
}
