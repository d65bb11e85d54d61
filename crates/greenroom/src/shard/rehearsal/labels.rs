//! Where the actors of a stage sit: on *labels*, each of which stands for a node.

use super::{Party, mix};
use crate::actor::key::ActorId;

/// Where actors sit, and whom steps have touched.
#[derive(Default)]
pub(super) struct Labels {
    pub(super) nodes: u64,
    placement: u64,
    /// The actors that have moved, and where to.
    moved: Vec<(u64, u64)>,
    /// The actors that steps have touched, the last one last, with the steps.
    touched: Vec<(u64, u64)>,
}

impl Labels {
    /// So many nodes: which actor sits on which is another for each `placement`.
    pub(super) fn new(nodes: u64, placement: u64) -> Self {
        Self { nodes, placement, ..Self::default() }
    }

    /// The node of the actor with this hash.
    pub(super) fn of(&self, hash: u64) -> u64 {
        let moved = self.moved.iter().find(|(actor, _)| *actor == hash);
        moved.map_or_else(|| mix(self.placement, hash) % self.nodes.max(1), |(_, node)| *node)
    }

    /// Lets an actor sit on the node behind its own.
    pub(super) fn let_move(&mut self, hash: u64) {
        let node = (self.of(hash) + 1) % self.nodes.max(1);
        self.moved.retain(|(actor, _)| *actor != hash);
        self.moved.push((hash, node));
    }

    pub(super) fn touch(&mut self, actor: u64, step: u64) {
        if self.nodes > 0 {
            self.touched.retain(|(known, _)| *known != actor);
            self.touched.push((actor, step));
        }
    }

    pub(super) fn last_at(&self, actor: u64) -> u64 {
        self.touched.iter().find(|(known, _)| *known == actor).map_or(0, |(_, step)| *step)
    }

    /// The last step that has touched an actor of this node.
    pub(super) fn last_on(&self, node: u64) -> Option<u64> {
        self.touched.iter().rev().find(|(actor, _)| self.of(*actor) == node).map(|(_, step)| *step)
    }

    /// Whether a message between the two goes from one node to another: clients are on none.
    pub(super) fn are_apart(&self, one: &Party, other: &ActorId) -> bool {
        match one {
            Party::Actor(one) => self.of(one.stable_hash()) != self.of(other.stable_hash()),
            Party::Client(_) => true,
            Party::Runtime => false,
        }
    }
}

/// What a node is called: `a`, `b`, ..
pub(super) fn label(node: u64) -> String {
    char::from(b'a' + (node % 26) as u8).to_string()
}
