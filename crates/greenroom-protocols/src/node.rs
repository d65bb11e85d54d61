//! Nodes, and what the cluster knows of them at one version of the membership table.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::state_versions::{InForce, StateVersions};
use crate::time::Timestamp;
use crate::versions::{self, Offer};

/// One incarnation of a node: never reused, and it rises with every join of any node.
///
/// A restarted process keeps its name and gets a new `NodeId`, so a message for an earlier incarnation is recognised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// Where a node stands between joining and death.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Status {
    /// In the table, not yet reached by every active node; hosts nothing.
    #[default]
    Joining,
    /// Hosts activations, owns ranges of the directory, votes.
    Active,
    /// Never comes back: its process, if it still runs, stops.
    Dead,
}

/// Why a node is dead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum End {
    /// Nobody said, or in words that are not known here.
    #[default]
    Unsaid,
    /// It left in order.
    Left,
    /// Others voted it out: it was silent to them.
    Silent,
    /// Its lease had run out.
    LeaseRanOut,
    /// It was started anew under its name, after its lease had run out.
    StartedAnew,
    /// It wanted to join, and gave up.
    NeverJoined,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = ENDS.iter().find(|(end, _)| end == self).map_or("nobody said why", |(_, words)| words);
        f.write_str(words)
    }
}

impl From<String> for End {
    fn from(words: String) -> Self {
        ENDS.iter().find(|(_, known)| *known == words).map_or(Self::Unsaid, |(end, _)| *end)
    }
}

impl From<End> for String {
    fn from(end: End) -> Self {
        end.to_string()
    }
}

/// What is stored and told of each.
const ENDS: &[(End, &str)] = &[
    (End::Left, "it left"),
    (End::Silent, "it was silent to the others"),
    (End::LeaseRanOut, "its lease ran out"),
    (End::StartedAnew, "it was started anew"),
    (End::NeverJoined, "it gave up joining"),
];

/// A kind that a node can host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct KindInfo {
    /// The kind's name on the wire.
    pub name: String,
    /// The name of its placement, as the placing code understands it.
    #[serde(default)]
    pub placement: String,
    /// The version of its interface. Nodes that know no versions host, and are told of, the first.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub version: u16,
    /// The oldest version of its interface whose callers it serves.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub compatible: u16,
    /// How many instances of one of its actors a multi-cluster may have.
    #[serde(default, skip_serializing_if = "Instances::is_default")]
    pub instances: Instances,
    /// Whether that changes with how each actor is used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
    /// Where its actors are at home in a multi-cluster: `lease` or `lease:CLUSTER`; empty if they have no home.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// The digest of its description, of a foreign kind: one that hosts offer there. Empty for the others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The versions of its actors' states, by their names. Who hosts them without a word of it reads the first ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, StateVersions>,
}

/// How many instances of an actor a multi-cluster may have, and when they are activated (Geo, Fig. 2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Instances {
    /// One in one of the clusters; while a cluster is silent, the others may activate one that may not be the only one.
    #[default]
    Optimistic,
    /// One in one of the clusters; while a cluster is silent, none is activated.
    Pessimistic,
    /// One in each cluster.
    PerCluster,
}

impl Instances {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl KindInfo {
    /// Whether hosts offer it, so that it may come and go while its node stays.
    pub fn is_foreign(&self) -> bool {
        !self.digest.is_empty()
    }

    /// Which callers it serves.
    pub fn offer(&self) -> Offer {
        Offer { version: self.version, compatible: self.compatible }
    }
}

impl Default for KindInfo {
    fn default() -> Self {
        let Offer { version, compatible } = Offer::FIRST;
        let instances = Instances::default();
        let (name, placement, home, digest, states) = Default::default();
        Self { name, placement, version, compatible, instances, adaptive: false, home, digest, states }
    }
}

fn first() -> u16 {
    versions::FIRST
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_first(version: &u16) -> bool {
    *version == versions::FIRST
}

/// What the cluster knows of one node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Member {
    /// The node's name, which survives restarts.
    pub name: String,
    /// Where other nodes reach it.
    pub address: String,
    /// Where its HTTP gateway listens, if it has one.
    #[serde(default)]
    pub http: Option<String>,
    /// The kinds that it can host.
    #[serde(default)]
    pub kinds: Vec<KindInfo>,
    /// Its roles, for placement.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The names of its outlets, in order, if it can own partitions of reliable actors; `None` also for nodes of builds before this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlets: Option<Vec<String>>,
    /// Where it stands.
    #[serde(default)]
    pub status: Status,
    /// It is about to leave: it gets no activations and owns no range of the directory. Never taken back.
    #[serde(default)]
    pub draining: bool,
}

impl Member {
    /// Whether this node can host `kind`.
    pub fn hosts(&self, kind: &str) -> bool {
        self.kinds.iter().any(|k| k.name == kind)
    }
}

/// What the cluster knows at one version of the membership table. Share it behind an `Arc`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// The table's version: of two views the higher one is the newer.
    pub version: u64,
    /// The first `NodeId` not yet given out at this version.
    #[serde(default)]
    pub next_node: u64,
    /// Every node in the table, the dead ones of late included.
    pub members: BTreeMap<NodeId, Member>,
    /// Why the dead ones are dead.
    #[serde(default)]
    pub ends: BTreeMap<NodeId, End>,
    /// The versions in which states are written.
    #[serde(default, skip_serializing_if = "InForce::is_empty")]
    pub states: InForce,
    /// For each dead member, when by the reader's own clock its lease is surely over. Never sent.
    #[serde(skip)]
    pub freed: BTreeMap<NodeId, Timestamp>,
}

impl View {
    /// Whether `node` is active at this version.
    pub fn is_active(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|m| m.status == Status::Active)
    }

    /// Whether `node` is given activations and ranges of the directory: active, and not about to leave.
    pub fn is_serving(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|m| m.status == Status::Active && !m.draining)
    }

    /// The nodes that are given activations and ranges of the directory, in order of their ids.
    pub fn serving(&self) -> impl Iterator<Item = (NodeId, &Member)> {
        self.active().filter(|(_, m)| !m.draining)
    }

    /// The active nodes, in order of their ids.
    pub fn active(&self) -> impl Iterator<Item = (NodeId, &Member)> {
        self.members.iter().filter(|(_, m)| m.status == Status::Active).map(|(id, m)| (*id, m))
    }

    /// The nodes that new activations of `kind` can go to, in order of their ids.
    pub fn hosts<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.serving().filter(move |(_, m)| m.hosts(kind)).map(|(id, _)| id)
    }

    /// The active node called `name`.
    pub fn by_name(&self, name: &str) -> Option<NodeId> {
        self.active().find(|(_, m)| m.name == name).map(|(id, _)| id)
    }

    /// The nodes called `name` that are not dead.
    pub fn called<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (NodeId, &'a Member)> {
        let live = move |member: &Member| member.name == name && member.status != Status::Dead;
        self.members.iter().filter(move |(_, member)| live(member)).map(|(id, member)| (*id, member))
    }

    /// When what `node` hosts may be replaced: `None` while it may live, a past time once its lease is surely over.
    ///
    /// A node that is no longer in the table was removed after its lease was over.
    pub fn lease_over(&self, node: NodeId) -> Option<Timestamp> {
        match self.members.get(&node) {
            Some(member) if member.status == Status::Dead => {
                Some(self.freed.get(&node).copied().unwrap_or(Timestamp::NEVER))
            }
            Some(_) => None,
            None if node.0 < self.next_node => Some(Timestamp::default()),
            None => None,
        }
    }
}
