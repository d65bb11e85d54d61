//! The owner's side of one range: where each actor is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::moves::Moved;
use super::tenure::Tenure;
use super::{Action, Epoch, Grant, Placed, RangeId, Released, Report, Resolution};
use crate::checks::Checks;
use crate::node::{NodeId, Status, View};
use crate::time::Timestamp;

/// The owner's side of one range; see the [module](super). It is empty and costs little on nodes that do not own the range.
///
/// An entry is a key and 16 bytes in a B-tree. Keys are compared on the way down: a key that compares a hash of itself
/// first makes a look-up cheap.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner<K> {
    pub(super) me: NodeId,
    range: RangeId,
    pub(super) checks: Checks,
    pub(super) view: Option<Arc<View>>,
    pub(super) tenure: Tenure,
    last: Epoch,
    pub(super) entries: BTreeMap<K, Placed>,
    /// Names entries only.
    pub(super) moved: Moved<K>,
    /// States on the move that their sources have not reported, by their actors.
    pub(super) in_transit: BTreeMap<K, StateInTransit>,
    recovery: Option<Box<Recovery>>,
    /// Reports from views that we have not seen, the newest of each host.
    early: BTreeMap<NodeId, Report<K>>,
}

/// A state that has come to a host, and whose actor the owner has not decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct StateInTransit {
    /// The host.
    pub(super) by: NodeId,
    /// The activation that it was.
    pub(super) from: Placed,
    /// Callers wait until then for the host to ask for the actor.
    until: Timestamp,
}

/// What a tenure still waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Recovery {
    /// The nodes, active or dead, that may host what has not been reported.
    unreported: BTreeSet<NodeId>,
    ask_at: Timestamp,
    /// How often was asked.
    asked: usize,
}

impl<K: Ord + Clone> Owner<K> {
    /// The side of node `me` as a possible owner of `range`.
    pub fn new(me: NodeId, range: RangeId, checks: Checks) -> Self {
        Self {
            me,
            range,
            checks,
            view: None,
            tenure: Tenure::default(),
            last: Epoch::default(),
            entries: BTreeMap::new(),
            moved: Moved::new(),
            in_transit: BTreeMap::new(),
            recovery: None,
            early: BTreeMap::new(),
        }
    }

    /// Where `key` is, as of `now`.
    pub fn resolve(&self, now: Timestamp, key: &K) -> Resolution {
        let Some(view) = self.view.as_deref().filter(|_| self.tenure.owner == Some(self.me)) else {
            return Resolution::NotOwner(self.tenure.owner);
        };
        if let Some(placed) = self.entries.get(key) {
            match gone(self.checks, view, placed.node) {
                None => return Resolution::At(self.seal(*placed)),
                Some(over) if over > now => return Resolution::Wait { until: Some(over) },
                Some(_) => {}
            }
        }
        if let Some(recovery) = self.recovery.as_ref().filter(|_| self.checks.report_wait) {
            return self.unknown(now, view, recovery);
        }
        match self.in_transit.get(key).filter(|state| state.until > now && !self.entries.contains_key(key)) {
            Some(state) => Resolution::Wait { until: Some(state.until.min(now + CLAIM_LOOK_AFTER)) },
            None => Resolution::Absent,
        }
    }

    /// Grants `key` to `node`, unless it has been placed, or the range lost, since it was resolved as absent.
    ///
    /// Gives `Absent` again if `node` is not active in our view, or drains: choose another.
    pub fn grant(&mut self, now: Timestamp, key: K, node: NodeId) -> Resolution {
        let known = self.resolve(now, &key);
        if known != Resolution::Absent || !self.view.as_ref().is_some_and(|view| view.is_serving(node)) {
            return known;
        }
        let placed = Placed { node, epoch: self.next_epoch() };
        self.in_transit.remove(&key);
        self.entries.insert(key, placed);
        Resolution::At(self.seal(placed))
    }

