//! The loads of all nodes as this one has them in its books: what was measured, and what has moved since.

use std::collections::BTreeMap;
use std::time::Duration;

use super::message::ExchangeId;
use super::survey::{Load, Measured, Survey};
use crate::node::NodeId;
use crate::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Books {
    /// What exchanges have moved here, of late.
    moved: BTreeMap<ExchangeId, Moved>,
    /// What other nodes have said of themselves.
    heard: BTreeMap<NodeId, Heard>,
    /// How often anything was entered.
    entries: u64,
}

/// What one exchange has brought here; negative if more went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Moved {
    with: NodeId,
    cpu: i64,
    activations: i64,
    last: Timestamp,
    /// The number of its last entry.
    entry: u64,
}

/// A load as its node has said it, which knew of all that had moved by then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Heard {
    load: Load,
    at: Timestamp,
    entry: u64,
}

impl Books {
    /// Notes that actors have come from `with`, or have gone there if the numbers are negative.
    pub(super) fn note(&mut self, now: Timestamp, x: ExchangeId, with: NodeId, cpu: i64, activations: i64) {
        self.moved.retain(|_, moved| now.since(moved.last) < KEPT);
        if self.moved.len() >= MOVED_MAX {
            self.moved.pop_first();
        }
        self.entries += 1;
        let entry = self.entries;
        let moved = self.moved.entry(x).or_insert(Moved { with, cpu: 0, activations: 0, last: now, entry });
        let (cpu, activations) = (moved.cpu + cpu, moved.activations + activations);
        *moved = Moved { with, cpu, activations, last: now, entry };
    }

    /// Notes what `node` has said of itself.
    pub(super) fn hear(&mut self, now: Timestamp, node: NodeId, load: Load) {
        self.entries += 1;
        self.heard.insert(node, Heard { load, at: now, entry: self.entries });
    }

    /// Keeps what was heard of these nodes alone.
    pub(super) fn retain(&mut self, is_known: impl Fn(NodeId) -> bool) {
        self.heard.retain(|node, _| is_known(*node));
    }

    /// This node's load.
    pub(super) fn own(&self, measured: Measured) -> Load {
        self.moved.values().fold(measured.load, |load, moved| {
            let (cpu, activations) = moved.after(measured);
            load.shifted(cpu, activations)
        })
    }

    /// Another node's.
    pub(super) fn of(&self, node: NodeId, survey: &Survey) -> Load {
        let measured = survey.others.get(&node).copied().unwrap_or_default();
        let heard = self.heard.get(&node).filter(|heard| heard.at >= measured.since);
        let late = |moved: &Moved| match heard {
            Some(heard) if moved.entry > heard.entry => (moved.cpu, moved.activations),
            Some(_) => (0, 0),
            None => moved.after(measured),
        };
        let load = heard.map_or(measured.load, |heard| heard.load);
        self.moved.values().filter(|moved| moved.with == node).fold(load, |load, moved| {
            let (cpu, activations) = late(moved);
            load.shifted(-cpu, -activations)
        })
    }
}

impl Moved {
    /// What of it is not in what was measured.
    fn after(&self, measured: Measured) -> (i64, i64) {
        let late = |at: Timestamp, amount: i64| if self.last > at { amount } else { 0 };
        (late(measured.since, self.cpu), late(measured.counted, self.activations))
    }
}

/// For how long a move is kept in the books: by then all have measured anew.
const KEPT: Duration = Duration::from_secs(60);
/// Exchanges in the books.
const MOVED_MAX: usize = 1_024;
