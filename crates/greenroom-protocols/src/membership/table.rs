//! What is stored: one table, and one small lease record a node.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LeaseTimes;
use crate::node::{End, Member, NodeId, Status, View};
use crate::state_versions::InForce;

/// A store's opaque name for one state of one record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Etag(pub String);

/// The membership table: one record, changed only by compare-and-swap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Rises by one with every write.
    pub version: u64,
    /// The id that the next joiner gets.
    pub next_node: u64,
    /// A row for each node that lives or died of late.
    #[serde(default)]
    pub rows: BTreeMap<NodeId, Row>,
    /// The versions in which states are written.
    #[serde(default, skip_serializing_if = "InForce::is_empty")]
    pub states: InForce,
}

/// One node's row.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The node.
    pub member: Member,
    /// Who suspects it, at most one entry a voter.
    #[serde(default)]
    pub suspicions: Vec<Suspicion>,
    /// It left by itself, with every turn stopped: nobody waits for its lease.
    #[serde(default)]
    pub left: bool,
    /// Why it is dead, once it is.
    #[serde(default)]
    pub end: End,
    /// How long a renewal of its lease holds: others judge it by this, whatever their own leases are.
    #[serde(default = "lease_by_default")]
    pub lease: Duration,
}

impl Row {
    /// The row of a node that joins, and that renews its lease for so long at a time.
    pub fn joining(member: Member, lease: Duration) -> Self {
        let (suspicions, left, end) = Default::default();
        Self { member: Member { status: Status::Joining, ..member }, suspicions, left, end, lease }
    }
}

/// The lease of rows that were written before they said.
fn lease_by_default() -> Duration {
    LeaseTimes::default().length
}

/// One node's vote against another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Suspicion {
    /// The voter.
    pub by: NodeId,
    /// The table version that first carried it: a renewed suspicion has a new one.
    pub at_version: u64,
}

/// A node's lease: renewed by compare-and-swap, beside the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// Whose lease.
    pub node: NodeId,
    /// Rises with every attempt to renew.
    pub counter: u64,
}

impl Table {
    /// The active nodes, in order.
    pub fn active(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.rows.iter().filter(|(_, row)| row.member.status == Status::Active).map(|(id, _)| *id)
    }

    /// The nodes called `name` that are not dead, in order: at most one, but for what older programs wrote.
    pub fn called(&self, name: &str) -> impl Iterator<Item = NodeId> {
        let live = move |row: &Row| row.member.name == name && row.member.status != Status::Dead;
        self.rows.iter().filter(move |(_, row)| live(row)).map(|(id, _)| *id)
    }

    /// Where `node` stands; `None` if it has no row.
    pub fn status(&self, node: NodeId) -> Option<Status> {
        self.rows.get(&node).map(|row| row.member.status)
    }

    /// The table as a view, without times.
    pub(super) fn view(&self) -> View {
        View {
            version: self.version,
            next_node: self.next_node,
            members: self.rows.iter().map(|(id, row)| (*id, row.member.clone())).collect(),
            ends: self.rows.iter().filter(|(_, row)| row.member.status == Status::Dead).map(end).collect(),
            states: self.states.clone(),
            freed: BTreeMap::new(),
        }
    }

    /// Whether whoever is dead in `old` is so here too, or has no row any more.
    pub(super) fn keeps_the_dead_of(&self, old: &Table) -> bool {
        let mut dead = old.rows.iter().filter(|(_, row)| row.member.status == Status::Dead);
        dead.all(|(id, _)| matches!(self.status(*id), Some(Status::Dead) | None))
    }

    pub(super) fn kill(&mut self, node: NodeId, end: End) {
        if let Some(row) = self.rows.get_mut(&node) {
            row.member.status = Status::Dead;
            row.end = end;
        }
    }
}

/// Why a dead node is dead: programs that do not say so say whether it left.
fn end((id, row): (&NodeId, &Row)) -> (NodeId, End) {
    (*id, if row.left { End::Left } else { row.end })
}
