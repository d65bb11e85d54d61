//! Room that a store takes where it is.

use std::time::Duration;

/// Room that a store takes on a disk of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskUsage {
    /// The store's URL, without a password.
    pub name: String,
    /// Bytes of its file.
    pub bytes: u64,
    /// Bytes of its write-ahead log, which are not copied into the file yet, or are kept to be written again.
    pub log_bytes: u64,
    /// Time since this process last copied the whole log into the file, or opened it.
    pub since_checkpoint: Duration,
    /// Bytes that this user can still write on that disk.
    pub free_bytes: u64,
}

impl DiskUsage {
    /// The usage of the store called `name`, of nothing so far.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), bytes: 0, log_bytes: 0, since_checkpoint: Duration::ZERO, free_bytes: 0 }
    }
}
