//! The list of clusters, as its nodes spread it.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_protocols::cluster_list::{ClusterList, ListBefore};
use greenroom_protocols::gsi::{ClusterId, ConfigEpoch, Configuration, Standing};
use serde::{Deserialize, Serialize};

use super::config::{GeoCluster, GeoConfig};

/// A list of clusters and its number.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clusters {
    pub(crate) epoch: u64,
    pub(crate) clusters: BTreeMap<String, GeoCluster>,
    /// Those that do not take part yet. Nodes of earlier versions read that they are draining, and so neither ask nor pass them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) joining: BTreeSet<String>,
    /// Those that are taken out as lost once what they own has run out. Nodes of earlier versions read that they are draining: what
    /// they own is nobody else's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lost: BTreeSet<String>,
    /// The list that this one follows, unless operators gave it in files. Nodes of earlier versions leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<ListedBefore>,
    /// The clusters that this list removes as an operator vouches that none of their nodes runs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) vouched: BTreeSet<String>,
}

/// The list that another one follows, as nodes spread it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ListedBefore {
    pub(crate) epoch: u64,
    /// The clusters of which a majority brings the later list into force.
    pub(crate) voters: BTreeSet<String>,
}

impl Clusters {
    /// The list that a configuration gives, for a node of the cluster `me`.
    ///
    /// # Errors
    /// What is wrong with it, and what helps.
    pub(crate) fn given(config: &GeoConfig, me: &str) -> Result<Self, String> {
        let list = Self { epoch: config.epoch, clusters: config.clusters.clone(), ..Self::default() };
        list.check()?;
        if list.clusters.is_empty() && config.store.is_some() {
            // Whatever the store has is newer.
            return Ok(Self::default());
        }
        if !list.clusters.contains_key(me) {
            let names: Vec<&str> = list.clusters.keys().map(String::as_str).collect();
            return Err(format!(
                "this node's cluster is {me:?}, which `geo.clusters` does not list (it lists {}); correct `cluster`, or \
                 add it there",
                names.join(", ")
            ));
        }
        Ok(list)
    }

