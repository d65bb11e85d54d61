//! What the optimiser moves, told once a minute: each move for itself would push out of the last hour what happened in it.

use std::collections::{BTreeMap, VecDeque};

use super::{Happened, Moved};

/// Moves of the optimiser that are told together.
pub(super) struct Gathering {
    /// When the first was, in Unix milliseconds.
    begun: u64,
    /// How many there were, by the node that they went to.
    to: BTreeMap<String, u64>,
    /// And those from one shard of the node to another.
    between_shards: u64,
}

impl Gathering {
    pub(super) fn new(begun: u64) -> Self {
        Self { begun, to: BTreeMap::new(), between_shards: 0 }
    }

    pub(super) fn add(&mut self, moved: &Moved) {
        match moved.shards {
            Some(_) => self.between_shards += 1,
            None => *self.to.entry(moved.to.clone()).or_default() += 1,
        }
    }

    /// Whether it is time to tell them.
    pub(super) fn is_due(&self, now: u64) -> bool {
        now.saturating_sub(self.begun) >= MINUTE
    }

    pub(super) fn happened(self) -> Happened {
        let Self { to, between_shards, .. } = self;
        Happened::Optimised { to, between_shards }
    }
}

/// How many moves there were in each of the last minutes.
#[derive(Default)]
pub(super) struct Minutes(VecDeque<(u64, u32)>);

impl Minutes {
    pub(super) fn count(&mut self, at: u64) {
        let minute = at / MINUTE;
        match self.0.back_mut().filter(|(last, _)| *last >= minute) {
            Some((_, count)) => *count += 1,
            None => self.0.push_back((minute, 1)),
        }
        if self.0.len() > KEPT_MAX {
            self.0.pop_front();
        }
    }

    /// The last `n` of them, that of `now` first.
    pub(super) fn last(&self, n: usize, now: u64) -> Vec<u32> {
        let mut counts = vec![0; n];
        for (minute, count) in &self.0 {
            let ago = (now / MINUTE).saturating_sub(*minute);
            if let Some(sum) = usize::try_from(ago).ok().and_then(|ago| counts.get_mut(ago)) {
                *sum += count;
            }
        }
        counts
    }
}

/// In milliseconds.
const MINUTE: u64 = 60_000;
/// Minutes that are kept: an hour of them.
const KEPT_MAX: usize = 61;
