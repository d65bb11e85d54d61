//! Delivery: messages between reliable actors are processed exactly once, whatever crashes (RSM §4.1-4.2).
//! Pure: no clock, no I/O, no randomness.
//!
//! Reliable actors hash into partitions, and a node owns a [`Partition`] under an [`Epoch`]: the journal holds it in a fence,
//! every [`Commit`] names it, and so nothing of an earlier owner is written after its successor has read the journal.
//!
//! - **Sending.** The [`Sender`] keeps a [`Lane`] of numbered messages for each destination. A message gets its number in
//!   the commit of the turn that sends it and leaves when that commit is applied (RSM §3.1, rules G-commit and G-send). It is sent
//!   again until it is acknowledged, within the receiver's limit (R7); then the log is trimmed. A lane that is stuck keeps
//!   nobody but itself waiting (R3): no commit stays open while a message travels.
//! - **Receiving.** The [`Receiver`] keeps [`Receipts`] for each sending partition: a low-water mark and a bounded set of
//!   numbers above it, for turns commit out of order. The receipt is written by the commit that holds the effects of the
//!   message, and acknowledged after that (R1). In memory, `expected` marks what waits for its turn (R2). A number below is a
//!   repetition; one above is refused, and the sender rewinds.
//! - **Order** holds for each pair of sending and receiving actor. Messages that were deferred or parked leave it.
//! - **Poison** (R6): a turn that fails is tried again on a fresh activation, at last its message is parked, by a commit
//!   that is also its receipt. A commit that the journal refuses is tried in halves, down to the one message that is to blame,
//!   be it a turn's or a timer's. What cannot even be parked waits, with a pause between tries. A parked message is one
//!   operator's at a time: retried twice at once it runs once.
//! - **Deaths** (R6): a turn that aborts its process is not tried for ever either. After the death of an owner or a host, an
//!   attempt at what may have caused it is recorded before the turn begins; a message that has taken down several processes is
//!   parked.
//! - **Incarnations** (R4, R5): a creation is a numbered message, so it is carried out once. A message may name the
//!   [`Birth`] that it is meant for, and no other incarnation gets it. If that is not there, the creator's partition
//!   says how far its lane goes: until we have passed that, the creation may still come, and the message is held.
//! - **Calls from outside** with an idempotency key run once; repeats get the recorded answer, for a time. When there is
//!   no room to keep more answers, new keys are refused: no answer goes before its time. Nobody who calls holds more of that room
//!   than is left for all others. A call waits as long as its caller
//!   does, and only so many wait for one actor.
//! - **Timers** are records of the sender's partition. The commit that sends what is due removes its timer; so does that of
//!   a turn that cancels it by its name.
//! - **Outputs** to the outside are handed over at least once, those of one actor in their order. One that its outlet will not
//!   have is parked; meanwhile only its own actor's wait.
//!
//! # How to drive it
//!
//! To own a partition, replace its fence in the journal by one of the next epoch (compare-and-swap), *then* read
//! [`Recovered`], *then* [`recover`](Partition::recover). One task per partition hands events in and carries out the
//! actions in their order; it owns the `Partition`, so nothing is locked. [`Action::Commit`] becomes one
//! `Journal::commit` that holds the fence's version, with the keys' encodings chosen by the caller and the field changes
//! of the named turns added; `StoreError::Conflict` on the fence is [`Event::Deposed`], a refusal for what the commit is
//! (invalid, too large) [`Event::Aborted`], an unknown outcome [`Event::Unsettled`], and what did not happen but may the
//! next time is retried by the caller. There is one commit at a time per partition, because lane numbers are positions of
//! the journal's logs and these must have no gap; commits of different partitions share device syncs. Turns go on
//! meanwhile, on uncommitted state: their effects are in the next commit or, if this one is refused, undone by
//! [`Action::Reset`]. An actor that answers reads must wait with the answer for [`Action::Answer`] or its next commit.
//! After [`Action::Stop`] drop the machine, its turns and activations; only a new fence continues.

mod answers;
mod attempts;
mod bounds;
mod checks;
mod committing;
mod event;
mod holders;
mod homes;
mod ids;
mod mailbox;
mod message;
mod outgoing;
mod outlets;
mod parking;
mod partition;
mod recalls;
mod receiver;
mod records;
mod sender;
mod timers;
mod turns;
mod unloadable;
mod waiting;
mod withdrawn;

