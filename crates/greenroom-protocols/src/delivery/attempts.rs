//! Messages whose turns may have taken their process down (R6).
//!
//! A turn that aborts its process leaves no outcome, so nothing of it is counted when it happens. The next owner knows that its
//! predecessor died, but not during which turn. Every message that the predecessor may have begun is therefore a *suspect*: its
//! next turn needs an *attempt*, a record that a commit writes before the turn begins and the commit of its outcome removes. A
//! record that a later process finds counts one more death. A message that has [`deaths_max`](super::Config::deaths_max) deaths
//! is parked without another turn. Other messages pay nothing.
//!
//! Suspects with one death run together, so one commit holds the attempts of many. Those with more deaths run alone at their node
//! ([`Action::Admit`]), so a death falls on the one message that caused it.
//!
//! The death of a host is known at once ([`Outcome::Died`](super::Outcome::Died)), and so are the turns that it was running.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::mailbox::{Effect, Item, Ready};
use super::{Action, Life, Partition, PartitionId, Recovered, Slot, Source, TurnId};
use crate::time::Timestamp;

/// Place of a message that waits for its turn: it differs from those of all other messages of its partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum WaitingPlace {
    /// A number of the counted lane from another partition.
    Counted {
        /// The sending partition.
        from: PartitionId,
        /// Its life.
        life: Life,
        /// The number.
        number: u64,
    },
    /// A number of the loose lane from another partition.
    Loose {
        /// The sending partition.
        from: PartitionId,
        /// Its life.
        life: Life,
        /// The number.
        number: u64,
    },
    /// A slot of the actor's own queue.
    Queue(Slot),
    /// The key of a call from outside. Only the caller holds it, so no attempt at it is recorded.
    Call(String),
}

/// Attempt at a turn that may take its process down: a record in the journal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TurnAttempt {
    /// The place of the message.
    pub place: WaitingPlace,
    /// Processes that died during the turn before this attempt began.
    pub deaths: u32,
    /// The process in which the attempt runs; `None` if it was handed over without a death.
    pub process: Option<u64>,
}

/// Attempts of one ownership.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Attempts {
    /// Number of the process that holds the ownership.
    process: u64,
    /// True if the owner before may have died.
    after_death: bool,
    /// Records in the journal: deaths, and whether the record names this process.
    recorded: BTreeMap<WaitingPlace, (u32, bool)>,
    /// Turns that wait for [`Event::Admitted`](super::Event::Admitted).
    asked: BTreeSet<TurnId>,
    /// Admitted turns whose records belong to the next commit.
    due: BTreeSet<TurnId>,
    /// Places whose turn ended without a commit of its own: the next commit removes their records.
    over: BTreeSet<WaitingPlace>,
}

/// Changes of attempts in one commit: records to put, and with `None` to remove.
pub(super) type AttemptChanges = BTreeMap<WaitingPlace, Option<TurnAttempt>>;

impl Source {
    /// The place of a message from here; `None` for what has none.
    pub(super) fn place(&self) -> Option<WaitingPlace> {
        match *self {
            Self::Counted { from, life, number } => Some(WaitingPlace::Counted { from, life, number }),
            Self::Loose { from, life, number } => Some(WaitingPlace::Loose { from, life, number }),
            Self::Queue(slot) => Some(WaitingPlace::Queue(slot)),
            Self::Uncounted | Self::Parked(_) | Self::Timer { .. } | Self::Output { .. } => None,
        }
    }
}

impl Attempts {
    pub(super) fn new<A, M>(recovered: &Recovered<A, M>) -> Self {
        let Recovered { process, after_death, attempts, receipts, .. } = recovered;
        // An owner that left while a commit was under way may have put back what that commit has removed.
        let is_over = |place: &WaitingPlace| match place {
            WaitingPlace::Counted { from, life, number } => receipts.iter().any(|(of, receipts)| {
                of == from && (receipts.life > *life || receipts.life == *life && receipts.has(*number))
            }),
            WaitingPlace::Loose { .. } | WaitingPlace::Queue(_) | WaitingPlace::Call(_) => false,
        };
        let over = attempts.iter().map(|attempt| attempt.place.clone()).filter(is_over).collect();
        let known = |attempt: &TurnAttempt| {
            // One that ran in this very process goes on living.
            let died = attempt.process.is_some_and(|other| other != *process);
            (attempt.place.clone(), (attempt.deaths + u32::from(died), attempt.process == Some(*process)))
        };
        Self {
            process: *process,
            after_death: *after_death,
            recorded: attempts.iter().map(known).collect(),
            asked: BTreeSet::new(),
            due: BTreeSet::new(),
            over,
        }
    }

    /// Deaths during the turn of a message from `source`. `began` is true if an earlier owner may have begun it.
    pub(super) fn deaths(&self, source: &Source, began: bool) -> u32 {
        let recorded = source.place().and_then(|place| self.recorded.get(&place)).map(|(deaths, _)| *deaths);
        recorded.unwrap_or(u32::from(began && self.after_death))
    }

    /// True if the next commit has records to write or to remove.
    pub(super) fn has_work(&self) -> bool {
        !self.due.is_empty() || !self.over.is_empty()
    }
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Begins a turn: at once, or if its message is a suspect when it is admitted and its attempt is recorded.
    pub(super) fn begin(&mut self, turn: TurnId, item: Item<A, M>, out: &mut Vec<Action<A, M>>) {
        let envelope = item.envelope.clone();
        if item.deaths > 0 && self.config.checks.counted_deaths {
            let alone = item.deaths >= TOGETHER_MAX || item.deaths + 1 >= self.config.deaths_max;
            self.attempts.asked.insert(turn);
            out.push(Action::Admit { turn, envelope, alone });
        } else {
            out.push(Action::Run { turn, envelope });
        }
        self.turns.insert(turn, item);
    }

