//! What delivery names: partitions, owners, lives, actors' incarnations, lanes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fixed hash slice of reliable actors, owned by one node at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionId(pub u32);

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// An ownership of a partition: each new owner's is higher, and it is what the partition's fence in the journal holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// The incarnation of a partition's journal: a partition whose journal was lost begins anew in a higher one (R5).
///
/// It is written once, when the partition is first used; who writes it chooses it higher than any earlier one, such as
/// by the time of day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Life(pub u64);

/// The incarnation of a created actor: which creation it comes from. Never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Birth {
    /// The creator's partition.
    pub by: PartitionId,
    /// That partition's life.
    pub life: Life,
    /// Its ownership when the creating turn ran.
    pub epoch: Epoch,
    /// Counted within the ownership.
    pub serial: u64,
}

/// Where a stored thing of a partition lies: an actor's own queue, the parked messages. Later ones are higher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Slot {
    /// The ownership that wrote it.
    pub epoch: Epoch,
    /// Counted within the ownership.
    pub serial: u64,
}

/// One turn of one ownership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TurnId(pub u64);

/// One commit of one ownership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CommitId(pub u64);

/// A log of a partition's outbox, with numbers of its own: those are the positions of the entries in the journal's log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Lane {
    /// Exactly once, in order.
    Counted(PartitionId),
    /// At least once, in no order.
    Loose(PartitionId),
    /// To the outside, at least once: the plug of this number among the partition's environments.
    Outside(u32),
}

/// How a message travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Delivery {
    /// Once, in order for each pair of sender and receiver, whatever crashes.
    #[default]
    ExactlyOnce,
    /// Once or several times, in any order. Saves the receive record, and nothing waits for it.
    AtLeastOnce,
    /// Once or not at all, in any order: nothing is written for it.
    BestEffort,
}
