//! A versioned state as a log of its updates (event sourcing). Pure: no clock, no I/O, no randomness.
//!
//! The writer is the [`Worker`](crate::bcas::Worker) of BCAS, over a state that counts its entries ([`Logged`]): each conditional
//! write of the head also appends what it [adds](crate::bcas::Added), in one commit. So the log's end and the head's version never
//! differ, and all that holds of sessions, late writes and lost answers there holds here. What is here is the way back: a
//! [`Replay`] makes a state of a snapshot and the entries behind it, and believes nothing that does not fit.

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::bcas::{Applied, Change, Record, Version, Versioned};

/// A state, and how many entries of its log are in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Logged<S> {
    /// The state.
    pub state: S,
    /// The position of the last entry that is in it; 0 for none.
    pub entries: u64,
}

impl<S: Versioned> Versioned for Logged<S> {
    type Update = S::Update;
    type Output = S::Output;
    type Error = S::Error;

    fn apply(&mut self, update: &S::Update) -> Result<S::Output, S::Error> {
        self.entries += 1;
        self.state.apply(update)
    }

    fn clear(&mut self) {
        self.entries += 1;
        self.state.clear();
    }

    fn reject(&mut self) {
        self.entries += 1;
        self.state.reject();
    }

    fn weight(update: &S::Update) -> usize {
        S::weight(update)
    }
}

/// What stands at one position of the log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry<S: Versioned> {
    /// Counted from 1.
    pub position: u64,
    /// The version after it.
    pub version: Version,
    /// The change.
    pub change: Change<S::Update>,
    /// Whether it was rejected when it was written.
    pub rejected: bool,
}

/// Why a log does not lead to a state.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Broken {
    /// An entry is missing.
    #[error("entry {expected} of the log is missing, {found} came instead")]
    Gap {
        /// The position that comes next.
        expected: u64,
        /// The position that came.
        found: u64,
    },
    /// An entry does not follow from those before it.
    #[error("entry {position} of the log was written for another version than the one that it meets")]
    Version {
        /// Its position.
        position: u64,
    },
    /// An update had an effect when it was written, and is rejected now.
    #[error("update {position} of the log is rejected now, though it was not when it was written: {reason}")]
    Rejected {
        /// Its position.
        position: u64,
        /// What its `apply` says.
        reason: String,
    },
}

/// The way from an earlier state to a later one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replay<S: Versioned> {
    record: Record<Logged<S>>,
    until: u64,
}

impl<S: Versioned> Replay<S> {
    /// Begins at `from`, which has `version`, and ends with position `until`.
    pub fn new(from: Logged<S>, version: Version, until: u64) -> Self {
        Self { record: Record { state: from, version, ..Record::default() }, until }
    }

    /// Begins at this snapshot instead, if it spares entries and does not lie behind the end. Before the first entry any
    /// snapshot does: the log may begin with one.
    pub fn skip_to(&mut self, snapshot: Logged<S>, version: Version) {
        let at = self.record.state.entries;
        if snapshot.entries <= self.until && (snapshot.entries > at || at == 0) {
            self.record = Record { state: snapshot, version, ..Record::default() };
        }
    }

    /// The position that is wanted next; `None` if the end is reached.
    pub fn wants(&self) -> Option<u64> {
        let at = self.record.state.entries;
        (at < self.until).then_some(at + 1)
    }

    /// Takes in the next entry; one behind the end is passed over.
    ///
    /// # Errors
    /// [`Broken`]; the replay is of no use then.
    pub fn take(&mut self, entry: &Entry<S>) -> Result<(), Broken> {
        let position = entry.position;
        let Some(expected) = self.wants() else { return Ok(()) };
        if position != expected {
            return Err(Broken::Gap { expected, found: position });
        }
        if entry.rejected {
            self.record.version.number += 1;
            self.record.state.reject();
        } else if let Applied::Rejected(error) = self.record.change(&entry.change) {
            return Err(Broken::Rejected { position, reason: format!("{error:?}") });
        }
        assert_eq!(self.record.state.entries, position, "an entry was not counted");
        if !leads_to(self.record.version, entry.version) {
            return Err(Broken::Version { position });
        }
        self.record.version = entry.version;
        Ok(())
    }

    /// Where it stands.
    pub fn reached(self) -> (Logged<S>, Version) {
        (self.record.state, self.record.version)
    }
}

/// Whether what leads to the version `found` is what `said` was written for: the same one, or the same in a later incarnation,
/// with which the writer [goes on](crate::bcas::Trouble::WentBack) after its store went back.
pub fn leads_to(found: Version, said: Version) -> bool {
    found == said || found.number == said.number && found.incarnation < said.incarnation
}

/// Whether a write that brings a log from its last snapshot, at entry `snapshot`, to `entries` takes one.
pub fn snapshot_due(snapshot: u64, entries: u64, every: u64) -> bool {
    every > 0 && entries.saturating_sub(snapshot) >= every
}
