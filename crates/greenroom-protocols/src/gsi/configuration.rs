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
    /// Is to take part: until then it asks for nothing, owns nothing, and nobody asks it. That it may never come hinders nobody.
    Joining,
    /// Is taken for gone: nobody asks it, and what it may own is nobody else's until that has run out.
    Lost,
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
    /// This cluster is to join.
    Add(ClusterId),
    /// This cluster, which works by the list that has it join, takes part.
    Admit(ClusterId),
    /// This cluster is to leave.
    Drain(ClusterId),
    /// This cluster has left, or was never admitted, or is lost and what it owned has run out.
    Drop(ClusterId),
    /// This cluster is gone for good, as the operator vouches. It is dropped once it cannot own anything, should it live after all.
    Lose(ClusterId),
}

/// What a cluster says once all of its nodes work by a configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Acknowledged {
    /// The number of that configuration.
    pub epoch: ConfigEpoch,
    /// Whether none of its nodes has an instance or a round. Of a lost one others say so, once what it owned has [run
    /// out](super::Event::Fenced).
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
    /// A repeated command: all would have to work by one more configuration before it can be dropped.
    #[error("cluster {0} is draining already")]
    Draining(u16),
    /// The operator's mistake: it owns nothing that could be drained.
    #[error("cluster {0} does not take part yet: remove it")]
    NotAdmitted(u16),
    /// A repeated command: it is dropped by itself.
    #[error("cluster {0} is being taken out as lost: that is done when what it may own has run out")]
    Lost(u16),
    /// The steps were taken in the wrong order.
    #[error("cluster {0} is not draining: drain it first, with `greenroom clusters drain`")]
    NotDraining(u16),
    /// The previous step is not complete; retry when it is.
    #[error(
        "cluster {cluster} does not work by configuration {epoch} yet: see `greenroom clusters status` and try again; if it is gone for \
         good, `greenroom clusters remove --lost` it first"
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

    /// The clusters that must pass so that another cluster owns an actor; a lost one never does.
    pub fn voters(&self) -> impl Iterator<Item = ClusterId> + '_ {
        let members = self.clusters.iter().filter(|(_, standing)| **standing != Standing::Joining);
        members.map(|(cluster, _)| *cluster)
    }

    /// The clusters that may be admitted, given what the clusters have acknowledged.
    pub fn admissible<'a>(
        &'a self,
        acknowledged: &'a BTreeMap<ClusterId, Acknowledged>,
    ) -> impl Iterator<Item = ClusterId> + 'a {
        let all = self.clusters.keys().copied();
        all.filter(|cluster| self.change(Change::Admit(*cluster), acknowledged).is_ok())
    }

    /// The number of the configuration that a cluster puts in the place of this one where its members do not decide on one together. The
    /// first member that hears of no earlier one counts by one; those that stand in for it take numbers that no other one gives after the
    /// same configuration.
    pub fn number_after(&self, by: ClusterId, stands_in: bool) -> ConfigEpoch {
        let (round, next) = (self.epoch.0 / NUMBERS_A_ROUND, self.epoch.0 + 1);
        let place = self.clusters.keys().take_while(|cluster| **cluster != by).count() as u64;
        ConfigEpoch(match stands_in {
            true => (round + 1) * NUMBERS_A_ROUND + NUMBERS_OF_FIRST + place,
            false if next % NUMBERS_A_ROUND < NUMBERS_OF_FIRST => next,
            false => (round + 1) * NUMBERS_A_ROUND,
        })
    }

    /// The configuration after `change`, given what the clusters have acknowledged.
    ///
    /// # Errors
    ///
    /// If the change does not apply, or the previous one is not complete everywhere: a cluster of an older
    /// configuration might own an actor and not be asked. Who does not take part yet, or is lost, is not waited for. A removal of a
    /// lost cluster waits for nobody here: [`cluster_list`](crate::cluster_list) says when it is in force.
    pub fn change(
        &self,
        change: Change,
        acknowledged: &BTreeMap<ClusterId, Acknowledged>,
    ) -> Result<Self, ChangeRefused> {
        let said = |cluster: &ClusterId| acknowledged.get(cluster).copied().unwrap_or_default();
        let counts = |cluster: &ClusterId| match change {
            Change::Lose(_) => false,
            Change::Admit(admitted) if admitted == *cluster => true,
            _ => !matches!(self.standing(*cluster), Some(Standing::Joining | Standing::Lost)),
        };
        let behind = self.clusters.keys().find(|cluster| counts(cluster) && said(cluster).epoch < self.epoch);
        if let Some(behind) = behind {
            return Err(ChangeRefused::Unacknowledged { cluster: behind.0, epoch: self.epoch.0 });
        }
        let mut next = Self { epoch: ConfigEpoch(self.epoch.0 + 1), clusters: self.clusters.clone() };
        match change {
            Change::Add(cluster) => {
                if next.clusters.insert(cluster, Standing::Joining).is_some() {
                    return Err(ChangeRefused::Present(cluster.0));
                }
            }
            Change::Admit(cluster) => match next.clusters.insert(cluster, Standing::Full) {
                Some(Standing::Joining) => {}
                Some(_) => return Err(ChangeRefused::Present(cluster.0)),
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
            Change::Drain(cluster) => match next.clusters.insert(cluster, Standing::Draining) {
                Some(Standing::Full) => {}
                Some(Standing::Draining) => return Err(ChangeRefused::Draining(cluster.0)),
                Some(Standing::Joining) => return Err(ChangeRefused::NotAdmitted(cluster.0)),
                Some(Standing::Lost) => return Err(ChangeRefused::Lost(cluster.0)),
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
            Change::Lose(cluster) => match next.clusters.insert(cluster, Standing::Lost) {
                Some(Standing::Full | Standing::Draining) => {}
                // It owns nothing.
                Some(Standing::Joining) => _ = next.clusters.remove(&cluster),
                Some(Standing::Lost) => return Err(ChangeRefused::Lost(cluster.0)),
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
            Change::Drop(cluster) => match next.clusters.remove(&cluster) {
                Some(Standing::Joining) => {}
                Some(Standing::Draining | Standing::Lost) if said(&cluster).empty => {}
                Some(Standing::Lost) => return Err(ChangeRefused::Lost(cluster.0)),
                Some(Standing::Draining) => return Err(ChangeRefused::NotEmpty(cluster.0)),
                Some(Standing::Full) => return Err(ChangeRefused::NotDraining(cluster.0)),
                None => return Err(ChangeRefused::Absent(cluster.0)),
            },
        }
        Ok(next)
    }
}

/// Numbers after which who stands in gives the next: of each so many the first half is the first member's, and each of the others has one
/// of the rest.
const NUMBERS_A_ROUND: u64 = 2 * NUMBERS_OF_FIRST;
/// The numbers of the first member: as many as there may be clusters.
const NUMBERS_OF_FIRST: u64 = 64;
