//! What a node can be told of its multi-cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_protocols::gsi;
use greenroom_protocols::node::Instances;
use serde::{Deserialize, Serialize};

use super::adaptive::config::GeoAdaptive;
use crate::node::config::seconds;

/// The multi-cluster that a node is in. Its cluster's name there is [`Config::cluster`](crate::Config::cluster).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GeoConfig {
    /// Where nodes of other clusters reach this node, as `host:port`, if it is a gateway of its cluster.
    pub gateway: Option<String>,
    /// PEM file of the authorities of all clusters' certificates, this one's included: only connections between clusters trust the
    /// others. Without it `tls.ca` is taken. With `--tls-dir DIR` it is `DIR/clusters.pem`, if that is there.
    pub ca: Option<PathBuf>,
    /// The number of the list below. Nodes work by the list with the highest number that they have heard of: raise it with
    /// each change.
    pub epoch: u64,
    /// The store that the list is kept in, by its name in [`Config::stores`](crate::Config::stores), or `""` for the one without a name. All
    /// clusters must reach it. The list below is then what the first node puts there, and may be left out on the others.
    pub store: Option<String>,
    /// The clusters by name, this one included.
    pub clusters: BTreeMap<String, GeoCluster>,
    /// What kinds are to be in this cluster, whatever their attributes say.
    pub kinds: BTreeMap<String, GeoKind>,
    /// The cluster that each store is nearest to, by the store's name (`default` for the one without a name): instances elsewhere
    /// let that cluster's write for them where it spares a round trip.
    pub stores: BTreeMap<String, String>,
    /// When adaptive actors change the number of their instances.
    pub adaptive: GeoAdaptive,
    /// Silence of a cluster after which an answer is not waited for any more, in seconds in files.
    #[serde(with = "seconds")]
    pub silent_after: Duration,
    /// Time after which what a cluster owns is free that is taken out as lost: after half of it such a cluster, should it live and hear no
    /// other one, has given up its pessimistic actors by itself. The same in all clusters; in seconds in files. 0 for no such time: who
    /// takes a cluster out vouches that it does not live. Less than 10 s is taken for 10 s.
    #[serde(with = "seconds")]
    pub lost_after: Duration,
    /// Time between looks for another instance of an actor of which there may be two, in seconds in files.
    #[serde(with = "seconds")]
    pub look_again_every: Duration,
    /// The safety checks in force. Tests take one out to show that it matters.
    #[doc(hidden)]
    #[serde(skip)]
    pub checks: gsi::Checks,
}

/// One cluster of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GeoCluster {
    /// Its gateways, as `host:port`.
    pub gateways: Vec<String>,
    /// Whether it is about to leave: it activates nothing new, and gives up what it has.
    pub draining: bool,
}

/// How a kind's actors are activated in a multi-cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GeoKind {
    /// One instance in all, or one in each cluster.
    pub instances: Option<GeoInstances>,
    /// Whether one is activated while a cluster is silent.
    pub activation: Option<GeoActivation>,
}

/// How many instances of an actor there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeoInstances {
    /// One in one of the clusters.
    Single,
    /// One in each cluster.
    PerCluster,
    /// As many as cost least by how each actor is used: one, or one in each cluster.
    Adaptive,
}

impl GeoInstances {
    /// The value as it is written in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::PerCluster => "per_cluster",
            Self::Adaptive => "adaptive",
        }
    }
}

/// What is activated while a cluster is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeoActivation {
    /// An instance that may not be the only one.
    Optimistic,
    /// Nothing.
    Pessimistic,
}

/// Where the actors of a kind are at home: there they are activated without a question to other clusters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum GeoHome {
    /// Nowhere: where they are called first.
    None,
    /// In the cluster that each actor's hash chooses.
    Lease,
    /// In this cluster, while it takes part.
    LeaseAt(String),
}

