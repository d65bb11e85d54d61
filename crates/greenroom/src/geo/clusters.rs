//! The list of clusters, as its nodes spread it.

use std::collections::{BTreeMap, BTreeSet};

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
        let mut ids: BTreeMap<ClusterId, &str> = BTreeMap::new();
        let mut doors: BTreeMap<&str, &str> = BTreeMap::new();
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
