//! What a partition keeps in its journal, and what one commit changes of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    Birth, Call, CommitId, Delivery, Destination, Epoch, Lane, Life, Outgoing, PartitionId, Sealed, Slot, TurnAttempt,
    TurnId, WaitingPlace,
};
use crate::reminders::Wall;

/// Which numbers of a counted lane have been committed: the receive record, one for each sending partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Receipts {
    /// The life of the sender that the numbers belong to.
    pub life: Life,
    /// All numbers up to here.
    pub low: u64,
    /// Single numbers above: fewer than [`Config::window`](super::Config::window).
    pub above: BTreeSet<u64>,
}

impl Receipts {
    /// Whether `number` has been committed.
    pub fn has(&self, number: u64) -> bool {
        number <= self.low || self.above.contains(&number)
    }

    /// Adds `number`.
    pub fn add(&mut self, number: u64) {
        if number > self.low {
            self.above.insert(number);
        }
        self.settle();
    }

    /// Adds everything up to `floor`.
    pub fn raise(&mut self, floor: u64) {
        self.low = self.low.max(floor);
        self.settle();
    }

    /// The single numbers as ranges, first and last: short even where one slow turn holds the low-water mark back.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        ranges(&self.above)
    }

    /// The record with these ranges above `low`.
    pub fn from_ranges(life: Life, low: u64, ranges: &[(u64, u64)]) -> Self {
        let above = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
        Self { life, low, above }
    }

    fn settle(&mut self) {
        while let Some(first) = self.above.first().copied().filter(|first| *first <= self.low + 1) {
            self.above.pop_first();
            self.low = self.low.max(first);
        }
    }
}

/// `numbers` as ranges, first and last.
pub(super) fn ranges(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    ranges
}

/// What is known of an actor's incarnation; an actor that was never created, or whose end is long past, has no record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Presence {
    /// The creation that it comes from.
    pub birth: Birth,
    /// The creation's number in the lane from the creator's partition.
    pub number: u64,
    /// Whether it has halted: a tombstone, kept until the lane has passed `number`.
    pub halted: bool,
}

/// A message in an actor's own queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Deferred<A, M> {
    /// Where it lies.
    pub slot: Slot,
    /// The message.
    pub envelope: Sealed<A, M>,
}

/// A message that is sent when it is due: in the commit that removes the timer, so once, whatever crashes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Timer<A, M> {
    /// When it is due, by the owners' wall clocks.
    pub due: Wall,
    /// Where it lies; given by the partition.
    pub slot: Slot,
    /// What is sent.
    pub outgoing: Outgoing<A, M>,
    /// What its actor cancels it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A poison message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Parked<A, M> {
    /// Where it lies.
    pub slot: Slot,
    /// The message.
    pub envelope: Sealed<A, M>,
    /// What its last attempt failed of.
    pub error: String,
    /// How it was to leave; `None` for a message to an actor of this partition, whose turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves: Option<Leaves>,
}

/// How something leaves a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Leaves {
    /// As an output, under this number.
    Output {
        /// The lane.
        lane: Lane,
        /// The number: part of the key that tells repeats, so it keeps it.
        number: u64,
    },
    /// As the message of a timer that is due.
    Message {
        /// Whose it is to deliver.
        to: Destination,
        /// How.
        delivery: Delivery,
    },
}

/// The recorded answer to a call from outside: an entry of the partition's log of answers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Recorded<M> {
    /// The idempotency key.
    pub key: String,
    /// The hash of the request.
    pub request: u64,
    /// When it was recorded, by the owner's wall clock; never less than that of an earlier entry.
    pub at: Wall,
    /// The answer.
    pub answer: Option<M>,
}

/// By what a run of recorded answers is found again, and when they may go: an entry of the log of bundles.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Bundle {
    /// The number of the first answer.
    pub first: u64,
    /// The marks of the keys, by number.
    pub marks: Vec<u32>,
    /// When the last one was recorded.
    pub at: Wall,
    /// How many bytes they are, about.
    pub bytes: u64,
    /// Whose they are: the hashes of those who called, in order, and the bytes of each. A program that does not count them
    /// leaves it empty: its answers are nobody's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<(u64, u64)>,
}

impl Bundle {
    /// The number of the last answer; one less than the first if there is none.
    pub fn last(&self) -> u64 {
        self.first + self.marks.len() as u64 - 1
    }
}

/// A recorded answer that is in no bundle.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loose {
    /// Its number.
    pub number: u64,
    /// The idempotency key.
    pub key: String,
    /// When it was recorded.
    pub at: Wall,
    /// How many bytes it is, about.
    pub bytes: u64,
}