    /// Removes the entry that `released` names, if it is still that one.
    pub fn released(&mut self, released: &Released<K>) {
        let entry = self.entries.get(&released.key);
        if entry.is_some_and(|placed| *placed == released.placed || !self.checks.exact_release) {
            self.entries.remove(&released.key);
            self.moved.remove(&released.key);
        }
    }

    /// Takes in `view`.
    pub fn view(&mut self, now: Timestamp, view: Arc<View>, out: &mut Vec<Action<K>>) {
        if view.version < self.version() {
            return;
        }
        let begins = self.tenure.advance(self.range, self.view.as_deref(), &view, self.checks);
        let old = self.view.replace(Arc::clone(&view));
        if begins {
            self.entries.clear();
            self.moved.clear();
            self.in_transit.clear();
            self.recovery = (self.tenure.owner == Some(self.me)).then(|| {
                let hosts = view.members.iter().filter(|(_, m)| m.status != Status::Joining).map(|(id, _)| *id);
                Box::new(Recovery { unreported: hosts.collect(), ask_at: now + ASK_AFTER, asked: 0 })
            });
        } else if old.is_some_and(|old| *old != *view) {
            let checks = self.checks;
            self.entries.retain(|_, placed| gone(checks, &view, placed.node).is_none_or(|over| over > now));
            self.moved.retain(|key, _| self.entries.contains_key(key));
            self.in_transit.retain(|_, state| gone(checks, &view, state.by).is_none());
        }
        let (arrived, early) =
            std::mem::take(&mut self.early).into_iter().partition(|(_, report)| report.view <= view.version);
        self.early = early;
        let arrived: BTreeMap<NodeId, Report<K>> = arrived;
        for report in arrived.into_values() {
            self.report(now, report, out);
        }
        self.progress(now, out);
        #[cfg(debug_assertions)]
        self.check_invariants();
    }

    /// What holds between two events; looked at with each view, as it looks at every entry.
    #[cfg(debug_assertions)]
    fn check_invariants(&self) {
        assert!(self.entries.values().all(|placed| placed.epoch <= self.last), "an entry's epoch may be granted again");
        assert!(self.moved.keys().all(|key| self.entries.contains_key(key)), "what was moved is nowhere");
        assert!(
            self.early.values().all(|report| report.view > self.version()),
            "a report waits for a view that is here"
        );
        let recovery = self.recovery.as_ref();
        assert!(recovery.is_none_or(|recovery| !recovery.unreported.is_empty()), "a recovery waits for nobody");
    }

