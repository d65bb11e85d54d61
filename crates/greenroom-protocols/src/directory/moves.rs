//! Moves: an actor goes from one host to another with its state.
//!
//! The source ends the activation at a turn boundary, keeps what it was, as bytes, and sends the target a copy. From then on
//! nobody runs the actor until the owner of its range has decided: both who hold the bytes may ask for it, the target to
//! have it, the source to have it back, and the owner gives it to the first one by compare-and-swap on the epoch, under
//! a new one. The other's bytes are void. So a crash of either side, or of the owner, at any step leaves one activation
//! or none, and never two.
//!
//! A new host that dies, or deactivates the actor, before the source has heard of it may be followed, if the range changes
//! hands as well, by the actor as it was when it left the source: its volatile state falls back, as after a death.
//!
//! Until it is decided, the source goes on reporting the activation as its own. An owner that recovers decides nothing: what it has
//! not heard of yet may be a later activation. What it granted by a move, it grants again to who asks again, until the
//! new host has said that it is there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::owner::Owner;
use super::{Epoch, Grant, Placed};
use crate::node::NodeId;
use crate::time::Timestamp;

/// Somebody holds what the activation `from` was, and asks to activate the actor with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Move<K> {
    /// The actor.
    pub key: K,
    /// The activation that has ended.
    pub from: Placed,
    /// Who asks: another node, or the same one that wants it back.
    pub to: NodeId,
}

/// The owner's word on a [`Move`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Decision {
    /// The actor is the asker's: it activates it with what it holds, once it [accepts](super::Range::accept) the grant.
    Granted(Grant),
    /// That activation is not the actor's last one any more: what the asker holds is void, if the asker still
    /// [heeds](super::Range::heeds) the owner.
    Void,
    /// Not known yet: ask again.
    Wait,
    /// This node does not own the range; that one does, as far as it knows.
    NotOwner(Option<NodeId>),
}

/// The entries that came about by a move and whose hosts have not said so yet: the epochs that they were moved from.
pub(super) type Moved<K> = BTreeMap<K, Epoch>;

impl<K: Ord + Clone> Owner<K> {
    /// Decides a move, as of `now`.
    pub fn decide(&mut self, now: Timestamp, wish: &Move<K>) -> Decision {
        let Some(view) = self.view.clone().filter(|_| self.tenure.owner == Some(self.me)) else {
            return Decision::NotOwner(self.tenure.owner);
        };
        if self.recovers(now, &view) && self.checks.move_wait {
            return Decision::Wait;
        }
        // A host of a state that its source has dropped, on the word of a former owner, may have the actor as the source might.
        let in_transit = self.in_transit.get(&wish.key).filter(|state| state.by == wish.to).map(|state| state.from);
        let Some(entry) = self.entries.get(&wish.key).copied().or(in_transit) else { return Decision::Void };
        if entry.node == wish.to && self.moved.get(&wish.key) == Some(&wish.from.epoch) {
            return Decision::Granted(self.seal(entry));
        }
        if entry != wish.from && self.checks.exact_move {
            return Decision::Void;
        }
        if !view.is_active(wish.to) {
            // Our view may be behind the asker's.
            return Decision::Wait;
        }
        let placed = Placed { node: wish.to, epoch: self.next_epoch() };
        self.in_transit.remove(&wish.key);
        self.entries.insert(wish.key.clone(), placed);
        self.moved.insert(wish.key.clone(), wish.from.epoch);
        Decision::Granted(self.seal(placed))
    }

    /// The host of `placed` has activated the actor that it was granted by a move.
    pub fn settled(&mut self, key: &K, placed: Placed) {
        if self.entries.get(key) == Some(&placed) {
            self.moved.remove(key);
        }
    }
}
