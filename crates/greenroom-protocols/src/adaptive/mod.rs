//! Adaptive instances: whether an actor has one instance, or one in each cluster, by what is asked of it (Geo §6 names it
//! future work).
//!
//! One [`Decider`] for each actor, in one cluster, hears what all clusters count, and announces a [`Mode`] under an [`Epoch`]
//! that only rises. Nothing rests on who knows which mode: a stored versioned state has its confirmed updates in one order
//! however many instances there are, and the machine of [`gsi`](crate::gsi) knows nothing of modes. A cluster with an old mode
//! is slower, never wrong.
//!
//! Pure: no clock, no I/O, no randomness.

mod costs;
mod decider;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::costs::{Costs, Setting, Trips};
pub use self::decider::Decider;
use crate::gsi::ClusterId;

/// How many instances an actor has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// One in all.
    Single {
        /// Where it is to be; wherever it is called first if nobody has decided that.
        home: Option<ClusterId>,
    },
    /// One in each cluster.
    PerCluster,
}

impl Default for Mode {
    fn default() -> Self {
        Self::Single { home: None }
    }
}

/// When a mode was decided: of two modes that of the higher epoch holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Epoch {
    /// Rises with each switch.
    pub number: u64,
    /// Who has decided: no two deciders have the same.
    pub by: u64,
}

/// A mode as clusters tell each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// Its epoch; the default one of actors that have never switched.
    pub epoch: Epoch,
    /// The mode.
    pub mode: Mode,
    /// Why; `None` for actors that have never switched.
    pub why: Option<Why>,
}

/// Why an actor has switched.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Why {
    /// What was counted, by the cluster of the callers.
    pub counted: BTreeMap<ClusterId, Operations>,
    /// What that costs with one instance.
    pub single: Trips,
    /// What that costs with one in each cluster.
    pub per_cluster: Trips,
    /// What it costs with one instance where it is to be now, if that is what has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Trips>,
    /// When it was decided: time since 1970 by the decider's wall clock, for people.
    pub at: Duration,
}

/// What was asked of an actor's versioned states.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Operations {
    /// Looks at what is known here.
    pub reads: u64,
    /// Updates.
    pub updates: u64,
    /// Updates that were waited for.
    pub confirms: u64,
    /// Reads that waited for the latest version.
    pub refreshes: u64,
}

impl Operations {
    /// How many calls that makes: who waits for an update has enqueued it, and who waits for a version reads it.
    pub fn calls(&self) -> u64 {
        self.reads.max(self.refreshes).saturating_add(self.updates.max(self.confirms))
    }

    /// Those that wait for the store.
    pub fn linearizable(&self) -> u64 {
        self.confirms.saturating_add(self.refreshes)
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds `more`.
    pub fn add(&mut self, more: &Self) {
        let Self { reads, updates, confirms, refreshes } = more;
        self.reads = self.reads.saturating_add(*reads);
        self.updates = self.updates.saturating_add(*updates);
        self.confirms = self.confirms.saturating_add(*confirms);
        self.refreshes = self.refreshes.saturating_add(*refreshes);
    }

    /// Forgets half of them.
    fn halve(&mut self) {
        let Self { reads, updates, confirms, refreshes } = self;
        for count in [reads, updates, confirms, refreshes] {
            *count /= 2;
        }
    }
}

/// How a decider behaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Time in which what was counted loses half of its weight; 30 s by default. Nothing is decided before it has been counted
    /// for so long.
    pub window: Duration,
    /// Time between two switches at least; 60 s by default.
    pub dwell: Duration,
    /// So many hundredths of what it would cost does what there is cost, before it is given up; 200 by default.
    pub ratio_percent: u64,
    /// So much is to be gained in a window at least; 20 round trips by default.
    pub gain_min: Trips,
    /// What it costs to tell another cluster of an update; a quarter of a round trip by default, as nobody waits for it.
    pub notice: Trips,
    /// Time between two tries to reach a cluster; 500 ms by default.
    pub resend_after: Duration,
    /// Time that the home to be has, to become the only owner before the others hear of it; 5 s by default.
    pub prepare_for: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(30),
            dwell: Duration::from_secs(60),
            ratio_percent: 200,
            gain_min: Trips::of(20),
            notice: Trips(250),
            resend_after: Duration::from_millis(500),
            prepare_for: Duration::from_secs(5),
        }
    }
}

/// What happened to a decider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// An instance in a cluster has counted this since it last told.
    Counted {
        /// Where the instance is.
        at: ClusterId,
        /// The mode that is known there.
        known: Known,
        /// What was asked, by the cluster of the callers.
        by: BTreeMap<ClusterId, Operations>,
    },
    /// The home to be is ready: no other cluster owns the actor.
    Ready {
        /// Where.
        at: ClusterId,
        /// Of which mode.
        epoch: Epoch,
    },
    /// These are the clusters, and where the store is.
    Setting(Setting),
    /// Whether a cluster is silent: what is not heard of cannot be weighed, and nothing is decided.
    Apart(bool),
    /// The deadline came.
    Tick,
}

/// What must be done for a decider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Tell this cluster, which may be the decider's own, of the mode.
    Announce(ClusterId, Known),
    /// It has been decided to switch: for who counts that.
    Switched(Mode),
}