    /// Whether the list can be worked by.
    ///
    /// # Errors
    /// What is wrong with it, and what helps.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.clusters.len() > CLUSTERS_MAX {
            return Err(format!("{} clusters are more than the {CLUSTERS_MAX} that there may be", self.clusters.len()));
        }
        if self.epoch > EPOCH_MAX {
            return Err(format!("its number (epoch) {} is above {EPOCH_MAX}; give it a lower one", self.epoch));
        }
        let mut ids: BTreeMap<ClusterId, &str> = BTreeMap::new();
        let mut doors: BTreeMap<&str, &str> = BTreeMap::new();
        let voters = self.before.as_ref().map_or(0, |before| before.voters.len());
        if voters.max(self.vouched.len()) > CLUSTERS_MAX {
            return Err(format!("it follows a list of more than the {CLUSTERS_MAX} clusters that there may be"));
        }
        for (name, cluster) in &self.clusters {
            if name.is_empty() || name.len() > NAME_LEN_MAX {
                return Err(format!("a cluster's name has 1 to {NAME_LEN_MAX} bytes, which {name:?} has not"));
            }
            if let Some(other) = ids.insert(id_of(name), name) {
                return Err(format!(
                    "the names {other:?} and {name:?} have the same number; choose another one of them"
                ));
            }
            if cluster.gateways.len() > GATEWAYS_MAX {
                return Err(format!("cluster {name:?} has more than {GATEWAYS_MAX} gateways; name fewer"));
            }
            for gateway in &cluster.gateways {
                if let Some(other) = doors.insert(gateway, name).filter(|other| other != name) {
                    return Err(format!(
                        "{gateway} is a gateway of both {other:?} and {name:?}; each cluster has gateways of its own"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The list as the machines know it.
    pub(crate) fn configuration(&self) -> Configuration {
        let standing = |name: &String, cluster: &GeoCluster| match cluster.draining {
            _ if self.joining.contains(name) => Standing::Joining,
            _ if self.lost.contains(name) => Standing::Lost,
            true => Standing::Draining,
            false => Standing::Full,
        };
        let clusters = self.clusters.iter().map(|(name, cluster)| (id_of(name), standing(name, cluster))).collect();
        Configuration { epoch: ConfigEpoch(self.epoch), clusters }
    }

    /// Makes the clusters stand as `configuration` says, and removes those that it does not list.
    pub(super) fn stand(&mut self, configuration: &Configuration) {
        let standings = |name: &String| configuration.standing(id_of(name));
        self.clusters.retain(|name, _| standings(name).is_some());
        for (name, cluster) in &mut self.clusters {
            cluster.draining = standings(name) != Some(Standing::Full);
        }
        let all = |wanted: Standing| {
            let names = self.clusters.keys().filter(move |name| standings(name) == Some(wanted));
            names.cloned().collect()
        };
        (self.joining, self.lost) = (all(Standing::Joining), all(Standing::Lost));
    }

    /// The list as far as its majorities need it.
    pub(crate) fn quorum(&self) -> ClusterList {
        let configuration = self.configuration();
        let before = match &self.before {
            Some(before) => Some(ListBefore {
                number: ConfigEpoch(before.epoch),
                voters: before.voters.iter().map(|name| id_of(name)).collect(),
            }),
            // A node of an earlier version has made it, or passed it on: the lost clusters were members of the list before.
            None if !self.lost.is_empty() => Some(ListBefore {
                number: ConfigEpoch(self.epoch.saturating_sub(1)),
                voters: configuration.voters().collect(),
            }),
            None => None,
        };
        ClusterList { configuration, before }
    }

    /// The names of clusters of this list, or of the one before it.
    pub(crate) fn names(&self, ids: impl IntoIterator<Item = ClusterId>) -> Vec<String> {
        let voters = self.before.iter().flat_map(|before| &before.voters);
        let known: Vec<&String> = self.clusters.keys().chain(voters).collect();
        let find = |id: ClusterId| known.iter().find(|name| id_of(name) == id);
        let named = |id: ClusterId| find(id).map_or_else(|| format!("number {}", id.0), |name| (*name).clone());
        ids.into_iter().map(named).collect()
    }

    /// Whether a listed cluster takes part: it is not to join yet, and not lost.
    pub(crate) fn is_member(&self, name: &str) -> bool {
        !self.joining.contains(name) && !self.lost.contains(name)
    }

    /// The name of a listed cluster.
    pub(crate) fn name(&self, id: ClusterId) -> Option<&str> {
        self.clusters.keys().map(String::as_str).find(|name| id_of(name) == id)
    }

    /// The gateways of a listed cluster.
    pub(crate) fn gateways(&self, id: ClusterId) -> &[String] {
        self.name(id).and_then(|name| self.clusters.get(name)).map_or(&[], |cluster| &cluster.gateways)
    }
}

/// A cluster's number: made from its name, so that every list gives the same one and none is used again.
pub(crate) fn id_of(name: &str) -> ClusterId {
    // FNV-1a (Fowler, Noll, Vo), folded.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let folded = hash ^ (hash >> 32);
    ClusterId((folded ^ (folded >> 16)) as u16)
}

/// The highest number of a list: room is left to count on from it.
pub(crate) const EPOCH_MAX: u64 = u64::MAX / 2;
/// Clusters of one list.
const CLUSTERS_MAX: usize = 64;
/// Gateways of one cluster.
const GATEWAYS_MAX: usize = 256;
/// Bytes of a cluster's name.
pub(crate) const NAME_LEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(clusters: &[(&str, &[&str])]) -> Clusters {
        let clusters = clusters.iter().map(|(name, at)| ((*name).to_owned(), GeoCluster::at(at.iter().copied())));
        Clusters { epoch: 1, clusters: clusters.collect(), ..Clusters::default() }
    }

    #[test]
    fn a_gateway_of_two_clusters_is_refused() {
        let said = list(&[("eu", &["a:1"]), ("us", &["a:1"])]).check().expect_err("one door, two clusters");
        assert!(said.contains("both \"eu\" and \"us\""), "{said}");
    }

    #[test]
    fn a_node_of_an_unlisted_cluster_is_told_which_there_are() {
        let clusters = list(&[("eu", &[]), ("us", &[])]).clusters;
        let config = GeoConfig { clusters, ..GeoConfig::default() };
        let said = Clusters::given(&config, "asia").expect_err("it is not listed");
        assert!(said.contains("\"asia\"") && said.contains("eu, us"), "{said}");
    }

    #[test]
    fn numbers_of_clusters_never_change() {
        assert_eq!(["eu", "us", "asia"].map(|name| id_of(name).0), [53311, 24124, 41813], "they are on the wire");
    }
}
