//! What can go wrong, sorted by what the caller must know: whether a write was applied.

use crate::Version;

/// The result of an operation on a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why an operation on a store has failed; [`applied`](Self::applied) says whether a write may still have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The condition did not hold: someone else has written. Nothing changed. Read again and decide anew.
    #[error("key {key:?} {found}, which is not what the write expected; read it again and decide anew")]
    Conflict {
        /// The key that was to be written.
        key: String,
        /// What was there instead.
        found: Found,
    },

    /// The operation was given up before it could have any effect: a full queue, a lock not obtained, a deadline.
    /// Nothing changed. Repeat it later.
    #[error("the operation on key {key:?} was not carried out: {reason}")]
    NotApplied {
        /// The key, or the prefix of a scan.
        key: String,
        /// What happened and what helps.
        reason: String,
    },

    /// No answer came in time or the connection broke: the write may have been applied, or may still be. Read the key
    /// again; repeat the write only under the version that is found then.
    #[error("the write of key {key:?} may or may not have been applied: {reason}; read the key before writing again")]
    Unknown {
        /// The key that was to be written.
        key: String,
        /// What happened.
        reason: String,
    },

    /// The caller's key is not one that every engine can hold. Nothing changed. Do not repeat it.
    #[error("key {key:?} cannot be stored: {reason}")]
    InvalidKey {
        /// The key's beginning.
        key: String,
        /// What is wrong with it and what helps.
        reason: String,
    },

    /// The caller's value is over the engine's limit. Nothing changed. Do not repeat it.
    #[error("the value for key {key:?} has {bytes} bytes, {store} takes at most {bytes_max}; split or shrink it")]
    TooLarge {
        /// The key that was to be written.
        key: String,
        /// The store, as its URL names it.
        store: String,
        /// The value's size.
        bytes: usize,
        /// The most that the engine takes.
        bytes_max: usize,
    },

    /// The caller's commit breaks a rule that every journal has, or is over this one's limits. Nothing changed. Do not
    /// repeat it as it is.
    #[error("the commit of key {key:?} cannot be carried out: {reason}")]
    InvalidCommit {
        /// What the commit is named after: a key or log of it.
        key: String,
        /// What is wrong with it and what helps.
        reason: String,
    },

    /// The configuration names something that is not there or that the engine does not know: a database, a bucket, a
    /// parameter of the URL. Nothing changed. Do not repeat it before it is put right.
    #[error("{store} cannot be opened: {reason}")]
    Configuration {
        /// The store, as its URL names it.
        store: String,
        /// What is wrong and what helps.
        reason: String,
    },

    /// The engine has no room left. Nothing changed. Reads still work; writes do when there is room again.
    #[error("{store} has no room left: {reason}; free or add space, then write again")]
    Full {
        /// The store, as its URL names it.
        store: String,
        /// The engine's own words.
        reason: String,
    },

    /// The store was written by a newer Greenroom, or by something else. Nothing changed. Do not repeat it.
    #[error("{store} cannot be used: {reason}")]
    Format {
        /// The store, as its URL names it.
        store: String,
        /// Which format was found, which are known, and what helps.
        reason: String,
    },

    /// The engine refuses this user or process: a wrong password, a missing right. Nothing changed. Do not repeat it before rights are given.
    #[error("{store} denies access: {reason}")]
    Denied {
        /// The store, as its URL names it.
        store: String,
        /// What was refused and what helps.
        reason: String,
    },

    /// The engine cannot be reached or used now. Nothing changed. Repeat it later.
    #[error("{store} is not available: {reason}")]
    Unavailable {
        /// The store, as its URL names it.
        store: String,
        /// What happened and what helps.
        reason: String,
    },
}

impl StoreError {
    /// Whether the write that failed so may have been applied nevertheless. Reads apply nothing.
    pub fn applied(&self) -> Applied {
        match self {
            Self::Unknown { .. } => Applied::Maybe,
            Self::Conflict { .. }
            | Self::NotApplied { .. }
            | Self::InvalidKey { .. }
            | Self::TooLarge { .. }
            | Self::InvalidCommit { .. }
            | Self::Configuration { .. }
            | Self::Full { .. }
            | Self::Format { .. }
            | Self::Denied { .. }
            | Self::Unavailable { .. } => Applied::No,
        }
    }

    /// Whether the same operation would fail again and again: for what is asked, or as what is stored cannot be read. It is
    /// never repeated as it is. Every other failure is one of the store as a whole, and passes or is put right by operators.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::InvalidKey { .. } | Self::TooLarge { .. } | Self::InvalidCommit { .. } | Self::Format { .. } => true,
            Self::Conflict { .. }
            | Self::NotApplied { .. }
            | Self::Unknown { .. }
            | Self::Configuration { .. }
            | Self::Full { .. }
            | Self::Denied { .. }
            | Self::Unavailable { .. } => false,
        }
    }

    /// Whether the condition of a write did not hold.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// Whether a failed write had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It had none and never will.
    No,
    /// It may have been applied, or may still be.
    Maybe,
}

/// What a refused conditional write has met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing under the key.
    Absent,
    /// A value of this version.
    Version(Version),
    /// The engine does not tell.
    Untold,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("does not exist"),
            Self::Version(version) => write!(f, "is at version {version}"),
            Self::Untold => f.write_str("is at another version"),
        }
    }
}
