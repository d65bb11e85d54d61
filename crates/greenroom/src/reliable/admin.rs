//! What operators see of partitions, and ask of them.

use serde::{Deserialize, Serialize};

/// How a partition is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) partition: u32,
    /// The node that owns it.
    pub(crate) node: String,
    /// The fence's epoch; 0 while the partition is being recovered.
    pub(crate) epoch: u64,
    /// Actors in memory.
    pub(crate) actors: u64,
    /// Messages in memory that are not committed.
    pub(crate) waiting: u64,
    /// Messages that are committed and not acknowledged by their receivers.
    pub(crate) outgoing: u64,
    /// Commits since this owner took the partition.
    pub(crate) commits: u64,
    /// Turns in them.
    pub(crate) turns: u64,
    /// Milliseconds that the last commit took.
    pub(crate) commit_ms: f64,
}

/// What an operator wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Errand {
    /// The parked messages, as JSON.
    Parked,
    /// Let a parked message be tried again.
    Retry(String),
    /// Drop a parked message.
    Drop(String),
    /// What is known of an actor, as JSON.
    Actor { kind: String, key: String },
}
