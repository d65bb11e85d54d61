//! What happens to a partition, and what it wants done.

use serde::{Deserialize, Serialize};

use super::{
    Birth, Call, Commit, CommitId, Deferred, Delivery, Epoch, Lane, Life, OutOfBounds, Parked, PartitionId, Presence,
    Recorded, Sealed, Timer, TurnId, WaitingPlace, Wire,
};

/// What happened to a partition that this node owns.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<A, M> {
    /// This came from the owner of another partition, or of this one.
    Arrived(Wire<A, M>),
    /// A call from outside; its envelope names the call.
    Called(Sealed<A, M>),
    /// Nobody waits for a call from outside any more: unless its turn has begun, it never does.
    Withdrawn {
        /// The actor that was called.
        actor: A,
        /// The call's key.
        call: String,
    },
    /// The records of an actor are read.
    Loaded {
        /// The actor.
        actor: A,
        /// Its incarnation.
        presence: Option<Presence>,
        /// Its own queue, in the order of the slots.
        queue: Vec<Deferred<A, M>>,
    },
    /// The records of an actor cannot be read, and no retry would change that: they are damaged, or there can be none.
    Unloadable {
        /// The actor.
        actor: A,
        /// What is wrong with them.
        error: String,
    },
    /// The answers that may be a call's are read.
    Recalled {
        /// The call's idempotency key.
        key: String,
        /// The numbers of those that were read.
        numbers: Vec<u64>,
        /// The one with this key, if there is one; or why it cannot be read, now or ever.
        found: Result<Option<Recorded<M>>, String>,
    },
    /// The node can run a turn for which it had to be asked with [`Action::Admit`].
    Admitted(TurnId),
    /// A turn has ended.
    Ended {
        /// The turn.
        turn: TurnId,
        /// How.
        outcome: Outcome<A, M>,
    },
    /// The commit is applied.
    Committed(CommitId),
    /// The commit was not applied and never will be, for a reason in itself: too large, an invalid key. (What is
    /// worth a retry of the same commit, the caller retries.)
    Aborted {
        /// The commit.
        id: CommitId,
        /// The reason.
        error: String,
    },
    /// Nobody knows whether the commit is applied or still will be.
    Unsettled(CommitId),
    /// The fence was replaced: another node owns the partition.
    Deposed,
    /// Entries of a lane are read; an entry that is not there has been trimmed.
    Paged {
        /// The lane.
        lane: Lane,
        /// The entries, in order.
        entries: Vec<(u64, Sealed<A, M>)>,
    },
    /// A plug has delivered this output to the outside.
    Delivered {
        /// The lane.
        lane: Lane,
        /// The number.
        number: u64,
    },
    /// A plug will never deliver this output: its receiver does not want it.
    Refused {
        /// The lane.
        lane: Lane,
        /// The number.
        number: u64,
        /// Why.
        error: String,
    },
    /// An operator wants a parked message to be tried again. Nothing happens unless it
    /// [is there](super::Partition::is_parked).
    Retry(Parked<A, M>),
    /// An operator drops a parked message. Nothing happens unless it [is there](super::Partition::is_parked).
    Drop(Parked<A, M>),
    /// An operator drops a message that waits for its turn, or whose turn does not end. Nothing happens unless it
    /// [is there](super::Partition::waits_at).
    DropWaiting {
        /// The actor.
        actor: A,
        /// The place of the message.
        place: WaitingPlace,
        /// The message, if the journal holds it in the actor's own queue.
        stored: Option<Sealed<A, M>>,
    },
    /// The deadline came.
    Tick,
}

/// How a turn ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome<A, M> {
    /// It has effects.
    Done(Box<Effects<A, M>>),
    /// The actor wants the message later: it goes to its own queue.
    Deferred,
    /// The handler failed, and has no effects.
    Failed(String),
    /// The host in which it ran died, so it has no effects.
    Died,
}

/// What a turn does besides changing its actor's fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Effects<A, M> {
    /// What it sends, in order.
    pub sends: Vec<Outgoing<A, M>>,
    /// The names of timers of this actor that are cancelled; those that have none are not there any more.
    pub cancels: Vec<String>,
    /// What is to be sent later, after that: a timer with a name takes the place of the actor's timer of that name.
    pub timers: Vec<Timer<A, M>>,
    /// Whether the actor halts.
    pub halts: bool,
    /// Whether deferred messages may be handled now: the actor is in another state.
    pub reconsider: bool,
    /// The answer to a call from outside.
    pub answer: Option<M>,
    /// How many bytes it is, about.
    pub answer_bytes: usize,
    /// How many writes its changes of fields are, for the bounds of a commit.
    pub operations: usize,
    /// How many bytes all of it is, about.
    pub bytes: usize,
}

impl<A, M> Default for Effects<A, M> {
    fn default() -> Self {
        let (sends, cancels, timers) = (Vec::new(), Vec::new(), Vec::new());
        let (answer, answer_bytes) = (None, 0);
        Self { sends, cancels, timers, halts: false, reconsider: false, answer, answer_bytes, operations: 1, bytes: 0 }
    }
}

