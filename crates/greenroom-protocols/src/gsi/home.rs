//! Homes: a cluster that activates its own actors without asking.
//!
//! Each actor of such a kind is at home in one cluster of the configuration ([`Home`]). Once every cluster has said that it works
//! by the configuration and owns nothing away from home, and as long as the configuration stands, the home holds the *lease*
//! ([`Event::Lease`](super::Event::Lease)): it activates with no question. What is true then stays true, whatever is lost:
//!
//! - a cluster away from home never wins a round, so that nothing becomes owned there;
//! - a home that is asked activates the actor and answers that it has it, so that it never passes what it may take;
//! - a range in recovery, or of another configuration, answers Unknown.
//!
//! The lease's term is a configuration and not a time: no clock counts. The next configuration is complete only when all
//! nodes of the home work by it, which ends the lease; what is away from its new home is released.

use serde::{Deserialize, Serialize};

use super::{Action, ClusterId, Configuration, Entry, Standing, State};
use crate::mix::mix;
use crate::time::Timestamp;

/// Where an actor is at home.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Home {
    /// In the cluster that the actor's hash chooses: of equal shares, and only what must moves when the list changes.
    Hash(u64),
    /// In this cluster, and while it takes no part in the one that the hash chooses.
    At(ClusterId, u64),
}

impl Configuration {
    /// The cluster that an actor is at home in; `None` if no cluster takes part.
    pub fn home(&self, home: Home) -> Option<ClusterId> {
        let hash = match home {
            Home::At(cluster, _) if self.standing(cluster) == Some(Standing::Full) => return Some(cluster),
            Home::At(_, hash) | Home::Hash(hash) => hash,
        };
        let full = self.clusters.iter().filter(|(_, standing)| **standing == Standing::Full);
        // Rendezvous hashing (Thaler and Ravishankar, 1998).
        full.map(|(cluster, _)| *cluster).max_by_key(|cluster| (mix(hash ^ mix(u64::from(cluster.0) + 1)), *cluster))
    }
}

impl<O: Clone, R, U: Clone> Entry<O, R, U> {
    /// The cluster that the actor is at home in, if its kind has homes.
    pub fn home(&self) -> Option<ClusterId> {
        self.config.home.and_then(|home| self.configuration.home(home))
    }

    /// Whether the actor may be activated here without a question.
    pub(super) fn has_lease(&self) -> bool {
        self.leased == Some(self.configuration.epoch) && self.home() == Some(self.me)
    }

    /// Whether the actor is at home in another cluster: none that is owned may be made here.
    pub(super) fn is_away(&self) -> bool {
        self.config.checks.home && self.home().is_some_and(|home| home != self.me)
    }

    /// Whether this cluster's round has precedence over one of `other`: the home's has, else the higher one's.
    pub(super) fn precedes(&self, other: ClusterId) -> bool {
        match self.home() {
            Some(home) if home == self.me => true,
            Some(home) if home == other => false,
            _ => self.me > other,
        }
    }

    /// Activates the actor for another cluster, if it is at home here and not here yet; or begins to.
    pub(super) fn open_home(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        let here = self.home() == Some(self.me) && !self.recovering && self.config.checks.home;
        let absent = self.instance.is_none() && matches!(self.state, State::Invalid | State::Cached(_));
        let unsure = matches!(self.state, State::Doubtful(_)) && self.has_lease();
        if here && (absent || unsure) {
            self.start_round(now, out);
        }
    }
}
