//! What the store holds: the latest version, and how far each session's updates are in it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::{Applied, Checks};
use crate::gsi::ClusterId;

/// A state that changes only by updates.
pub trait Versioned: Clone + PartialEq + Eq + Hash + Debug + Default {
    /// A change.
    type Update: Clone + PartialEq + Eq + Hash + Debug;
    /// What a change gives to who confirms it.
    type Output: Clone + PartialEq + Eq + Hash + Debug;
    /// Why a change was rejected.
    type Error: Clone + PartialEq + Eq + Hash + Debug;

    /// Applies `update`, deterministically. On an error, what it did is dropped; the caller turns a panic into an error.
    ///
    /// # Errors
    ///
    /// If the update is rejected.
    fn apply(&mut self, update: &Self::Update) -> Result<Self::Output, Self::Error>;

    /// What is left after [`Change::Clear`].
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that an update was rejected.
    fn reject(&mut self) {}

    /// How much `update` counts towards [`Config::batch_weight_max`](super::Config::batch_weight_max).
    fn weight(_update: &Self::Update) -> usize {
        1
    }
}

/// Something to do to the state.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Change<U> {
    /// Apply this.
    Update(U),
    /// Begin anew with the default state, in the next incarnation.
    Clear,
}

/// One activation as a writer; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its activation's epoch there.
    pub epoch: u64,
}

/// The place of a state in the one sequence: of two the higher one is the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Version {
    /// How often the state has begun anew: it was cleared, or its store went back to an earlier one.
    pub incarnation: u64,
    /// Updates since then, the rejected ones included.
    pub number: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.number)
    }
}

/// A change as it was applied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Added<S: Versioned> {
    /// The change.
    pub change: Change<S::Update>,
    /// The version after it.
    pub version: Version,
    /// Why it has no effect, if it was rejected.
    pub rejected: Option<S::Error>,
}

/// The stored record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Record<S> {
    /// The state's version.
    pub version: Version,
    /// The state.
    pub state: S,
    /// For each session, the sequence number of its last update in the state.
    pub sessions: BTreeMap<Session, u64>,
    /// Who wrote the record, and at which attempt: no two writes are equal.
    pub salt: (Session, u64),
    /// For each cluster of which sessions were collected that others may write for, the version at the last time.
    pub floors: BTreeMap<ClusterId, Version>,
}

impl<S: Versioned> Record<S> {
    /// How many updates of `session` the state has.
    pub fn applied(&self, session: Session) -> u64 {
        self.sessions.get(&session).copied().unwrap_or(0)
    }

    /// Applies the update `sequence` of `session`; `None` if it is in the state already, or one before it is missing.
    pub(super) fn apply(
        &mut self,
        session: Session,
        sequence: u64,
        change: &Change<S::Update>,
        checks: Checks,
    ) -> Option<Applied<S::Output, S::Error>> {
        if checks.sequence && sequence != self.applied(session).saturating_add(1) {
            return None;
        }
        self.sessions.insert(session, sequence);
        Some(self.change(change))
    }

    /// Whether updates of `session` that were sent when `seen` was the latest version there cannot have been in the state, and the session
    /// collected since.
    pub(super) fn counts(&self, session: Session, seen: Version, checks: Checks) -> bool {
        let floor = self.floors.get(&session.cluster).filter(|_| checks.floors);
        self.sessions.contains_key(&session) || floor.is_none_or(|floor| seen >= *floor)
    }

    /// Applies `change`, whosever it is.
    pub fn change(&mut self, change: &Change<S::Update>) -> Applied<S::Output, S::Error> {
        match change {
            Change::Clear => {
                self.version = Version { incarnation: self.version.incarnation + 1, number: 0 };
                self.state.clear();
                Applied::Confirmed
            }
            Change::Update(update) => {
                self.version.number += 1;
                let mut next = self.state.clone();
                match next.apply(update) {
                    Ok(output) => {
                        self.state = next;
                        Applied::Output(output)
                    }
                    Err(error) => {
                        self.state.reject();
                        Applied::Rejected(error)
                    }
                }
            }
        }
    }
}
