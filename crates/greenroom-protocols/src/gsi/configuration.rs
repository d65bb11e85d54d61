//! The list of clusters, changed one step at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ClusterId;

/// The number of a configuration; a later one has a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigEpoch(pub u64);

/// Where a cluster stands in a configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Standing {
    /// Takes part.
    #[default]
    Full,
    /// Leaves: answers, but asks for nothing new, and releases or hands over what it owns.
    Draining,
}

/// The clusters of the multi-cluster at one time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Configuration {
    /// Its number.
    pub epoch: ConfigEpoch,
    /// The clusters.
    pub clusters: BTreeMap<ClusterId, Standing>,
}

/// One step of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// This cluster joins.
    Add(ClusterId),
    /// This cluster is to leave.
    Drain(ClusterId),
    /// This cluster has left.
    Drop(ClusterId),
}

/// What a cluster says once all of its nodes work by a configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Acknowledged {
    /// The number of that configuration.
    pub epoch: ConfigEpoch,
    /// Whether none of its nodes has an instance or a round.
    pub empty: bool,
}

/// Why a step is not allowed. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeRefused {
    /// The operator's mistake, or a repeated command.
    #[error("cluster {0} is already in the multi-cluster")]
    Present(u16),
    /// The operator's mistake, or a repeated command.
    #[error("cluster {0} is not in the multi-cluster; see `greenroom clusters list`")]
    Absent(u16),
    /// The steps were taken in the wrong order.
    #[error("cluster {0} is not draining: drain it first, with `greenroom clusters drain`")]
    NotDraining(u16),
    /// The previous step is not complete; retry when it is.
    #[error(
        "cluster {cluster} does not work by configuration {epoch} yet: see `greenroom clusters status` and try again"
    )]
    Unacknowledged {
        /// The one that lags.
        cluster: u16,
        /// What it has not acknowledged.
        epoch: u64,
    },
    /// The drain is not complete; retry when it is.
    #[error("cluster {0} still has instances: wait until `greenroom clusters status` shows it empty")]
    NotEmpty(u16),
}

impl Configuration {
    /// The first configuration, with these clusters.
    pub fn new(clusters: impl IntoIterator<Item = ClusterId>) -> Self {
        let clusters = clusters.into_iter().map(|cluster| (cluster, Standing::Full)).collect();
        Self { epoch: ConfigEpoch(1), clusters }
    }

    /// Where `cluster` stands, if it is listed.
    pub fn standing(&self, cluster: ClusterId) -> Option<Standing> {
        self.clusters.get(&cluster).copied()
    }

    /// The configuration after `change`, given what the clusters have acknowledged.
    ///
    /// # Errors
    ///
    /// If the change does not apply, or the previous one is not complete everywhere: a cluster of an older
    /// configuration might own an actor and not be asked.
    pub fn change(
        &self,
        change: Change,
        acknowledged: &BTreeMap<ClusterId, Acknowledged>,
    ) -> Result<Self, ChangeRefused> {
        let said = |cluster: &ClusterId| acknowledged.get(cluster).copied().unwrap_or_default();
        if let Some(behind) = self.clusters.keys().find(|cluster| said(cluster).epoch < self.epoch) {
            return Err(ChangeRefused::Unacknowledged { cluster: behind.0, epoch: self.epoch.0 });
        }
        let mut next = Self { epoch: ConfigEpoch(self.epoch.0 + 1), clusters: self.clusters.clone() };
        match change {
            Change::Add(cluster) => {
                if next.clusters.insert(cluster, Standing::Full).is_some() {
                    return Err(ChangeRefused::Present(cluster.0));
                }
            }
            Change::Drain(cluster) => match next.clusters.get_mut(&cluster) {
                Some(standing) => *standing = Standing::Draining,
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
            Change::Drop(cluster) => match next.clusters.remove(&cluster) {
                Some(Standing::Draining) if said(&cluster).empty => {}
                Some(Standing::Draining) => return Err(ChangeRefused::NotEmpty(cluster.0)),
                Some(Standing::Full) => return Err(ChangeRefused::NotDraining(cluster.0)),
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
        }
        Ok(next)
    }
}