    /// True while a turn waits for [`Event::Admitted`](super::Event::Admitted).
    pub fn awaits_admission(&self, turn: TurnId) -> bool {
        self.attempts.asked.contains(&turn) && self.turns.contains_key(&turn)
    }

    /// Takes in that the node can run the turn of a suspect.
    pub(super) fn admitted(&mut self, turn: TurnId, out: &mut Vec<Action<A, M>>) {
        if !self.attempts.asked.remove(&turn) {
            return;
        }
        let Some(item) = self.turns.get(&turn) else { return };
        let is_written = match item.source.place() {
            Some(place) => self.attempts.recorded.get(&place) == Some(&(item.deaths, true)),
            // A process that dies takes the message along.
            None => true,
        };
        if is_written {
            out.push(Action::Run { turn, envelope: item.envelope.clone() });
        } else {
            self.attempts.due.insert(turn);
        }
    }

    /// Adds attempts to a commit that has room for so many: the turns that begin when it is applied, and the records that it
    /// removes for turns without a commit of their own.
    pub(super) fn draft_attempts(&mut self, room: usize, changes: &mut AttemptChanges) -> Vec<TurnId> {
        let mut begins = Vec::new();
        while begins.len() < room
            && let Some(turn) = self.attempts.due.pop_first()
        {
            let Some(item) = self.turns.get(&turn) else { continue };
            let Some(place) = item.source.place() else { continue };
            let attempt =
                TurnAttempt { place: place.clone(), deaths: item.deaths, process: Some(self.attempts.process) };
            changes.insert(place, Some(attempt));
            begins.push(turn);
        }
        for place in std::mem::take(&mut self.attempts.over) {
            changes.entry(place).or_insert(None);
        }
        begins
    }

    /// Adds to a commit that the turn of a message has an outcome.
    pub(super) fn draft_outcome(&self, source: &Source, changes: &mut AttemptChanges) {
        let recorded = source.place().filter(|place| self.attempts.recorded.contains_key(place));
        changes.extend(recorded.map(|place| (place, None)));
    }

    /// Takes in that attempts are committed: their turns begin.
    pub(super) fn attempts_committed(
        &mut self,
        begins: Vec<TurnId>,
        changes: AttemptChanges,
        out: &mut Vec<Action<A, M>>,
    ) {
        for (place, attempt) in changes {
            match attempt {
                Some(attempt) => _ = self.attempts.recorded.insert(place, (attempt.deaths, true)),
                None => _ = self.attempts.recorded.remove(&place),
            }
        }
        for turn in begins {
            if let Some(item) = self.turns.get(&turn) {
                out.push(Action::Run { turn, envelope: item.envelope.clone() });
            }
        }
    }

    /// Takes in that a commit with attempts was refused. `is_to_blame` is true if it held nothing else: then the actors wait.
    pub(super) fn attempts_refused(&mut self, now: Timestamp, begins: Vec<TurnId>, is_to_blame: bool) {
        if !is_to_blame {
            return self.attempts.due.extend(begins);
        }
        for turn in begins {
            let Some(item) = self.turns.remove(&turn) else { continue };
            let actor = item.envelope.to.clone();
            let mailbox = self.wake(&actor);
            mailbox.running = None;
            mailbox.resetting = true;
            mailbox.put_back(item);
            self.held.insert(actor, now + self.config.hold);
        }
    }

    /// A turn of a suspect has ended without a commit of its own and without a failure.
    pub(super) fn is_cleared(&mut self, source: &Source) {
        let recorded = source.place().filter(|place| self.attempts.recorded.contains_key(place));
        self.attempts.over.extend(recorded);
    }

    /// The host that ran the turn died: the message becomes a suspect, or is given up.
    pub(super) fn died(&mut self, mut item: Item<A, M>) {
        item.deaths += 1;
        let is_over = self.has_killed(&item);
        let mailbox = self.wake(&item.envelope.to);
        mailbox.resetting = true;
        if is_over { self.set_aside(item) } else { mailbox.put_back(item) }
    }

    /// True if a message has taken down as many processes as it may.
    pub(super) fn has_killed(&self, item: &Item<A, M>) -> bool {
        self.config.checks.counted_deaths && item.deaths >= self.config.deaths_max
    }

    /// Gives up a message that has taken down as many processes as it may, without another turn.
    pub(super) fn set_aside(&mut self, item: Item<A, M>) {
        let deaths = item.deaths;
        self.give_up(
            item,
            format!(
                "{deaths} processes, nodes or hosts, have died during its turn; mend what aborts them before it is retried"
            ),
        );
    }

    /// Ends a message without effects: it is parked, or its caller hears why.
    pub(super) fn give_up(&mut self, item: Item<A, M>, error: String) {
        let effect = match (&item.envelope.call, item.source) {
            (Some(_), _) => Effect::Failed(error),
            (None, Source::Parked(slot)) => Effect::Parked(slot, error),
            (None, _) => Effect::Parked(self.slot(), error),
        };
        self.wake(&item.envelope.to).uncommitted += 1;
        self.ready.push_back(Ready { turn: None, item, effect });
    }

    /// The attempts as the next owner is to find them after a hand-over without a death: none of them runs any more.
    pub fn handed_over(&self) -> Vec<TurnAttempt> {
        let recorded = self.attempts.recorded.iter();
        recorded
            .map(|(place, (deaths, _))| TurnAttempt { place: place.clone(), deaths: *deaths, process: None })
            .collect()
    }
}

/// Deaths from which on a suspect runs alone.
const TOGETHER_MAX: u32 = 2;
