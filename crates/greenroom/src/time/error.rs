//! What may be wrong with a reminder.

use serde::{Deserialize, Serialize};

/// Why a reminder was not registered, listed or cancelled. It is plain data, so that handlers can give it to their callers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum ReminderError {
    /// What was asked for is no reminder. Nothing has changed, and a retry ends the same way.
    #[error("reminder {name:?} cannot be: {reason}")]
    Invalid {
        /// The reminder's name.
        name: String,
        /// What is wrong, and what helps.
        reason: String,
    },
    /// Nothing has changed; retry.
    #[error("reminder {name:?} could not be reached: {reason}; retry")]
    Unavailable {
        /// The reminder's name; empty for a list.
        name: String,
        /// What the store said.
        reason: String,
    },
    /// It may or may not have been done. Do it again: the later one counts.
    #[error("it is not known whether the change of reminder {name:?} was stored: {reason}; do it again")]
    Unknown {
        /// The reminder's name.
        name: String,
        /// What the store said.
        reason: String,
    },
}
