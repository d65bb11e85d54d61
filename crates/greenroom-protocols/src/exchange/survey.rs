//! What a node tells its machine of itself: the actors that may move, its load, and what it has heard of the others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::balance::{Scales, Way, Weight};
use super::{Checks, Tolerance};
use crate::directory::Epoch;
use crate::node::NodeId;
use crate::time::Timestamp;

/// Who is on this node now. The machine asks when it offers and when it is offered something, and at no other time.
pub trait Roster {
    /// The actors that may move, the sets that they form, and the loads.
    fn survey(&self) -> Cow<'_, Survey>;

    /// Whether an actor of this hash is active here, one that may not move included.
    fn hosts(&self, hash: u64) -> bool;
}

/// What is here, and how loaded all nodes are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Survey {
    /// This node's load.
    pub load: Measured,
    /// What was heard of the other active nodes.
    pub others: BTreeMap<NodeId, Measured>,
    /// The actors here that may move. What may not is no entry: it counts in its partners' flows.
    pub actors: Vec<Actor>,
    /// Actors that talk mostly among themselves: an actor is in one set at most. Those that are not all in `actors` go nowhere as
    /// a whole.
    pub sets: Vec<Set>,
    /// Kinds, as [`Actor::kind`] has them, and nodes to which their actors do not go: those that do not host them, host them in
    /// an older version, or have not their role.
    pub barred: BTreeSet<(u32, NodeId)>,
}

/// How much a node has to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    /// Time that its shards were busy, without spinning: µs of CPU a second.
    pub busy: u64,
    /// Cores that it has; at least one is counted.
    pub cores: u32,
    /// Activations that it hosts.
    pub activations: u64,
}

/// A load, and when it was measured by this node's clock: what moved later is not in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Measured {
    /// The load.
    pub load: Load,
    /// When the measurement of what is busy began.
    pub since: Timestamp,
    /// When the activations were counted.
    pub counted: Timestamp,
}

/// An actor that may move. Flows are messages a minute.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Actor {
    /// Names the actor; the same on all nodes.
    pub hash: u64,
    /// Of its activation here.
    pub epoch: Epoch,
    /// Its kind, by a number of this node's own.
    pub kind: u32,
    /// All its messages.
    pub flow: u32,
    /// Those with actors of this node, on all shards.
    pub here: u32,
    /// Those with actors of other nodes, each node once.
    pub toward: Vec<(NodeId, u32)>,
    /// Whether so much was seen of it that a wish of its own counts. If not, it moves with its set, or for balance.
    pub ready: bool,
    /// What a move costs, in messages.
    pub cost: u32,
    /// What its turns take: µs of CPU a second.
    pub cpu: u32,
    /// What a move carries, in bytes.
    pub bytes: u32,
    /// The heaviest known edges; the first [`EDGES_MAX`](super::EDGES_MAX) of them count.
    pub edges: Vec<Edge>,
}

/// Actors that go together, for a wish of all of them or for balance.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Set {
    /// Their hashes.
    pub members: Vec<u64>,
    /// Whether so much was seen of all of them that a wish of theirs counts. If not, they move for balance alone.
    pub ready: bool,
}

/// How much an actor talks to another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    /// The other one's hash.
    pub partner: u64,
    /// Where it was last heard of.
    pub at: NodeId,
    /// Messages a minute.
    pub flow: u32,
}

impl Survey {
    /// Whether `node` may be loaded further for locality's sake, as far as this node has heard.
    pub fn has_room(&self, node: NodeId, tolerance: Tolerance) -> bool {
        let Some(other) = self.others.get(&node) else { return true };
        let rest = self.others.iter().filter(|(beside, _)| **beside != node).map(|(_, other)| other.load);
        let scales = Scales::new([other.load, self.load.load], rest, tolerance, Checks::default());
        scales.fits(Way::Take, Weight { cpu: 1, activations: 1 })
    }
}

impl Survey {
    /// An actor has gone from one node to another, one of which is `me`, where this was taken: its partners' messages go there now. So
    /// nobody follows it to where it was. Each partner is named with its messages a minute with the actor.
    pub fn moved(&mut self, me: NodeId, hash: u64, (from, to): (NodeId, NodeId), partners: &[(u64, u32)]) {
        for (partner, flow) in partners {
            let Some(actor) = self.actors.iter_mut().find(|actor| actor.hash == *partner) else { continue };
            let known = actor.edges.iter_mut().find(|edge| edge.partner == hash);
            let flow = known.map_or(*flow, |edge| {
                edge.at = to;
                edge.flow.max(*flow)
            });
            let taken = flow.min(*actor.flow_with(me, from));
            *actor.flow_with(me, from) -= taken;
            *actor.flow_with(me, to) += taken;
        }
    }
}

impl Load {
    /// The part of its cores that is busy, in millionths.
    pub(super) fn share(&self) -> u64 {
        self.busy / u64::from(self.cores.max(1))
    }

    /// The load with so much more, or less, on it.
    pub(super) fn shifted(self, cpu: i64, activations: i64) -> Self {
        let busy = self.busy.saturating_add_signed(cpu);
        Self { busy, activations: self.activations.saturating_add_signed(activations), ..self }
    }
}

impl Actor {
    /// Its messages with actors of `node`, as an actor of `me`.
    fn flow_with(&mut self, me: NodeId, node: NodeId) -> &mut u32 {
        if node == me {
            return &mut self.here;
        }
        let place = self.toward.iter().position(|(at, _)| *at == node).unwrap_or_else(|| {
            self.toward.push((node, 0));
            self.toward.len() - 1
        });
        &mut self.toward[place].1
    }

    /// What its move to `node` takes off the flow between nodes, as far as the two are concerned.
    pub(super) fn score(&self, node: NodeId) -> i64 {
        let there = self.toward.iter().find(|(at, _)| *at == node).map_or(0, |(_, flow)| *flow);
        i64::from(there) - i64::from(self.here)
    }
}