impl TryFrom<String> for GeoHome {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        match (written.as_str(), written.strip_prefix("lease:")) {
            ("none", _) => Ok(Self::None),
            ("lease", _) => Ok(Self::Lease),
            (_, Some(cluster)) if !cluster.is_empty() => Ok(Self::LeaseAt(cluster.to_owned())),
            _ => Err(format!("{written:?} is no home; write \"lease\", \"lease:CLUSTER\" or \"none\"")),
        }
    }
}

impl From<GeoHome> for String {
    fn from(home: GeoHome) -> Self {
        match home {
            GeoHome::None => "none".to_owned(),
            home => home.to_string(),
        }
    }
}

/// As nodes tell each other: nothing for none.
impl std::fmt::Display for GeoHome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Lease => f.write_str("lease"),
            Self::LeaseAt(cluster) => write!(f, "lease:{cluster}"),
        }
    }
}

impl Default for GeoConfig {
    fn default() -> Self {
        let machine = gsi::Config::default();
        Self {
            gateway: None,
            ca: None,
            epoch: 1,
            store: None,
            clusters: BTreeMap::new(),
            kinds: BTreeMap::new(),
            stores: BTreeMap::new(),
            adaptive: GeoAdaptive::default(),
            silent_after: machine.silent_after,
            lost_after: LOST_AFTER,
            look_again_every: machine.rerun_every,
            checks: machine.checks,
        }
    }
}

impl GeoCluster {
    /// A cluster that is reached at `gateways`.
    pub fn at(gateways: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { gateways: gateways.into_iter().map(Into::into).collect(), draining: false }
    }
}

impl GeoConfig {
    /// Time after which what a lost cluster owns is free; zero for none.
    pub(super) fn lost_after(&self) -> Duration {
        if self.lost_after.is_zero() { Duration::ZERO } else { self.lost_after.max(LOST_AFTER_MIN) }
    }

    /// How many instances actors of `kind` have, whose attribute says `said`.
    pub(crate) fn instances(&self, kind: &str, said: Instances) -> Instances {
        let Some(GeoKind { instances, activation }) = self.kinds.get(kind) else { return said };
        let single = match said {
            Instances::PerCluster => Instances::Optimistic,
            single => single,
        };
        let single = match activation {
            Some(GeoActivation::Optimistic) => Instances::Optimistic,
            Some(GeoActivation::Pessimistic) => Instances::Pessimistic,
            None => single,
        };
        match instances {
            Some(GeoInstances::PerCluster) => Instances::PerCluster,
            // At first, and in between.
            Some(GeoInstances::Adaptive) => Instances::Optimistic,
            Some(GeoInstances::Single) => single,
            None if said == Instances::PerCluster => said,
            None => single,
        }
    }

    /// Whether the number of instances changes with how the actors of `kind` are used, whose attribute says `said`.
    pub(crate) fn is_adaptive(&self, kind: &str, said: bool) -> bool {
        let instances = self.kinds.get(kind).and_then(|kind| kind.instances);
        instances.map_or(said, |instances| instances == GeoInstances::Adaptive)
    }

    /// What the machines are told, for an actor with so many instances.
    pub(crate) fn machine(&self, instances: Instances) -> gsi::Config {
        let mode = match instances {
            Instances::Pessimistic => gsi::Mode::Pessimistic,
            Instances::Optimistic | Instances::PerCluster => gsi::Mode::Optimistic,
        };
        let silent_after = self.silent_after.max(Duration::from_millis(1));
        gsi::Config {
            mode,
            silent_after,
            resend_after: silent_after * 2 / 5,
            rerun_every: self.look_again_every.max(silent_after),
            checks: self.checks,
            ..gsi::Config::default()
        }
    }
}

/// As long as most cuts last, and for operators to wait.
const LOST_AFTER: Duration = Duration::from_secs(300);
/// Half of it is longer than it takes to find out that a cluster is silent.
const LOST_AFTER_MIN: Duration = Duration::from_secs(10);