    /// Whether nothing is kept of a range that is another node's.
    pub(super) fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.moved.is_empty() && self.in_transit.is_empty() && self.recovery.is_none()
    }

    /// Takes in a host's report.
    pub fn report(&mut self, now: Timestamp, report: Report<K>, out: &mut Vec<Action<K>>) {
        if report.view > self.version() {
            if self.early.get(&report.from).is_none_or(|known| known.view <= report.view) {
                self.early.insert(report.from, report);
            }
            return;
        }
        let counts = report.view >= self.tenure.since
            && self.recovery.as_mut().is_some_and(|recovery| recovery.unreported.remove(&report.from));
        if counts {
            for (key, epoch) in report.activations {
                self.merge(key, Placed { node: report.from, epoch }, out);
            }
            for (key, from) in report.in_transit.into_iter().filter(|_| self.checks.transit_report) {
                self.last = self.last.max(from.epoch);
                let state = StateInTransit { by: report.from, from, until: now + CLAIM_WAIT };
                if self.in_transit.get(&key).is_none_or(|known| known.from.epoch < from.epoch) {
                    self.in_transit.insert(key, state);
                }
            }
            self.progress(now, out);
        }
    }

    /// Asks again for what is missing, and ends the recovery when nothing is.
    pub fn tick(&mut self, now: Timestamp, out: &mut Vec<Action<K>>) {
        self.progress(now, out);
        let Some(view) = self.view.as_deref() else { return };
        if let Some(recovery) = self.recovery.as_mut().filter(|recovery| recovery.ask_at <= now) {
            recovery.ask_at = now + ASK_AFTER;
            let silent = recovery.unreported.iter().filter(|node| view.is_active(**node));
            out.extend(silent.map(|from| Action::AskReport {
                from: *from,
                range: self.range,
                view: view.version,
                via: detour(view, self.me, *from, recovery.asked),
            }));
            recovery.asked += 1;
        }
    }

    /// Since which version this node owns the range without a break, if it does.
    pub fn owns_since(&self) -> Option<u64> {
        (self.tenure.owner == Some(self.me)).then_some(self.tenure.since)
    }

    /// When this wants a `tick`; `None` unless recovering.
    pub fn deadline(&self) -> Option<Timestamp> {
        let (view, recovery) = (self.view.as_deref()?, self.recovery.as_ref()?);
        let lease = recovery.unreported.iter().filter_map(|node| gone(self.checks, view, *node)).min();
        let asks = recovery.unreported.iter().any(|node| view.is_active(*node));
        lease.into_iter().chain(asks.then_some(recovery.ask_at)).min()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn merge(&mut self, key: K, placed: Placed, out: &mut Vec<Action<K>>) {
        self.last = self.last.max(placed.epoch);
        match self.entries.get_mut(&key) {
            None => {
                self.entries.insert(key, placed);
            }
            Some(known) if known.node == placed.node => known.epoch = known.epoch.max(placed.epoch),
            Some(known) => {
                let (keep, end) = if known.epoch < placed.epoch { (placed, *known) } else { (*known, placed) };
                *known = keep;
                out.push(Action::Deactivate { node: end.node, key, epoch: end.epoch });
            }
        }
    }

    /// Whether there may be activations that are not known yet.
    pub(super) fn recovers(&self, now: Timestamp, view: &View) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| self.unknown(now, view, recovery) != Resolution::Absent)
    }

    /// What to say of an actor that has not been reported.
    fn unknown(&self, now: Timestamp, view: &View, recovery: &Recovery) -> Resolution {
        let mut until = None;
        for node in &recovery.unreported {
            match gone(self.checks, view, *node) {
                None => return Resolution::Wait { until: None },
                Some(over) if over > now => until = until.max(Some(over)),
                Some(_) => {}
            }
        }
        if until.is_some() { Resolution::Wait { until } } else { Resolution::Absent }
    }

    /// The epoch of the next grant.
    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.last = self.last.next(self.version());
        self.last
    }

    fn progress(&mut self, now: Timestamp, out: &mut Vec<Action<K>>) {
        let (Some(view), Some(mut recovery)) = (self.view.clone(), self.recovery.take()) else { return };
        recovery.unreported.retain(|node| gone(self.checks, &view, *node).is_none_or(|over| over > now));
        if recovery.unreported.is_empty() {
            out.push(Action::Ready);
        } else {
            self.recovery = Some(recovery);
        }
    }

    pub(super) fn seal(&self, placed: Placed) -> Grant {
        Grant { placed, by: self.me, view: self.version() }
    }

    fn version(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.version)
    }
}

/// The node through which `from` is asked when it was asked so often before: every second time another one, as nobody
/// evicts a node that one other cannot reach.
fn detour(view: &View, me: NodeId, from: NodeId, asked: usize) -> Option<NodeId> {
    let others: Vec<_> = view.active().map(|(node, _)| node).filter(|node| *node != me && *node != from).collect();
    let turn = (asked / 2).checked_rem(others.len())?;
    (asked % 2 == 1).then(|| others[turn])
}

/// When what `node` hosts may be replaced; `None` while it may live.
fn gone(checks: Checks, view: &View, node: NodeId) -> Option<Timestamp> {
    let over = view.lease_over(node)?;
    Some(if checks.lease_wait { over } else { Timestamp::default() })
}

/// Silence after which a host is asked for its report again.
const ASK_AFTER: Duration = Duration::from_millis(500);
/// Time for which callers of an actor wait whose state is reported to be on the move: its host asks for it again and again.
const CLAIM_WAIT: Duration = Duration::from_secs(5);
/// Time after which such callers look whether the host has asked.
const CLAIM_LOOK_AFTER: Duration = Duration::from_millis(50);
