//! What waits for one actor.

use std::collections::{BTreeMap, VecDeque};

use super::{DeadLetter, Effects, Leaves, Presence, Sealed, Slot, Source, TurnId, WaitingPlace};

/// A message that waits for its turn, or whose turn waits for its commit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Item<A, M> {
    pub(super) source: Source,
    pub(super) envelope: Sealed<A, M>,
    /// How it leaves the partition; `None` if it is for an actor here.
    pub(super) leaves: Option<Leaves>,
    /// How often its turn has failed.
    pub(super) attempts: u32,
    /// Processes that died during its turn, as far as is known.
    pub(super) deaths: u32,
}

/// A message whose turn has ended, in the order of the commits to come.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ready<A, M> {
    pub(super) turn: Option<TurnId>,
    pub(super) item: Item<A, M>,
    pub(super) effect: Effect<A, M>,
}

/// What the commit of a message does besides its receipt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Effect<A, M> {
    Done {
        effects: Box<Effects<A, M>>,
        /// The actor's incarnation, if it changes.
        presence: Option<Presence>,
        /// What the actor's own queue loses because it halts.
        dropped: Vec<(Slot, Sealed<A, M>)>,
    },
    Deferred(Slot),
    Parked(Slot, String),
    /// A call from outside that failed.
    Failed(String),
    Dropped(DeadLetter),
    /// It leaves, or has left.
    Sent,
    /// An operator drops it.
    Discarded,
}

impl<A, M> Item<A, M> {
    /// An item that has neither failed nor taken down a process.
    pub(super) fn new(source: Source, envelope: Sealed<A, M>, leaves: Option<Leaves>) -> Self {
        Self { source, envelope, leaves, attempts: 0, deaths: 0 }
    }

    /// The place in which it waits for its turn.
    pub(super) fn place(&self) -> Option<WaitingPlace> {
        let call = self.envelope.call.as_ref().map(|call| WaitingPlace::Call(call.key.clone()));
        self.source.place().or(call)
    }
}

impl<A, M> Ready<A, M> {
    /// The actor here whose mailbox counts it; `None` for what only leaves, or is dropped unseen.
    pub(super) fn actor(&self) -> Option<&A> {
        let here = self.item.leaves.is_none() && !matches!(self.effect, Effect::Discarded);
        here.then_some(&self.item.envelope.to)
    }
}

/// What waits for one actor, and where the actor is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mailbox<A, M> {
    pub(super) records: Known,
    /// In the order in which they came.
    pub(super) queue: VecDeque<Item<A, M>>,
    /// The actor's own queue.
    pub(super) deferred: BTreeMap<Slot, Item<A, M>>,
    /// Where the pass over it stands; `None` if nothing there is due.
    pub(super) cursor: Option<Slot>,
    /// Failures and deaths of messages of it, while the actor is in memory.
    pub(super) failures: BTreeMap<Slot, (u32, u32)>,
    pub(super) running: Option<TurnId>,
    /// Turns that have ended and are not committed.
    pub(super) uncommitted: usize,
    /// Whether the activation must be thrown away before the next turn.
    pub(super) resetting: bool,
    /// Whether its records are to be read whatever waits here: its own queue was not empty when the ownership began.
    pub(super) owed: bool,
}

/// Whether an actor's records are in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Known {
    No,
    Reading,
    Yes(Option<Presence>),
}

impl<A, M> Mailbox<A, M> {
    pub(super) fn new() -> Self {
        Self {
            records: Known::No,
            queue: VecDeque::new(),
            deferred: BTreeMap::new(),
            cursor: None,
            failures: BTreeMap::new(),
            running: None,
            uncommitted: 0,
            resetting: false,
            owed: false,
        }
    }

    /// Whether nothing waits and nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running.is_none() && self.uncommitted == 0 && !self.resetting
    }

    /// The next message of the pass over the actor's own queue.
    pub(super) fn next_deferred(&mut self) -> Option<Item<A, M>> {
        let slot = self.cursor.and_then(|from| self.deferred.range(from..).next()).map(|(slot, _)| *slot);
        self.cursor = slot;
        self.deferred.remove(&slot?)
    }

    /// Puts a message back where it came from, to be the next.
    pub(super) fn put_back(&mut self, item: Item<A, M>) {
        match item.source {
            // It is read again with the actor's records; only how often it failed must be kept.
            Source::Queue(slot) => _ = self.failures.insert(slot, (item.attempts, item.deaths)),
            _ => self.queue.push_front(item),
        }
    }

    /// Forgets all that is read from the journal.
    pub(super) fn reset(&mut self) {
        self.records = Known::No;
        self.deferred.clear();
        self.cursor = None;
        self.resetting = false;
    }
}

/// The slot after this one.
pub(super) fn after(slot: Slot) -> Slot {
    Slot { serial: slot.serial + 1, ..slot }
}