/// What a partition reads of its recorded answers: not the answers themselves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kept<M> {
    /// The bundles, by their numbers.
    pub bundles: Vec<(u64, Bundle)>,
    /// The number of the last bundle that was ever written.
    pub bundle_last: u64,
    /// The answers behind the last bundle, in order and without a gap up to `last`.
    pub loose: Vec<Loose>,
    /// The number of the last answer that was ever recorded.
    pub last: u64,
    /// What an earlier program has recorded, in a format without times.
    pub earlier: Vec<Recorded<M>>,
    /// When this format took over.
    pub earlier_since: Wall,
}

impl<M> Kept<M> {
    /// Nothing.
    pub fn none() -> Self {
        let (bundles, loose, earlier) = (Vec::new(), Vec::new(), Vec::new());
        Self { bundles, bundle_last: 0, loose, last: 0, earlier, earlier_since: Wall::default() }
    }
}

/// One write of a commit. Keys and encodings are the caller's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Write<A, M> {
    /// Append to the outbox: the entry's position in the lane's log is `number`.
    Append {
        /// The lane.
        lane: Lane,
        /// The number.
        number: u64,
        /// The entry.
        envelope: Sealed<A, M>,
    },
    /// Put the receive record of a sending partition.
    Receipts {
        /// The sending partition.
        from: PartitionId,
        /// The life of the sender.
        life: Life,
        /// All numbers up to here.
        low: u64,
        /// Ranges above, first and last.
        above: Vec<(u64, u64)>,
    },
    /// Put, or with `None` remove, what is known of an actor's incarnation.
    Presence {
        /// The actor.
        actor: A,
        /// The record.
        presence: Option<Presence>,
    },
    /// Put into an actor's own queue.
    Defer(Deferred<A, M>),
    /// Remove from an actor's own queue.
    Undefer {
        /// The actor.
        actor: A,
        /// Where it lies.
        slot: Slot,
    },
    /// Put among the parked messages.
    Park(Parked<A, M>),
    /// Remove from the parked messages.
    Unpark(Slot),
    /// Put a timer.
    Arm(Timer<A, M>),
    /// Remove a timer.
    Disarm {
        /// When it was due.
        due: Wall,
        /// Where it lies.
        slot: Slot,
    },
    /// Append to the log of recorded answers, at position `number`.
    Record {
        /// The number.
        number: u64,
        /// The answer.
        recorded: Recorded<M>,
    },
    /// Append to the log of bundles, at position `number`.
    Tie {
        /// The number.
        number: u64,
        /// The bundle.
        bundle: Bundle,
    },
    /// Remove the answer to this key that an earlier program has recorded.
    Forget(String),
    /// Put an attempt at a turn.
    Attempt(TurnAttempt),
    /// Remove the attempt at the turn of the message at this place.
    EndAttempt(WaitingPlace),
}

/// What must be written at once, or not at all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Commit<A, M> {
    /// To name it by in the answer.
    pub id: CommitId,
    /// The ownership whose fence it holds: with any other in place nothing of it is written.
    pub epoch: Epoch,
    /// The turns whose changes of their actors' fields belong to it, in order: of two changes of a field the later one
    /// is written. Those of a turn that halts are the removal of all fields.
    pub turns: Vec<TurnId>,
    /// What else it writes: nothing twice.
    pub writes: Vec<Write<A, M>>,
}

/// What a new owner reads from the journal, after it has replaced the fence and before anything else. Its size does
/// not depend on how many actors sleep.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Recovered<A, M> {
    /// The partition's life.
    pub life: Life,
    /// For each log of the outbox: the number before the first entry that is left, and the last number given.
    pub lanes: Vec<(Lane, u64, u64)>,
    /// The receive records.
    pub receipts: Vec<(PartitionId, Receipts)>,
    /// The actors whose own queues are not empty.
    pub queued: Vec<A>,
    /// The tombstones.
    pub tombstones: Vec<(A, Presence)>,
    /// The recorded answers.
    pub answers: Kept<M>,
    /// The calls with idempotency keys that wait in actors' own queues.
    pub waiting: Vec<Call>,
    /// The timers.
    pub timers: Vec<Timer<A, M>>,
    /// Where messages are parked, and how they were to leave.
    pub parked: Vec<(Slot, Option<Leaves>)>,
    /// Attempts at turns.
    pub attempts: Vec<TurnAttempt>,
    /// Number of the process that takes the ownership: no other process has it.
    pub process: u64,
    /// True if the owner before was another process and did not say that it leaves: it may have died.
    pub after_death: bool,
}

impl<A, M> Recovered<A, M> {
    /// A partition that has never been used.
    pub fn empty(life: Life) -> Self {
        Self {
            life,
            lanes: Vec::new(),
            receipts: Vec::new(),
            queued: Vec::new(),
            tombstones: Vec::new(),
            answers: Kept::none(),
            waiting: Vec::new(),
            timers: Vec::new(),
            parked: Vec::new(),
            attempts: Vec::new(),
            process: 0,
            after_death: false,
        }
    }
}
