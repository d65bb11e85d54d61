//! Versioned state (Geo §2.2): changed by updates only, in one sequence with a global version.
//!
//! A [`Versioned<S>`] field of an actor gives it the *tentative* state at once (what is confirmed, with the actor's own
//! updates on top), and the *confirmed* one, which is in the store. Updates are written in the background, all that wait
//! in one conditional write. The rules are the pure machine `greenroom_protocols::bcas`.

pub mod elsewhere;
mod enqueued;
mod field;
pub mod history;
mod instance;
mod log_record;
pub mod protocol;
pub(crate) mod protocols;
mod record;
pub(crate) mod registry;
pub(crate) mod tally;
mod values;
mod versions;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::enqueued::{Enqueued, UpdateError};
pub use self::field::Versioned;
pub use self::history::Recorded;
#[cfg(feature = "http")]
pub(crate) use self::record::payload_of;
pub use self::versions::Versions;
use crate::state::{Old, Older, Written};

pub use greenroom_protocols::bcas::Version;

/// A state that changes by updates only.
///
/// `apply` must be deterministic: every instance applies the same updates in the same order. If it panics, the update counts
/// as rejected, and the state is what it was before it.
///
/// ```
/// use greenroom::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Clone, Serialize, Deserialize)]
/// struct Count { count: i64 }
/// #[derive(Clone, Serialize, Deserialize)]
/// enum Change { Add(i64), Reset }
///
/// impl VersionedState for Count {
///     type Update = Change;
///
///     fn apply(&mut self, update: &Change) {
///         match update {
///             Change::Add(n) => self.count += n,
///             Change::Reset => self.count = 0,
///         }
///     }
/// }
/// ```
pub trait VersionedState: Default + Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A change.
    type Update: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The version of this type's fields, as for [`State::VERSION`](crate::State::VERSION).
    const VERSION: u8 = 1;

    /// The version of the fields of its updates, which a log keeps for ever.
    const UPDATE_VERSION: u8 = 1;

    /// Makes the change.
    fn apply(&mut self, update: &Self::Update);

    /// Reads a record that was written under a lower [`VERSION`](Self::VERSION).
    ///
    /// # Errors
    /// What is wrong with it; the actor then does not activate, and the record stays as it is.
    fn migrate(old: Old<'_>) -> Result<Self, String> {
        old.read()
    }

    /// Reads an update that was written under a lower [`UPDATE_VERSION`](Self::UPDATE_VERSION).
    ///
    /// # Errors
    /// As for [`migrate`](Self::migrate).
    fn migrate_update(old: Old<'_>) -> Result<Self::Update, String> {
        old.read()
    }

    /// The earliest version that [`write_older`](Self::write_older) writes, as for [`State::WRITES`](crate::State::WRITES). Where
    /// other clusters have instances this is what is written, as long as it is said: nobody knows what they read.
    const WRITES: u8 = Self::VERSION;

    /// The same for updates, which instances in other clusters and readers of a log read.
    const UPDATE_WRITES: u8 = Self::UPDATE_VERSION;

    /// Writes this as an earlier version of the type was, from [`WRITES`](Self::WRITES) on.
    ///
    /// # Errors
    /// What keeps it from being written; its updates then stay unconfirmed.
    fn write_older(&self, older: Older) -> Result<Written, String> {
        Err(unwritten(older, "write_older"))
    }

    /// Writes `update` as an earlier version of its type was, from [`UPDATE_WRITES`](Self::UPDATE_WRITES) on.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn write_older_update(update: &Self::Update, older: Older) -> Result<Written, String> {
        let _ = update;
        Err(unwritten(older, "write_older_update"))
    }
}

/// A [`VersionedState`] whose updates have an outcome, for who awaits what [`enqueue`](Versioned::enqueue) gives.
pub trait VersionedStateWithOutput: Default + Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A change.
    type Update: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What a change gives.
    type Output: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The version of this type's fields, as for [`State::VERSION`](crate::State::VERSION).
    const VERSION: u8 = 1;

    /// The version of the fields of its updates, which a log keeps for ever.
    const UPDATE_VERSION: u8 = 1;

    /// Makes the change, deterministically.
    ///
    /// # Errors
    /// [`Rejected`]: the update has no effect, and who waits for it hears why.
    fn apply(&mut self, update: &Self::Update) -> Result<Self::Output, Rejected>;

    /// Reads a record that was written under a lower [`VERSION`](Self::VERSION).
    ///
    /// # Errors
    /// What is wrong with it; the actor then does not activate, and the record stays as it is.
    fn migrate(old: Old<'_>) -> Result<Self, String> {
        old.read()
    }

    /// Reads an update that was written under a lower [`UPDATE_VERSION`](Self::UPDATE_VERSION).
    ///
    /// # Errors
    /// As for [`migrate`](Self::migrate).
    fn migrate_update(old: Old<'_>) -> Result<Self::Update, String> {
        old.read()
    }

    /// The earliest version that [`write_older`](Self::write_older) writes, as for [`State::WRITES`](crate::State::WRITES). Where
    /// other clusters have instances this is what is written, as long as it is said: nobody knows what they read.
    const WRITES: u8 = Self::VERSION;

    /// The same for updates, which instances in other clusters and readers of a log read.
    const UPDATE_WRITES: u8 = Self::UPDATE_VERSION;

    /// Writes this as an earlier version of the type was, from [`WRITES`](Self::WRITES) on.
    ///
    /// # Errors
    /// What keeps it from being written; its updates then stay unconfirmed.
    fn write_older(&self, older: Older) -> Result<Written, String> {
        Err(unwritten(older, "write_older"))
    }

    /// Writes `update` as an earlier version of its type was, from [`UPDATE_WRITES`](Self::UPDATE_WRITES) on.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn write_older_update(update: &Self::Update, older: Older) -> Result<Written, String> {
        let _ = update;
        Err(unwritten(older, "write_older_update"))
    }
}

/// Why nothing is written as `older`, where the type does not say how.
fn unwritten(older: Older, method: &str) -> String {
    format!("its type does not say how version {} is written: implement `{method}`", older.version())
}

impl<S: VersionedState> VersionedStateWithOutput for S {
    type Update = <S as VersionedState>::Update;
    type Output = ();

    const VERSION: u8 = <S as VersionedState>::VERSION;
    const UPDATE_VERSION: u8 = <S as VersionedState>::UPDATE_VERSION;
    const WRITES: u8 = <S as VersionedState>::WRITES;
    const UPDATE_WRITES: u8 = <S as VersionedState>::UPDATE_WRITES;

    fn apply(&mut self, update: &Self::Update) -> Result<(), Rejected> {
        VersionedState::apply(self, update);
        Ok(())
    }

    fn migrate(old: Old<'_>) -> Result<Self, String> {
        <S as VersionedState>::migrate(old)
    }

    fn migrate_update(old: Old<'_>) -> Result<Self::Update, String> {
        <S as VersionedState>::migrate_update(old)
    }

    fn write_older(&self, older: Older) -> Result<Written, String> {
        VersionedState::write_older(self, older)
    }

    fn write_older_update(update: &Self::Update, older: Older) -> Result<Written, String> {
        <S as VersionedState>::write_older_update(update, older)
    }
}

/// Why an update has no effect.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rejected(String);

impl Rejected {
    /// A reason for people.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