/// One message that a turn sends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Outgoing<A, M> {
    /// Whose it is to deliver.
    pub to: Destination,
    /// How.
    pub delivery: Delivery,
    /// What.
    pub envelope: Sealed<A, M>,
}

/// Where a message leaves to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Destination {
    /// The partition of the receiving actor.
    Partition(PartitionId),
    /// A plug to the outside.
    Outside(u32),
}

/// What must be done, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<A, M> {
    /// Send it to the owner of a partition; it may be lost.
    Send {
        /// The partition.
        to: PartitionId,
        /// What.
        wire: Wire<A, M>,
    },
    /// Hand it to a plug, which says [`Event::Delivered`] or [`Event::Refused`]. The key of it for the outside to tell repeats
    /// by is the partition, its life, the lane and the number.
    Output {
        /// The partition's life.
        life: Life,
        /// The lane.
        lane: Lane,
        /// The number.
        number: u64,
        /// What.
        envelope: Sealed<A, M>,
        /// Whether it is worth several tries: not if the last output of its actor was refused.
        patient: bool,
    },
    /// Read an actor's records, and say [`Event::Loaded`] or [`Event::Unloadable`].
    Load(A),
    /// Forget the activation, and a turn of it that still runs: its fields are read again before its next turn.
    Reset(A),
    /// Say [`Event::Admitted`] as soon as this node can run the turn of a suspect. It is not to begin before [`Action::Run`].
    Admit {
        /// The turn.
        turn: TurnId,
        /// The message.
        envelope: Sealed<A, M>,
        /// True if no other suspect of any partition may run at this node until the turn has ended.
        alone: bool,
    },
    /// Run a turn, and say [`Event::Ended`].
    Run {
        /// The turn.
        turn: TurnId,
        /// The message.
        envelope: Sealed<A, M>,
    },
    /// Commit, and say [`Event::Committed`], [`Event::Aborted`], [`Event::Unsettled`] or [`Event::Deposed`]. There is
    /// never more than one at a time.
    Commit(Commit<A, M>),
    /// Read entries of a lane's log, and say [`Event::Paged`].
    Page {
        /// The lane.
        lane: Lane,
        /// The first number.
        from: u64,
        /// At most so many.
        limit: usize,
    },
    /// Trim a lane's log up to and with this number. It may be lost.
    Trim {
        /// The lane.
        lane: Lane,
        /// The number.
        through: u64,
    },
    /// Read the recorded answers with these numbers until one has this key, and say [`Event::Recalled`].
    Recall {
        /// The idempotency key.
        key: String,
        /// The numbers.
        numbers: Vec<u64>,
    },
    /// Trim the logs of recorded answers and of their bundles up to and with these numbers. It may be lost.
    Prune {
        /// The number of the last answer to go.
        answers: u64,
        /// The number of the last bundle to go.
        bundles: u64,
    },
    /// Answer all who wait for this call: for this request under this key.
    Answer {
        /// The call.
        call: Call,
        /// With what.
        answer: Answer<M>,
    },
    /// A message from the owner of another partition was not taken in, for the log.
    Refuse(OutOfBounds),
    /// A message that no actor gets, for the log and the metrics.
    DeadLetter {
        /// The message.
        envelope: Sealed<A, M>,
        /// Why.
        why: DeadLetter,
    },
    /// This ownership is over: let go of everything of it, and if the partition is still ours take the fence anew.
    Stop(Stop),
}

/// The answer to a call from outside.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer<M> {
    /// The turn is committed.
    Done(Option<M>),
    /// The turn failed and has no effects.
    Failed(String),
    /// No turn ran: there is no room; try again.
    Busy,
    /// No turn ran: too much waits for this actor; try again.
    Crowded,
    /// No turn ran: no more answers can be kept, and none is forgotten before its time.
    Full,
    /// No turn ran: of the room for answers its caller holds as much as is left for all others, and no answer is forgotten
    /// before its time.
    OverShare {
        /// Bytes of the answers to calls of this caller, about.
        held: u64,
        /// Bytes for which there is room.
        left: u64,
    },
    /// No turn ran: the key belongs to another request.
    OtherRequest,
    /// No turn ran: there is no such actor.
    NoActor,
    /// No turn ran: the actor's records cannot be read.
    Unloadable(String),
    /// No turn ran now; one may have run before under the same key, whose answer cannot be read.
    Unread(String),
}

/// Why no actor got a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeadLetter {
    /// The incarnation has halted.
    Halted,
    /// Another incarnation holds the key.
    Exists,
    /// A best-effort message found no room.
    NoRoom,
    /// An operator dropped it.
    Dropped,
}

/// Why an ownership is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stop {
    /// Another node owns the partition.
    Deposed,
    /// A commit's outcome is unknown: only a new fence and a new reading of the journal tell.
    Unsettled,
}

/// An ownership under which nothing has been done yet: who holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ownership {
    /// The partition.
    pub partition: PartitionId,
    /// The fence's epoch.
    pub epoch: Epoch,
}

impl Ownership {
    /// The incarnation that the `serial`th creation under this ownership gives.
    pub(crate) fn birth(self, life: Life, serial: u64) -> Birth {
        Birth { by: self.partition, life, epoch: self.epoch, serial }
    }
}
