//! What is asked of the states of adaptive actors, counted where it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use greenroom_protocols::adaptive::Operations;
use greenroom_protocols::gsi::ClusterId;

use super::elsewhere::Post;
use crate::shard::Shard;

/// What is asked of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// What is known here.
    Read,
    /// A change.
    Update,
    /// That what was changed is confirmed.
    Confirm,
    /// The latest version.
    Refresh,
}

/// The counts of one instance, by the cluster of the callers.
pub(super) struct Tally {
    here: ClusterId,
    counted: Mutex<Counted>,
}

/// What was asked, by the cluster of the callers.
pub(crate) type Counted = BTreeMap<ClusterId, Operations>;

impl Tally {
    pub(super) fn new(here: ClusterId) -> Self {
        Self { here, counted: Mutex::default() }
    }

    /// Counts what the current turn asks.
    pub(super) fn note(&self, asked: Asked) {
        let caller = Shard::with(|shard| shard.and_then(Shard::calling_cluster));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let operations = counted.entry(caller.unwrap_or(self.here)).or_default();
        match asked {
            Asked::Read => operations.reads += 1,
            Asked::Update => operations.updates += 1,
            Asked::Confirm => operations.confirms += 1,
            Asked::Refresh => operations.refreshes += 1,
        }
    }

    /// What was counted since the last time.
    fn take(&self) -> Counted {
        std::mem::take(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Post {
    /// What was counted of this node's actors since the last time, by kind and key.
    pub(crate) fn take_tallies(&self) -> BTreeMap<(String, String), Counted> {
        let mut all = BTreeMap::<_, Counted>::new();
        for instance in self.instances() {
            let counted = instance.tally().map(Tally::take).unwrap_or_default();
            if counted.is_empty() {
                continue;
            }
            let (kind, key, _) = instance.name();
            let sum = all.entry((kind, key)).or_default();
            for (cluster, operations) in counted {
                sum.entry(cluster).or_default().add(&operations);
            }
        }
        all
    }
}
