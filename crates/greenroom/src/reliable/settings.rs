//! What a node is told of its reliable actors.

use serde::{Deserialize, Serialize};

/// Where reliable actors are kept: the table `[reliable]` of a node's configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Reliability {
    /// The journal's URL: `sqlite:PATH`, `postgres://..`, `etcd://..`, or `memory:`, which survives nothing. The same
    /// journal for all nodes of the cluster. Needed by nodes that host reliable kinds.
    pub journal: String,
    /// Number of partitions, the same on all nodes and for ever; 64.
    pub partitions: u32,
}

impl Default for Reliability {
    fn default() -> Self {
        Self { journal: String::new(), partitions: 64 }
    }
}

/// Most partitions of a cluster: each costs its owner a fence and a few tables.
pub(super) const PARTITIONS_MAX: u32 = 4096;
