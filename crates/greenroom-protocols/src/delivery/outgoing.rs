//! One lane of an outbox.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::outlets::Handing;
use super::{Config, Envelope, Epoch, Lane, Life, Reply, Sealed};
use crate::time::Timestamp;

/// What the owner knows of one lane. Numbers begin at 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct LaneState<A, M> {
    /// The last number given.
    pub(super) committed: u64,
    /// All numbers up to here are acknowledged.
    pub(super) acked: u64,
    /// Single numbers above.
    above: BTreeSet<u64>,
    /// All numbers up to here are trimmed from the log, or soon will be.
    pub(super) trimmed: u64,
    /// When what is acknowledged is to be trimmed; `None` while nothing is.
    trim_at: Option<Timestamp>,
    /// Successive entries from `acked + 1` on, as many as memory may hold; those behind are in the log alone.
    pub(super) entries: BTreeMap<u64, Sealed<A, M>>,
    /// The first number that is not in `entries` and behind them; above `committed` if all are.
    unread: u64,
    /// From where on a page is being read.
    reading: Option<u64>,
    /// When to read again what a page did not bring.
    again_at: Option<Timestamp>,
    /// The next number to send.
    pub(super) next: u64,
    /// The highest number that was ever sent; after a recovery, that may have been.
    sent: u64,
    /// The highest number that the receiver has room for.
    limit: u64,
    pub(super) round: u32,
    peer_life: Life,
    peer_epoch: Epoch,
    /// The receiver's `expected` under that ownership: what it has taken need not be sent again to it.
    taken: u64,
    /// When silence is too long; `None` while nothing is awaited.
    silent_at: Option<Timestamp>,
    patience: Duration,
    /// Of a lane to the outside: what is handed over.
    handing: Option<Handing<A>>,
}

impl<A: Clone + Ord, M: Clone> LaneState<A, M> {
    /// A lane whose log has entries after `before` up to `last`.
    pub(super) fn recovered(lane: Lane, before: u64, last: u64) -> Self {
        Self {
            committed: last,
            acked: before,
            above: BTreeSet::new(),
            trimmed: before,
            trim_at: None,
            entries: BTreeMap::new(),
            unread: before + 1,
            reading: None,
            again_at: None,
            next: before + 1,
            sent: last,
            limit: 0,
            round: 0,
            peer_life: Life::default(),
            peer_epoch: Epoch::default(),
            taken: 0,
            silent_at: None,
            patience: Duration::ZERO,
            handing: matches!(lane, Lane::Outside(_)).then(Handing::new),
        }
    }

    /// Adds an entry that is in the log now.
    pub(super) fn append(&mut self, config: &Config, number: u64, envelope: Sealed<A, M>) {
        assert_eq!(number, self.committed + 1, "numbers have no gaps");
        if self.unread == number && self.entries.len() < config.lane_memory_max {
            self.enter(number, envelope);
            self.unread = number + 1;
        }
        self.committed = number;
        self.check_invariants();
    }

    /// What holds between two events. A lane that was read from a damaged journal may be false from the beginning.
    fn check_invariants(&self) {
        debug_assert!(self.trimmed <= self.acked, "what is not acknowledged is trimmed");
        debug_assert!(self.acked <= self.committed, "what is not committed is acknowledged");
        debug_assert!(self.acked < self.next && self.next <= self.committed + 1, "a number is sent that was not given");
        debug_assert!(self.acked < self.unread && self.unread <= self.committed + 1, "entries in memory have a gap");
        let (first, last) = (self.entries.first_key_value(), self.entries.last_key_value());
        debug_assert!(first.is_none_or(|(first, _)| self.acked < *first), "what is acknowledged is kept");
        debug_assert!(last.is_none_or(|(last, _)| *last < self.unread), "an entry is read twice");
        let (first, last) = (self.above.first(), self.above.last());
        debug_assert!(first.is_none_or(|first| self.acked + 1 < *first), "what is acknowledged is so no farther");
        debug_assert!(last.is_none_or(|last| *last <= self.committed), "what is not committed is acknowledged");
    }

