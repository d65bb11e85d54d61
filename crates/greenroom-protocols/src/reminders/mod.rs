//! Reminders: calls on a calendar that outlive actors and nodes. Pure: no clock, no I/O, no randomness.
//!
//! A reminder is one *record* in a store, changed by compare-and-swap alone: that is where it is registered, moved on and
//! cancelled. So that nobody need look at records before their time, each has a *hint*: a row whose key begins with the
//! range and the time at which to look at the record. The owner of a range (the directory's) keeps in memory what comes up
//! within a few seconds, a bounded number, and reads on in the order of time.
//!
//! Two rows cannot be written at once. These rules lose nothing all the same:
//!
//! - **A hint comes before its record, and goes after it.** Each write of a record first creates a hint with a number that
//!   no other hint has, and the record names it. A crash in between leaves a hint too many, never one too few.
//! - **A hint goes only when no write can come true any more that names it.** It says which version of the record that
//!   write expects. If the record has another one by now, and does not name the hint, the write is lost for ever. If it
//!   has that very one, the owner first writes the record as it is, which gives it a new version. Versions are never used twice.
//! - **The tick comes before the move.** The owner sends the tick as a call, again and again until it is done, has failed in as many
//!   attempts as its kind allows, or was refused for good. Only then does the record move on to the next due time, by
//!   compare-and-swap: at least one turn for each due time, and one move, whoever else believes to own the range. Missed due times
//!   fold into one tick. A tick is done when its turn has ended and, where it saves, has saved; the activation remembers that in its
//!   [`TickLog`].
//! - **Deaths are counted before the next turn.** The turn of a tick whose last turn may have taken its process down begins once its
//!   record holds a [`TickAttempt`]; after some deaths the reminder is parked.
//! - **A turn looks before it runs.** The tick names registration and due time; the host reads the record inside of the
//!   turn and runs nothing if it has another one. So no turn begins after a cancellation was acknowledged.
//! - **What is cancelled or over leaves a tombstone** for a while: a registration that nobody knew the outcome of, and that the
//!   store carries out late, finds it in its way.
//!
//! [`Range`] is the owner's part, [`Change`] that of who registers and cancels, [`Keeper`] knows which ranges are whose and tells
//! their owners what has come up in them.

mod attempts;
mod change;
mod keeper;
mod range;
mod record;
#[cfg(test)]
mod tests;
mod tick_log;
mod window;
mod work;

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

pub use attempts::TickAttempt;
pub use change::{Answer, Change, Ended, Step, Want};
pub use keeper::{Keeper, Tell};
pub use range::{Action, Delivered, Event, Range, WorkId};
pub use record::{Found, Hint, HintName, Position, Record, Tombstone, Wall};
pub use tick_log::{TICKS_MAX, TickLog, TickRefusal};

pub use crate::membership::Etag;
use crate::time::Timestamp;

/// When a reminder is due, and due again.
pub trait Plan: Clone + Eq + Hash + Debug {
    /// What a tick stands for that was due at `due` and is sent at `now`, and when the next one is due.
    fn fold(&self, due: Wall, now: Wall) -> Fold;
}

/// What a tick stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fold {
    /// Due times after the tick's own that have passed as well.
    pub missed: u64,
    /// The next one; `None` if there is none.
    pub next: Option<Wall>,
}

/// The present, by both clocks of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// The monotonic clock, for pauses.
    pub clock: Timestamp,
    /// The wall clock, for what is due.
    pub wall: Wall,
}

/// How far ahead hints are loaded.
pub const HORIZON: Duration = Duration::from_secs(5);
/// Hints of one range that are in memory at most.
pub const LOADED_MAX: usize = 256;
/// Time between two looks at a range that nobody has said anything of.
pub const RESCAN: Duration = Duration::from_secs(60);
/// Time for which a hint is kept whose record was never seen, and for which a tombstone stands: longer than a store may
/// take for a write that it has given up.
pub const GRACE: Duration = Duration::from_secs(600);
