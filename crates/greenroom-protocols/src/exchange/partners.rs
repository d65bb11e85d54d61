//! Whom a node exchanges with, and when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::Config;
use crate::node::NodeId;
use crate::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Partners {
    /// The version of the view that named them; nothing before the first.
    view: Option<u64>,
    may: BTreeSet<NodeId>,
    quiet_until: Timestamp,
    skipped: BTreeMap<NodeId, Skipped>,
    /// The number of each proposer's last offer.
    numbers: BTreeMap<NodeId, u64>,
    /// Whom this round still visits.
    visits: VecDeque<NodeId>,
    round_at: Timestamp,
    /// When it may begin at the earliest.
    again_at: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Skipped {
    until: Timestamp,
    /// For how long the last time; zero if that was not for being fruitless.
    last: Duration,
}

impl Partners {
    pub(super) fn new(round_at: Timestamp) -> Self {
        Self {
            view: None,
            may: BTreeSet::new(),
            quiet_until: Timestamp::default(),
            skipped: BTreeMap::new(),
            numbers: BTreeMap::new(),
            visits: VecDeque::new(),
            round_at,
            again_at: round_at,
        }
    }

    /// These are they. A change of the view is followed by quiet.
    pub(super) fn set(&mut self, now: Timestamp, view: u64, may: BTreeSet<NodeId>, config: &Config) {
        if self.view != Some(view) {
            self.quiet_until = now + config.quiet;
        }
        self.view = Some(view);
        self.skipped.retain(|node, _| may.contains(node));
        self.visits.retain(|node| may.contains(node));
        while self.numbers.len() > NUMBERS_MAX.max(may.len()) {
            let Some(gone) = self.numbers.keys().find(|node| !may.contains(node)).copied() else { break };
            self.numbers.remove(&gone);
        }
        self.may = may;
    }

    pub(super) fn may(&self, node: NodeId) -> bool {
        self.may.contains(&node)
    }

    /// Those that are not skipped.
    pub(super) fn willing(&self, now: Timestamp) -> impl Iterator<Item = NodeId> {
        let skips = move |node: &NodeId| self.skipped.get(node).is_some_and(|skipped| skipped.until > now);
        self.may.iter().copied().filter(move |node| !skips(node))
    }

    /// Until when there is no exchange; in the past if there may be.
    pub(super) fn quiet_until(&self) -> Timestamp {
        self.quiet_until
    }

    /// Whether this is a later offer than all before; from then on it is not.
    pub(super) fn is_new(&mut self, from: NodeId, number: u64) -> bool {
        let last = self.numbers.entry(from).or_insert(0);
        let new = number > *last;
        *last = number.max(*last);
        new
    }

    /// The exchange with `node` was fruitless: it is skipped, each time for twice as long.
    pub(super) fn skip_fruitless(&mut self, now: Timestamp, node: NodeId, config: &Config) {
        let skipped = self.skipped.entry(node).or_default();
        skipped.last = (skipped.last * 2).clamp(config.skip_first, config.skip_max);
        skipped.until = now + skipped.last;
    }

    /// `node` is busy for so long.
    pub(super) fn skip_busy(&mut self, now: Timestamp, node: NodeId, wait: Duration, config: &Config) {
        let skipped = self.skipped.entry(node).or_default();
        skipped.until = skipped.until.max(now + wait.min(config.quiet));
        let until = skipped.until;
        self.hurry(until);
    }

    /// Something is left to be done from `at` on: the next round waits no longer than it must.
    pub(super) fn hurry(&mut self, at: Timestamp) {
        self.round_at = self.round_at.min(self.again_at.max(at));
    }

    /// The exchange with `node` was worth it.
    pub(super) fn forgive(&mut self, node: NodeId) {
        self.skipped.remove(&node);
    }

    /// Whether a round is to begin, or goes on.
    pub(super) fn visits_at(&self) -> Option<Timestamp> {
        let at = if self.visits.is_empty() { self.round_at } else { Timestamp::default() };
        (!self.may.is_empty()).then_some(at.max(self.quiet_until))
    }

    /// Whether the next visit begins a round.
    pub(super) fn begins_round(&self) -> bool {
        self.visits.is_empty()
    }

    /// Begins a round of these visits.
    pub(super) fn begin(&mut self, now: Timestamp, visits: Vec<NodeId>, next_round_at: Timestamp, config: &Config) {
        self.visits = visits.into_iter().take(config.visits).collect();
        (self.round_at, self.again_at) = (next_round_at, now + config.again);
    }

    pub(super) fn next_visit(&mut self) -> Option<NodeId> {
        self.visits.pop_front()
    }
}

/// Proposers whose numbers are kept beside those of the partners.
const NUMBERS_MAX: usize = 1_024;
