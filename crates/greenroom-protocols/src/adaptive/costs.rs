//! What operations cost, in round trips between clusters (Geo Fig. 8).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Operations;
use crate::gsi::ClusterId;

/// Round trips between clusters, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trips(pub u64);

impl Trips {
    /// So many whole ones.
    pub const fn of(whole: u64) -> Self {
        Self(whole.saturating_mul(1000))
    }

    fn add(&mut self, times: u64, each: Self) {
        self.0 = self.0.saturating_add(times.saturating_mul(each.0));
    }

    /// Whether this is at least so many hundredths of `other`.
    pub(super) fn is_at_least(self, percent: u64, other: Self) -> bool {
        u128::from(self.0) * 100 >= u128::from(other.0) * u128::from(percent)
    }
}

impl fmt::Display for Trips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 100)
    }
}

/// The clusters that an actor may be in.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Setting {
    /// All of them.
    pub clusters: BTreeSet<ClusterId>,
    /// The one that the store is near to; if nobody has said that, it is as far from each.
    pub near: Option<ClusterId>,
}

impl Setting {
    /// The way to the store.
    fn store(&self, from: ClusterId) -> Trips {
        if self.near == Some(from) { Trips(0) } else { Trips::of(1) }
    }
}

/// What the same operations cost either way. What they cost both ways is in neither.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Costs {
    /// With one instance, at the home.
    pub single: Trips,
    /// With one in each cluster.
    pub per_cluster: Trips,
}

impl Costs {
    /// Weighs what was counted: with one instance at `home`, each call from elsewhere makes one trip, and the home's own none;
    /// with one in each cluster no call makes a trip, each update is told to the others at the cost of `notice`, and what is
    /// linearizable goes to the store from where it was asked.
    pub fn of(counted: &BTreeMap<ClusterId, Operations>, home: ClusterId, setting: &Setting, notice: Trips) -> Self {
        let others = setting.clusters.len().saturating_sub(1) as u64;
        let (mut costs, at_home) = (Self::default(), setting.store(home));
        for (cluster, asked) in counted {
            let here = setting.store(*cluster);
            let both = here.min(at_home);
            if *cluster != home {
                costs.single.add(asked.calls(), Trips::of(1));
            }
            costs.single.add(asked.linearizable(), Trips(at_home.0 - both.0));
            costs.per_cluster.add(asked.updates.max(asked.confirms).saturating_mul(others), notice);
            costs.per_cluster.add(asked.linearizable(), Trips(here.0 - both.0));
        }
        costs
    }

    /// What all of it costs with one instance at `home`.
    pub(super) fn alone(counted: &BTreeMap<ClusterId, Operations>, home: ClusterId, setting: &Setting) -> Trips {
        let mut all = Trips::default();
        for (cluster, asked) in counted {
            if *cluster != home {
                all.add(asked.calls(), Trips::of(1));
            }
            all.add(asked.linearizable(), setting.store(home));
        }
        all
    }

    /// The home with which one instance costs least, and what it costs there.
    pub fn best(
        counted: &BTreeMap<ClusterId, Operations>,
        setting: &Setting,
        notice: Trips,
    ) -> Option<(ClusterId, Self)> {
        let all = setting.clusters.iter().map(|home| (*home, Self::of(counted, *home, setting, notice)));
        // What they have in common differs from home to home, so that it is the difference that counts.
        let gain = |costs: &Self| i128::from(costs.single.0) - i128::from(costs.per_cluster.0);
        all.min_by_key(|(home, costs)| (gain(costs), *home))
    }
}
