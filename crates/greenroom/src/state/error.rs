//! Why a state was not saved or loaded.

use greenroom_store::StoreError;
use serde::{Deserialize, Serialize};

/// Why a state was not saved, loaded or cleared. It is plain data, so that handlers can give it to their callers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Somebody else has written the state since this activation last saw it. Nothing of this save was applied, and the
    /// activation has reloaded what is there: decide anew.
    #[error("state {state:?} was changed by somebody else; it has been reloaded, decide anew")]
    Conflict {
        /// The state, as the store's key names it.
        state: String,
    },
    /// A later activation of the actor has written the state. Nothing of this save was applied; this activation ends with
    /// its turn. Retry the call: it goes to the later one.
    #[error("state {state:?} belongs to a later activation of the actor; retry the call")]
    Superseded {
        /// The state, as the store's key names it.
        state: String,
    },
    /// The save had no effect and never will. The activation ends with its turn, so that nobody sees what was not saved.
    #[error("state {state:?} was not saved: {reason}")]
    NotSaved {
        /// The state, as the store's key names it.
        state: String,
        /// What happened and what helps.
        reason: String,
    },
    /// The save may or may not have been applied. The activation ends with its turn: the next one reads what is there.
    #[error(
        "state {state:?} may or may not have been saved: {reason}; the actor reads what is there before its next turn"
    )]
    Unknown {
        /// The state, as the store's key names it.
        state: String,
        /// What happened.
        reason: String,
    },
    /// Updates of a versioned state were not confirmed in time. They still wait, and are confirmed as soon as the store
    /// answers; do not enqueue them again.
    #[error("updates of state {state:?} are not confirmed yet: {reason}; they still wait, do not enqueue them again")]
    Unconfirmed {
        /// The state, as the store's key names it.
        state: String,
        /// What keeps them.
        reason: String,
    },
    /// Updates of a versioned state were refused, as too many waited for the store. They have no effect; enqueue fewer
    /// at once, and confirm now and then.
    #[error(
        "updates of state {state:?} were refused: {bound} wait for the store already; confirm before you enqueue more"
    )]
    Overflow {
        /// The state, as the store's key names it.
        state: String,
        /// How many may wait.
        bound: u64,
    },
    /// The state was written by a newer program than this node's, which does not read it. Nothing has changed, and no retry
    /// helps here: run the newer program.
    #[error(
        "state {state:?} was written by version {wrote} of its type, this program knows up to {reads}; run the newer program"
    )]
    Newer {
        /// The state, as the store's key names it.
        state: String,
        /// The version that wrote it.
        wrote: u8,
        /// The latest version that this program reads.
        reads: u8,
    },
    /// What is in the store could not be read. Nothing has changed.
    #[error("state {state:?} could not be loaded: {reason}")]
    NotLoaded {
        /// The state, as the store's key names it.
        state: String,
        /// What happened and what helps.
        reason: String,
    },
}

impl StateError {
    pub(crate) fn not_saved(state: &str, reason: impl ToString) -> Self {
        Self::NotSaved { state: state.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn unknown(state: &str, error: &StoreError) -> Self {
        let reason = match error {
            StoreError::Unknown { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        Self::Unknown { state: state.to_owned(), reason }
    }

    pub(crate) fn not_loaded(state: &str, reason: impl ToString) -> Self {
        Self::NotLoaded { state: state.to_owned(), reason: reason.to_string() }
    }

    /// Whether the activation's memory can no longer be trusted to be what is in the store.
    pub(crate) fn ends_activation(&self) -> bool {
        match self {
            Self::Superseded { .. } | Self::NotSaved { .. } | Self::Unknown { .. } => true,
            Self::Conflict { .. }
            | Self::Newer { .. }
            | Self::NotLoaded { .. }
            | Self::Unconfirmed { .. }
            | Self::Overflow { .. } => false,
        }
    }
}
