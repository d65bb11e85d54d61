//! Messages, and what travels between the owners of two partitions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Birth, Epoch, Life, PartitionId};

/// A message to an actor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Envelope<A, M> {
    /// The sending actor; `None` if it comes from outside.
    pub from: Option<A>,
    /// The receiving actor.
    pub to: A,
    /// Its incarnation, if the reference names one; always for a creation.
    pub birth: Option<Birth>,
    /// Whether it brings the actor into being.
    pub creates: bool,
    /// The call from outside that waits for the answer.
    pub call: Option<Call>,
    /// What the actor gets.
    pub body: M,
}

/// An envelope that nobody changes any more: the log, the lane and the receiver share it.
pub type Sealed<A, M> = Arc<Envelope<A, M>>;

/// A call from outside.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The idempotency key, or a name for this call alone.
    pub key: String,
    /// A hash of the request as it was decoded: a key that is used again for another request is refused.
    pub request: u64,
    /// The hash of its bytes, by which earlier programs have recorded requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<u64>,
    /// Whether the answer is recorded for repeats.
    pub recorded: bool,
}

impl Call {
    /// True if it is a repeat of the request with this hash.
    pub fn is_repeat_of(&self, request: u64) -> bool {
        self.request == request || self.as_written == Some(request)
    }
}

/// What the owner of one partition sends to the owner of another. May be lost, repeated and overtaken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Wire<A, M> {
    /// Messages of a lane.
    Batch(Batch<A, M>),
    /// What the receiver has of a lane.
    Reply(Reply),
    /// A best-effort message.
    Single(Sealed<A, M>),
    /// Asks the creator's partition how far its counted lane to us goes.
    Ask {
        /// Who asks.
        from: PartitionId,
        /// The creation in question.
        birth: Birth,
    },
    /// All creations whose references were known when the question came are at or below `committed`.
    Standing {
        /// Who answers.
        from: PartitionId,
        /// Its life.
        life: Life,
        /// The creation in question.
        birth: Birth,
        /// The last number of the lane.
        committed: u64,
    },
}

/// Messages of one lane, with successive numbers but for those that the sender knows to be acknowledged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Batch<A, M> {
    /// The sending partition.
    pub from: PartitionId,
    /// Its life.
    pub life: Life,
    /// Its ownership.
    pub epoch: Epoch,
    /// Whether it is the counted lane, else the loose one.
    pub counted: bool,
    /// Rises when the sender rewinds: a refusal answers one round.
    pub round: u32,
    /// Everything up to here has been acknowledged.
    pub floor: u64,
    /// The first number that is not acknowledged here, or the next one if there are no messages: the sender asks where
    /// the receiver is.
    pub first: u64,
    /// The messages by number.
    pub messages: Vec<(u64, Sealed<A, M>)>,
    /// Highest of their numbers that was sent before, perhaps to an earlier owner; 0 if all are new. An earlier program does not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_before: Option<u64>,
}

/// What the receiver has committed of a lane, and what it is ready to take.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The receiving partition.
    pub from: PartitionId,
    /// Its life.
    pub life: Life,
    /// Its ownership.
    pub epoch: Epoch,
    /// The life of the sender that this answers.
    pub to_life: Life,
    /// The ownership of the sender that this answers.
    pub to_epoch: Epoch,
    /// Whether it is about the counted lane, else the loose one.
    pub counted: bool,
    /// The round that this answers.
    pub round: u32,
    /// Everything up to here is committed: acknowledged.
    pub low: u64,
    /// Ranges of committed numbers above that, first and last: acknowledged too.
    pub above: Vec<(u64, u64)>,
    /// The number that the receiver takes next.
    pub expected: u64,
    /// Whether a number above `expected` came: the sender rewinds to it.
    pub refused: bool,
    /// The highest number that the receiver has room for (R7).
    pub limit: u64,
}
