//! What nodes tell each other of activations that move.

use greenroom_protocols::directory::{Decision, Move, Placed, Resolution};
use greenroom_protocols::node::NodeId;

use super::Driver;
use crate::cluster::control::ControlMessage;
use crate::cluster::directory::{Entry, MoveWord};

impl Driver {
    /// This node has the state of an actor on the move: asks its owner for it.
    pub(super) fn claim(&self, wish: Move<Entry>) {
        let now = self.node.world().now();
        let Some(directory) = self.node.directory() else { return };
        match directory.decide(now, &wish) {
            (Decision::NotOwner(Some(owner)), _) => self.send(owner, &ControlMessage::Claim { wish }),
            (decision, view) => {
                let word = MoveWord::of(decision, wish.to, view);
                self.decided(wish, word);
            }
        }
    }

    /// Another node asks for an actor.
    pub(super) fn claimed(&self, from: NodeId, wish: Move<Entry>) {
        let Some(directory) = self.node.directory().filter(|_| wish.to == from) else { return };
        // It asks again while nobody knows.
        let (decision, view) = directory.decide(self.node.world().now(), &wish);
        if matches!(decision, Decision::Granted(_) | Decision::Void) {
            self.send(from, &ControlMessage::Decided { wish, decision, view });
        }
    }

    pub(super) fn decided(&self, wish: Move<Entry>, word: MoveWord) {
        let shard = self.node.directory().and_then(|directory| directory.waits_for_move(&wish));
        self.on_shard(shard, move |shard| shard.decided(&wish, word));
    }

    /// The target has the actor. It would not say so had it not been granted it.
    pub(super) fn took(&self, from: NodeId, wish: Move<Entry>) {
        if wish.to == from {
            self.decided(wish, MoveWord::Superseded { host: Some(from) });
        }
    }

    /// The target does not take the actor.
    pub(super) fn declined(&self, wish: Move<Entry>) {
        let shard = self.node.directory().and_then(|directory| directory.waits_for_move(&wish));
        self.on_shard(shard, move |shard| shard.declined(&wish));
    }

    /// A move to this node is over: tells the owner.
    pub(super) fn settle(&self, key: Entry, placed: Placed) {
        let owner = self.node.directory().and_then(|directory| directory.settled(&key, placed));
        if let Some(owner) = owner {
            self.send(owner, &ControlMessage::Settled { key, placed });
        }
    }

    /// A move that this node granted is over.
    pub(super) fn settled(&self, from: NodeId, key: &Entry, placed: Placed) {
        if let Some(directory) = self.node.directory().filter(|_| placed.node == from) {
            directory.settled(key, placed);
        }
    }

    /// Lets an actor go to `to`: here, or where its owner says that it is.
    pub(super) fn migrate(&self, key: Entry, to: NodeId, hops: u8) {
        let Some(directory) = self.node.directory().filter(|_| hops < MIGRATE_HOPS_MAX) else { return };
        if let Some((shard, slot)) = directory.slot_of(&key) {
            return self.on_shard(Some(shard), move |shard| shard.migrate_slot(slot, to));
        }
        let next = match directory.resolve(self.node.world().now(), &key) {
            Resolution::At(grant) => Some(grant.placed.node),
            Resolution::NotOwner(owner) => owner,
            Resolution::Absent | Resolution::Wait { .. } => None,
        };
        if let Some(next) = next.filter(|next| !self.is_me(*next)) {
            self.send(next, &ControlMessage::Migrate { key, to, hops: hops + 1 });
        }
    }
}

/// Nodes that pass on that an actor is to move.
const MIGRATE_HOPS_MAX: u8 = 4;
