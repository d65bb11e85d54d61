//! What a node is told of its reliable actors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where reliable actors are kept: the table `[reliable]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Reliability {
    /// The journal's URL: `sqlite:PATH`, `postgres://..`, `etcd://..`, `kafka://..`, or `memory:`, which survives nothing. The same
    /// journal for all nodes of the cluster. Needed by nodes that host reliable kinds.
    pub journal: String,
    /// Number of partitions, the same on all nodes and for ever; 64.
    pub partitions: u32,
    /// Where [outputs](crate::Cx::output) go, by name: the URL of a hook (`https://..`) or of a topic
    /// (`kafka://host/topic`). The same on all nodes.
    pub outlets: BTreeMap<String, String>,
    /// Whether each turn is run a second time before its commit, and fails if it comes to something else with its volatile
    /// fields reset; off. For tests: see [`Node::interference`](crate::Node::interference).
    pub rerun: bool,
}

impl Default for Reliability {
    fn default() -> Self {
        Self { journal: String::new(), partitions: 64, outlets: BTreeMap::new(), rerun: false }
    }
}

/// Most partitions of a cluster: each costs its owner a fence and a few tables.
pub(super) const PARTITIONS_MAX: u32 = 4096;
