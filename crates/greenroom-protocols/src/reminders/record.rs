//! What is stored.

use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Etag, TickAttempt};

/// A point of the calendar: milliseconds since 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub u64);

impl Wall {
    /// A point that is never reached.
    pub const NEVER: Wall = Wall(u64::MAX);

    /// The time of the hint of a parked reminder, after all times at which a reminder can be due.
    pub const PARKED: Wall = Wall((1 << 48) - 1);

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Wall) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Wall {
    type Output = Wall;

    /// Saturates at [`Wall::NEVER`].
    fn add(self, rhs: Duration) -> Wall {
        Wall(self.0.saturating_add(u64::try_from(rhs.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A reminder, or what is left of one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record<P> {
    /// Tells it from earlier and later ones of the same name.
    pub registration: u64,
    /// When its next tick is due.
    pub due: Wall,
    /// The hint that brings it up.
    pub hint: HintName,
    /// What is to be done, and when again.
    pub plan: Result<P, Tombstone>,
    /// The last attempt at a turn that may have taken its process down; `None` if its tick is no suspect.
    pub attempt: Option<TickAttempt>,
}

impl<P> Record<P> {
    /// True if its tick is given up, as turns of it have taken their processes down. The reminder does not come up any more, until it is
    /// registered anew.
    pub fn is_parked(&self) -> bool {
        self.hint.at.wake == Wall::PARKED
    }
}

/// The mark of a reminder that was cancelled or is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Tombstone;

/// Which hint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct HintName {
    /// Its place in time, and its number.
    pub at: Position,
    /// The version of its row.
    pub tag: Etag,
}

/// A hint's place among those of its range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    /// When to look at the record.
    pub wake: Wall,
    /// Drawn by chance, so that no two hints are the same.
    pub nonce: u64,
}

/// What a hint says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Hint<K> {
    /// The record's name.
    pub of: K,
    /// The version of the record that the write expects which names this hint; `None` if it expects no record.
    pub expected: Option<Etag>,
}

/// A record as it is in the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Found<P> {
    /// The record.
    pub record: Record<P>,
    /// Its version.
    pub tag: Etag,
}
