//! What an entry remembers of the operations that others sent it, so that none runs twice.
//!
//! An operation travels to every cluster that a round asks, and its caller's cluster may carry it again if all of them decline it.
//! Memories are lost, with a node or a whole cluster; what keeps an operation from running twice must not depend on them:
//!
//! - **A round carries its operations once.** Questions that are sent again carry none. A cluster that did not run what came with a
//!   question will never do so: it is gone. It declines for sure, whatever it remembers.
//! - **A question without them is no proof.** Who answers one declines as far as it remembers, and says since when it
//!   does. That counts if its memory is older than the round.
//! - **An owner runs only what began after it owned.** Else an earlier owner may have run it. It knows that of a
//!   round above the last one that the asker had begun when it passed, if all that passed remember all that they ran since the
//!   owner's own round began ([`Memory::whole`]). An owner that took over its predecessor's instance knows nothing of the sort, and
//!   declines all; the asker then forwards its calls to the instance, by name.
//! - **Under a lease** only the home can own. It runs what began under the same lease, as the asker says; and as that
//!   rests on no memory, it can promise nothing about a question that is still on its way.
//!
//! Memories are compared with rounds by their ages, as clocks of two clusters need not agree: they may run apart by a fiftieth.
//!
//! Only rounds above one floor have an order ([`Round::floor`]). Of each cluster the rounds above one floor are known: the one that it
//! named when it passed. An owner declines what a round above another one carries: it may be an old round that an earlier owner has
//! run. What the memory has no room for makes it younger.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ClusterId, Round};
use crate::time::Timestamp;

/// What an entry remembers; see the [module](self).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Memory {
    /// Since when it remembers everything.
    since: Timestamp,
    /// The last round of each cluster whose operations were run here, or will never be; above the floor that counts.
    seen: BTreeMap<ClusterId, Round>,
    /// The last round of each cluster whose operations were run here.
    ran: BTreeMap<ClusterId, Round>,
    /// Whether all who may have owned the actor before have told what they ran.
    whole: bool,
}

/// What a round is to a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Its operations may have come with this question for the first time.
    New,
    /// They have been here, or will never be run here.
    Before,
    /// It is above another floor than the cluster's last one.
    Strange,
}

impl Memory {
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, seen: BTreeMap::new(), ran: BTreeMap::new(), whole: false }
    }

    pub(super) fn ran(&self) -> &BTreeMap<ClusterId, Round> {
        &self.ran
    }

    /// How long everything is remembered, in ms.
    pub(super) fn age_ms(&self, now: Timestamp) -> u64 {
        u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes in a question.
    pub(super) fn take(&mut self, from: ClusterId, round: Round) -> Seen {
        match self.seen.get(&from) {
            Some(seen) if !seen.is_akin(round) => return Seen::Strange,
            Some(seen) if *seen >= round => return Seen::Before,
            _ => {}
        }
        self.seen.insert(from, round);
        Seen::New
    }

    /// Whether nothing of this round was run here, as far as that is remembered.
    pub(super) fn declines(&self, from: ClusterId, round: Round) -> bool {
        self.ran.get(&from).is_none_or(|ran| *ran < round || !ran.is_akin(round))
    }

    pub(super) fn runs(&mut self, now: Timestamp, from: ClusterId, round: Round) {
        self.seen.insert(from, round);
        if self.ran.insert(from, round).is_some_and(|ran| !ran.is_akin(round)) {
            self.since = now;
        }
    }

    /// Runs nothing of this round or an earlier one of the cluster's.
    pub(super) fn fence(&mut self, cluster: ClusterId, round: Round) {
        self.take(cluster, round);
    }

    /// Runs nothing of what the cluster has begun before it said this: its last round.
    pub(super) fn passed(&mut self, cluster: ClusterId, last: Round) {
        if self.take(cluster, last) == Seen::Strange {
            self.seen.insert(cluster, last);
        }
    }

    /// Whether all who may have owned the actor before have told what they ran.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn set_whole(&mut self, whole: bool) {
        self.whole = whole;
    }
}

/// Whether a memory of this age holds all that has happened in so long a time.
pub(super) fn covers(age_ms: u64, time: Duration) -> bool {
    Duration::from_millis(age_ms) >= time + time / DRIFT_PART
}

/// Two clocks may run apart by this part.
const DRIFT_PART: u32 = 50;
