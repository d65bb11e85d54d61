//! What is wrong with files that say who may connect and call.

use std::path::PathBuf;

/// Why a file cannot be used. Who wrote the file is at fault; nothing of it is in force.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not there, too long, or closed to this user.
    #[error("cannot read {what} {}: {reason}", path.display())]
    Unreadable {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file was read, but does not hold what it should.
    #[error("cannot use {what} {}: {reason}", path.display())]
    Unusable {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong, and what helps.
        reason: String,
    },
    /// A setting contradicts itself or another.
    #[error("{setting}: {reason}")]
    Setting {
        /// Its name in the configuration.
        setting: String,
        /// What is wrong, and what helps.
        reason: String,
    },
}