    /// What to read next from the log, if there is room for it.
    pub(super) fn page(&mut self, config: &Config) -> Option<(u64, usize)> {
        let room = config.lane_memory_max - self.entries.len().min(config.lane_memory_max);
        // Half of the memory at a time, so that a long backlog is read in few pages.
        let due = self.unread <= self.committed && (room * 2 >= config.lane_memory_max || self.entries.is_empty());
        (due && self.reading.is_none() && self.again_at.is_none() && room > 0).then(|| {
            self.reading = Some(self.unread);
            (self.unread, room)
        })
    }

    /// Takes in entries that were read.
    pub(super) fn paged(&mut self, config: &Config, now: Timestamp, entries: Vec<(u64, Sealed<A, M>)>) {
        let from = self.reading.take();
        for (number, envelope) in entries {
            if number == self.unread && number <= self.committed {
                self.unread += 1;
                if number > self.acked {
                    self.enter(number, envelope);
                }
            }
        }
        if from == Some(self.unread) && config.checks.pages_rest {
            // A later owner has trimmed it, and this one has not heard of that one yet.
            self.again_at = Some(now + config.retransmit);
        }
    }

    /// Entries in memory that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = (u64, &Sealed<A, M>)> {
        let entries = self.entries.iter().filter(|(number, _)| !self.above.contains(number));
        entries.map(|(number, envelope)| (*number, envelope))
    }

    /// Whether it is time to read again what a page did not bring.
    pub(super) fn reads_again(&mut self, now: Timestamp) -> bool {
        self.again_at.take_if(|at| *at <= now).is_some()
    }

    fn enter(&mut self, number: u64, envelope: Sealed<A, M>) {
        if let Some(handing) = &mut self.handing {
            if self.above.contains(&number) {
                // It is parked.
                return;
            }
            handing.enter(sender_of(&envelope), number);
        }
        self.entries.insert(number, envelope);
    }

    /// The next outputs to hand over, and whether each is worth several tries; counts them as handed over.
    pub(super) fn hand_over(&mut self, config: &Config) -> Vec<(u64, Sealed<A, M>, bool)> {
        let Some(handing) = &mut self.handing else { return Vec::new() };
        let numbers = handing.hand_over(config.first_credit as usize).into_iter();
        let outputs = numbers.filter_map(|number| Some((number, self.entries.get(&number)?.clone())));
        outputs
            .map(|(number, envelope)| {
                let patient = handing.is_patient(&sender_of(&envelope));
                (number, envelope, patient)
            })
            .collect()
    }

    /// The output of this number, if it was handed over: from here on it is not.
    pub(super) fn take_back(&mut self, number: u64) -> Option<Sealed<A, M>> {
        let handed = self.handing.as_mut()?.take_back(number);
        self.entries.get(&number).filter(|_| handed).cloned()
    }

    /// Lets an output be handed over that was taken back.
    pub(super) fn again(&mut self, number: u64) {
        self.handing.iter_mut().for_each(|handing| handing.again(number));
    }

    /// Is done with an output that was taken back.
    pub(super) fn done(&mut self, number: u64, unwanted: bool) {
        let sender = self.entries.remove(&number).map(|envelope| sender_of(&envelope));
        if let (Some(handing), Some(sender)) = (&mut self.handing, sender) {
            handing.done(&sender, number, unwanted);
        }
        self.acknowledge(0, &[(number, number)]);
    }

    /// The next messages to send, at most a batch; counts them as sent.
    pub(super) fn take(&mut self, config: &Config, now: Timestamp) -> BatchMessages<A, M> {
        let limit = self.limit.max(self.acked + config.first_credit);
        let limit = if config.checks.credit { limit } else { u64::MAX };
        let mut messages = Vec::new();
        while self.next <= limit && messages.len() < config.batch_max {
            let Some(envelope) = self.entries.get(&self.next) else { break };
            // Numbers within a batch are successive, so that the receiver sees gaps: one that it has may be among them.
            if !messages.is_empty() || !self.above.contains(&self.next) {
                messages.push((self.next, envelope.clone()));
            }
            self.next += 1;
        }
        if !messages.is_empty() || self.acked < self.committed {
            self.await_reply(config, now);
        }
        self.check_invariants();
        let last = messages.last().map_or(0, |(number, _)| *number);
        let sent_before = messages.first().filter(|(first, _)| *first <= self.sent).map_or(0, |_| self.sent.min(last));
        self.sent = self.sent.max(last);
        BatchMessages { messages, sent_before }
    }

    /// Takes in what the receiver says; whether it was believed.
    pub(super) fn replied(&mut self, config: &Config, now: Timestamp, reply: &Reply) -> bool {
        let older = (reply.life, reply.epoch) < (self.peer_life, self.peer_epoch);
        if older && config.checks.reply_epoch {
            return false;
        }
        if reply.life > self.peer_life && self.peer_life != Life::default() {
            // The receiver has lost its journal, and with it what it had committed above the low-water mark.
            self.above.clear();
            self.next = self.acked + 1;
        }
        if (reply.life, reply.epoch) != (self.peer_life, self.peer_epoch) {
            (self.peer_life, self.peer_epoch) = (reply.life, reply.epoch);
            (self.taken, self.limit) = (0, 0);
        }
        self.taken = self.taken.max(reply.expected);
        self.limit = self.limit.max(reply.limit);
        self.acknowledge(reply.low, &reply.above);
        if reply.refused && reply.round == self.round && reply.expected < self.next {
            self.next = reply.expected.max(self.acked + 1);
            self.round += 1;
        }
        self.check_invariants();
        self.patience = Duration::ZERO;
        self.silent_at = None;
        if self.acked < self.committed {
            self.await_reply(config, now);
        }
        true
    }

    /// All numbers up to `low` and those of the ranges `above` are acknowledged.
    pub(super) fn acknowledge(&mut self, low: u64, above: &[(u64, u64)]) {
        self.acked = self.acked.max(low.min(self.committed));
        for (first, last) in above {
            self.above.extend((*first).max(self.acked + 1)..=(*last).min(self.committed));
        }
        while let Some(first) = self.above.first().copied().filter(|first| *first <= self.acked + 1) {
            self.above.pop_first();
            self.acked = self.acked.max(first);
        }
        self.entries = self.entries.split_off(&(self.acked + 1));
        self.next = self.next.max(self.acked + 1);
        if self.unread <= self.acked {
            (self.unread, self.again_at) = (self.acked + 1, None);
        }
        if self.acked == self.committed {
            self.silent_at = None;
        }
        self.check_invariants();
    }

    /// Whether the receiver has been silent too long: then the lane is rewound to what it is not known to have taken.
    pub(super) fn silent(&mut self, config: &Config, now: Timestamp) -> bool {
        if self.silent_at.is_none_or(|at| at > now) {
            return false;
        }
        if self.acked == self.committed {
            self.silent_at = None;
            return false;
        }
        self.next = self.next.min(self.taken.max(self.acked + 1));
        self.round += 1;
        self.patience = (self.patience * 2).min(config.retransmit_max);
        self.silent_at = None;
        self.await_reply(config, now);
        true
    }

    /// When silence is too long, a trim is due, or a page to be read again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.silent_at.into_iter().chain(self.trim_at).chain(self.again_at).min()
    }

    /// Whether what is acknowledged has waited long enough for its trim.
    pub(super) fn is_untidy(&self, now: Timestamp) -> bool {
        self.trim_at.is_some_and(|at| at <= now)
    }

    /// The number through which the log is to be trimmed, if it is: there is enough to trim, or the partition `tidies` up.
    pub(super) fn trim(&mut self, config: &Config, now: Timestamp, tidies: bool) -> Option<u64> {
        let more = self.acked - self.trimmed;
        if more == 0 {
            return None;
        }
        let at_once = config.trim_after.is_zero();
        if more < config.trim_every && !tidies && !(at_once && self.acked == self.committed) {
            self.trim_at = self.trim_at.or((!at_once).then(|| now + config.trim_after));
            return None;
        }
        (self.trimmed, self.trim_at) = (self.acked, None);
        Some(self.acked)
    }

    fn await_reply(&mut self, config: &Config, now: Timestamp) {
        if self.patience.is_zero() {
            self.patience = config.retransmit;
        }
        self.silent_at.get_or_insert(now + self.patience);
    }
}

/// Messages of one batch by number.
pub(super) struct BatchMessages<A, M> {
    pub(super) messages: Vec<(u64, Sealed<A, M>)>,
    /// The highest of their numbers that was sent before; 0 if all are new.
    pub(super) sent_before: u64,
}

/// Whose output it is: its outputs keep their order.
fn sender_of<A: Clone, M>(envelope: &Envelope<A, M>) -> A {
    envelope.from.clone().unwrap_or_else(|| envelope.to.clone())
}
