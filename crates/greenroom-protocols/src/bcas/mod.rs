//! BCAS: versioned state in a store with conditional writes (Geo §3.4). Pure: no clock, no I/O, no randomness.
//!
//! A [`Worker`] is the background loop of one instance. It has at most one access to the store under way; everything that
//! waits goes into the next one. Departures from the paper:
//!
//! - **Sessions.** The [`Record`] holds for each writer session the sequence number of its last applied update. Whatever record
//!   an instance adopts, by read, by write or by notification, first trims its pending updates by that (B1-B4). A
//!   session's entry is collected once its activation has ended: a later one of its cluster has seen it. What others write for it may be
//!   late still, and is known by the version that its sender had seen: it counts only if none was collected since.
//! - **Salt.** Each write names its session and attempt, so that no two records are equal. A refused write is
//!   believed only after re-reading: the store's client may have refused its own success.
//! - **Rejected updates** are no-ops that take their sequence number and version; who waits gets the error.
//! - **Clearing** begins a new incarnation, which counts before the number in the [`Version`].
//! - **A store that went back**, as an operator has restored or deleted the record, is followed: what is there counts, as a new
//!   incarnation, and what waits comes on top of it. Who notices writes so at once, tells it ([`Trouble`]), and pauses before.
//! - **Delegation.** An instance far from the store, with no record yet or after two lost races in a row, sends its batch to the
//!   instance nearest the store, which writes it together with its own (B6).

mod record;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use record::{Added, Change, Record, Session, Version, Versioned};
pub use worker::Worker;

/// Which write of the store a record came from; the store's own word for it.
pub use crate::membership::Etag;

/// The number of who waits for something, unique within the instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Waiter(pub u64);

/// A batch of one session's updates on its way to the instance nearest the store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Batch<U> {
    /// Whose they are.
    pub session: Session,
    /// The sequence number of the first.
    pub first: u64,
    /// The latest version that the sender had seen.
    pub seen: Version,
    /// The updates, in order.
    pub changes: Vec<Change<U>>,
}

impl<U> Batch<U> {
    /// The sequence number of the last update.
    pub fn last(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }
}

/// How a conditional write ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Written {
    /// It was applied, and the record has this tag.
    Applied(Etag),
    /// The store says that it was refused.
    Conflict,
    /// Nobody knows; it may even be applied later.
    Unknown,
}

/// What an update came to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Applied<O, E> {
    /// It was applied, with this output.
    Output(O),
    /// It was rejected, and changed nothing.
    Rejected(E),
    /// It was applied or rejected by another's write, and what it gave is not known.
    Confirmed,
}

/// What updates of one session came to, by their sequence numbers.
pub type Outcomes<S> = Vec<(u64, Applied<<S as Versioned>::Output, <S as Versioned>::Error>)>;

/// What happened to an instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<S: Versioned> {
    /// The user enqueued this; its sequence number is [`Worker::last_enqueued`] afterwards.
    Enqueue(Change<S::Update>),
    /// Say [`Action::Done`] when all that is enqueued is confirmed.
    Confirm(Waiter),
    /// Say [`Action::Done`] when the latest version of after this request is here, and all that was enqueued before it is
    /// confirmed.
    Refresh(Waiter),
    /// The store was read: the record and its tag, or none.
    Read(Option<(Record<S>, Etag)>),
    /// The store could not be read.
    ReadFailed,
    /// The write ended.
    Written(Written),
    /// Another instance wrote this record, with this tag.
    Notified(Record<S>, Etag),
    /// This session's activation can write no more.
    Fenced(Session),
    /// An instance far from the store asks us to write this for it.
    Delegated(Batch<S::Update>),
    /// The instance nearest the store has written updates of ours: what they came to, by their sequence numbers. The record
    /// comes apart, by [`Event::Notified`].
    Told(Outcomes<S>),
    /// The deadline came.
    Tick,
}

/// What must be done for an instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<S: Versioned> {
    /// Read the store, then say [`Event::Read`] or [`Event::ReadFailed`].
    Read,
    /// Write if the store's tag is still this (none: if there is no record), then say [`Event::Written`].
    Write {
        /// The tag that must be there.
        expect: Option<Etag>,
        /// The record.
        record: Record<S>,
        /// What it adds to the one that must be there, in order.
        added: Vec<Added<S>>,
    },
    /// Send this to all other instances ([`Event::Notified`]); to a delegating one it is the answer.
    Notify(Record<S>, Etag),
    /// Send this to the instance of that session ([`Event::Told`]), together with the next [`Action::Notify`].
    Tell(Session, Outcomes<S>),
    /// Send this to the instance nearest the store ([`Event::Delegated`]).
    Delegate(Batch<S::Update>),
    /// An own update is confirmed: its sequence number and what it came to.
    Outcome(u64, Applied<S::Output, S::Error>),
    /// What this one waited for has come.
    Done(Waiter),
    /// This, for people, is wrong with the store.
    Trouble(Trouble),
}

/// What is wrong with the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trouble {
    /// A version that was confirmed is no longer there. The state goes on from what is there.
    WentBack {
        /// What was confirmed.
        before: Version,
        /// What is there, if there is a record.
        found: Option<Version>,
    },
    /// A write was refused although the record is the one that it asked for. It is tried again after a pause.
    Refused,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WentBack { before, found } => {
                match found {
                    Some(found) => write!(f, "the store has gone back from version {before} to {found}")?,
                    None => write!(f, "the store has no record any more, and had version {before}")?,
                }
                f.write_str("; updates that were confirmed since are lost, and the state goes on from what is there")
            }
            Self::Refused => f.write_str("the store refuses to replace the record, although nobody has changed it"),
        }
    }
}

/// How a worker behaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Time before the store is tried again after a failure; 100 ms by default.
    pub retry_after: Duration,
    /// Whether this instance is far from the store and knows one that is near.
    pub far: bool,
    /// Silence after which a delegated batch is written directly; 1 s by default.
    pub delegate_timeout: Duration,
    /// Most updates in one write; no bound by default.
    pub batch_len_max: usize,
    /// Whether others write for instances that are far from the store, so that what is late may come without its session.
    pub delegates: bool,
    /// Most that the updates in one write [weigh](Versioned::weight), but for one update alone; no bound by default.
    pub batch_weight_max: usize,
    /// The safety checks in force.
    #[doc(hidden)]
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            retry_after: Duration::from_millis(100),
            far: false,
            delegate_timeout: Duration::from_secs(1),
            batch_len_max: usize::MAX,
            delegates: false,
            batch_weight_max: usize::MAX,
            checks: Checks::default(),
        }
    }
}

/// Which safety checks are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// What a record says is applied is trimmed from the pending updates when it is read or written (B1).
    pub trim: bool,
    /// The same when it comes by notification (B4).
    pub trim_notified: bool,
    /// Each activation is a session of its own, not each cluster (B2, B3).
    pub own_session: bool,
    /// A session is collected only after it is fenced.
    pub fenced: bool,
    /// A delegated batch's updates are applied only in their sequence (B6).
    pub sequence: bool,
    /// A batch of a session that is not known counts only if its sender has seen the last forgetting.
    pub floors: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { trim: true, trim_notified: true, own_session: true, fenced: true, sequence: true, floors: true }
    }
}
