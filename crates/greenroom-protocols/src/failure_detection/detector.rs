//! The machine: whom one node watches and what it has heard.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Action, Config, Event};
use crate::mix::{mix, weight};
use crate::node::{NodeId, View};
use crate::time::Timestamp;

/// One node's watch over a few others; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FailureDetector {
    config: Config,
    me: NodeId,
    view: Option<Arc<View>>,
    watched: BTreeMap<NodeId, Watch>,
    next_seq: u64,
    draws: u64,
}

/// What we know of one watched node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Watch {
    /// When to act next: to probe, or to count the probe under way as missed.
    due: Timestamp,
    waiting: Waiting,
    /// Direct probes missed in a row.
    missed: u32,
    /// The first probe since the node was last heard; an answer to any since then is a sign of life.
    silent_since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Waiting {
    ToProbe,
    Direct,
    Indirect,
}

impl FailureDetector {
    /// A watch by node `me`; it watches nobody before the first [`Event::View`].
    pub fn new(config: Config, me: NodeId) -> Self {
        Self { config, me, view: None, watched: BTreeMap::new(), next_seq: 1, draws: 0 }
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    pub fn handle(&mut self, now: Timestamp, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::View(view) => self.watch(now, view),
            Event::Tick => {}
            Event::Answer { node, seq } => self.answer(now, node, seq),
        }
        let due: Vec<NodeId> = self.watched.iter().filter(|(_, w)| w.due <= now).map(|(id, _)| *id).collect();
        for node in due {
            self.act(now, node, out);
        }
        self.check_invariants(now);
    }

    /// What holds between two events.
    fn check_invariants(&self, now: Timestamp) {
        assert!(self.watched.len() <= self.config.rings as usize, "more nodes are watched than there are rings");
        assert!(!self.watched.contains_key(&self.me), "a node watches itself");
        for watch in self.watched.values() {
            assert!(now <= watch.due, "a watched node is forgotten");
            assert!(watch.silent_since <= self.next_seq, "a node is silent since a probe that was never sent");
            assert!(watch.missed == 0 || watch.missed < self.config.misses, "a silent node is not suspected");
        }
    }

    /// When `handle` next wants a `Tick`; `None` while nobody is watched.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.watched.values().map(|watch| watch.due).min()
    }

    /// The nodes watched by this one.
    pub fn watched(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.watched.keys().copied()
    }

    fn watch(&mut self, now: Timestamp, view: Arc<View>) {
        if self.view.as_ref().is_some_and(|known| view.version < known.version) {
            return;
        }
        let mut watched = BTreeMap::new();
        for ring in 0..u64::from(self.config.rings) {
            let place = |node: NodeId| (weight(ring, node.0), node);
            let others = || view.active().map(|(id, _)| id).filter(|id| *id != self.me && !watched.contains_key(id));
            let after = others().filter(|id| place(*id) > place(self.me)).min_by_key(|id| place(*id));
            let Some(next) = after.or_else(|| others().min_by_key(|id| place(*id))) else { break };
            let fresh = Watch { due: now, waiting: Waiting::ToProbe, missed: 0, silent_since: self.next_seq };
            watched.insert(next, self.watched.get(&next).copied().unwrap_or(fresh));
        }
        self.watched = watched;
        self.view = Some(view);
    }

    fn answer(&mut self, now: Timestamp, node: NodeId, seq: u64) {
        let (next_seq, due) = (self.next_seq, now + self.config.probe_every);
        if let Some(watch) = self.watched.get_mut(&node).filter(|w| (w.silent_since..next_seq).contains(&seq)) {
            *watch = Watch { due, waiting: Waiting::ToProbe, missed: 0, silent_since: next_seq };
        }
    }

    /// Does what is due for `node`.
    fn act(&mut self, now: Timestamp, node: NodeId, out: &mut Vec<Action>) {
        let Some(mut watch) = self.watched.get(&node).copied() else { return };
        let was_paused = watch.due + self.config.probe_timeout < now;
        let missed = if watch.waiting == Waiting::Direct { watch.missed + 1 } else { 0 };
        let via = self.intermediary(node).filter(|_| watch.waiting == Waiting::Direct);
        let seq = self.next_seq;
        self.next_seq += 1;
        watch.due = now + self.config.probe_timeout;
        if let Some(via) = via.filter(|_| !was_paused && missed >= self.config.misses) {
            watch = Watch { waiting: Waiting::Indirect, missed: 0, ..watch };
            out.push(Action::ProbeVia { via, to: node, seq });
        } else {
            let silent = missed >= self.config.misses || watch.waiting == Waiting::Indirect;
            if silent && !was_paused {
                out.push(Action::Suspect { node });
            }
            watch.missed = if silent || was_paused { 0 } else { missed };
            watch.waiting = Waiting::Direct;
            out.push(Action::Probe { to: node, seq });
        }
        self.watched.insert(node, watch);
    }

    /// An active node other than `node` and us, drawn by the seed.
    fn intermediary(&mut self, node: NodeId) -> Option<NodeId> {
        let view = self.view.as_ref()?;
        let others: Vec<NodeId> = view.active().map(|(id, _)| id).filter(|id| *id != node && *id != self.me).collect();
        self.draws += 1;
        let draw = mix(self.config.seed ^ mix(self.draws));
        others.get((draw % others.len().max(1) as u64) as usize).copied()
    }
}