use std::time::Duration;

pub use attempts::{TurnAttempt, WaitingPlace};
pub use bounds::{ACKNOWLEDGED_MAX, NUMBER_MAX, OutOfBounds};
pub use checks::Checks;
pub use event::{Action, Answer, DeadLetter, Destination, Effects, Event, Outcome, Outgoing, Ownership, Stop};
pub use holders::kept_under;
pub use homes::homes;
pub use ids::{Birth, CommitId, Delivery, Epoch, Lane, Life, PartitionId, Slot, TurnId};
pub use message::{Batch, Call, Envelope, Reply, Sealed, Wire};
pub use partition::Partition;
pub use receiver::{Receiver, Source};
pub use records::{
    Bundle, Commit, Deferred, Kept, Leaves, Loose, Parked, Presence, Receipts, Recorded, Recovered, Timer, Write,
};
pub use sender::Sender;
pub use waiting::WaitingMessage;

/// Bounds and times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Partitions of the cluster: messages that name others are refused. Without a limit by default.
    pub partitions: u32,
    /// How far above the low-water mark numbers are taken: so many turns may pass one that is slow; 4096.
    pub window: u64,
    /// What may be sent before the receiver has said anything, and most outputs that are handed over at once; 256.
    pub first_credit: u64,
    /// Most messages in one batch; 256.
    pub batch_max: usize,
    /// Most entries of a lane in memory, the others stay in the journal; 8192.
    pub lane_memory_max: usize,
    /// Acknowledged numbers after which a lane is trimmed; 1024.
    pub trim_every: u64,
    /// Time after which it is trimmed although they are fewer, with all others of the partition: a trim is a write like
    /// any other, and one for each message of a quiet lane would double what that costs; 1 s. With 0, a lane is trimmed as
    /// soon as all of it is acknowledged.
    pub trim_after: Duration,
    /// Most messages in memory that are not committed; 65,536.
    pub queued_max: usize,
    /// Most of them that wait for one actor, of those that came from outside or by best effort: others' messages have
    /// room beside it; 8192.
    pub queued_of_actor_max: usize,
    /// Most turns in one commit; 1024.
    pub turns_max: usize,
    /// Most writes in one commit, about: the journal's own limit less one for the fence.
    pub operations_max: usize,
    /// Most bytes in one commit, about: well below the journal's own limit.
    pub bytes_max: usize,
    /// Failures after which a message is parked; 3.
    pub attempts_max: u32,
    /// Processes that may die during the turn of a message before it is parked; 3, and at least 2.
    pub deaths_max: u32,
    /// Pause before what the journal refuses in every form is tried again; 30 s. Only its own actor waits.
    pub hold: Duration,
    /// Silence after which a message is sent again; 200 ms, and twice that each time it stays silent.
    pub retransmit: Duration,
    /// Longest such silence; 5 s.
    pub retransmit_max: Duration,
    /// Time for which recorded answers are kept, at least; 24 h.
    pub answers_keep: Duration,
    /// Bytes of recorded answers after which calls with new idempotency keys are refused; 512 MiB. Those of one who holds more
    /// than is left are refused before: one alone has half.
    pub answers_bytes_max: u64,
    /// Most answers in one bundle; 1024.
    pub bundle_len_max: usize,
    /// The safety checks in force.
    #[doc(hidden)]
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            partitions: u32::MAX,
            window: 4096,
            first_credit: 256,
            batch_max: 256,
            lane_memory_max: 8192,
            trim_every: 1024,
            trim_after: Duration::from_secs(1),
            queued_max: 65_536,
            queued_of_actor_max: 8192,
            turns_max: 1024,
            operations_max: 4095,
            bytes_max: 16 << 20,
            attempts_max: 3,
            deaths_max: 3,
            hold: Duration::from_secs(30),
            retransmit: Duration::from_millis(200),
            retransmit_max: Duration::from_secs(5),
            answers_keep: Duration::from_secs(24 * 3600),
            answers_bytes_max: 512 << 20,
            bundle_len_max: 1024,
            checks: Checks::default(),
        }
    }
}
