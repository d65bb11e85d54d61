//! Moves, as the directory of one node sees them.

use greenroom_protocols::directory::{Acceptance, Decision, Epoch, Move, Placed};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::{Active, Directory, Entry};
use crate::actor::key::ActorId;
use crate::cluster::Order;
use crate::here::Here;
use crate::shard::ShardId;

/// How a move has ended on this node.
pub(crate) enum MoveEnd {
    /// The actor is to be activated here under this epoch, with the state that is here.
    Here(Epoch),
    /// It is elsewhere: the state is void.
    Elsewhere,
    /// It has not: ask again.
    Again,
}

impl Directory {
    /// Notes that an activation has ended and its state is on its way: it stays reported until that is decided. The range's floor.
    pub(crate) fn depart(&self, id: &ActorId, epoch: Epoch) -> Epoch {
        let entry = Entry::new(id.clone());
        let mut range = self.range(entry.word);
        if let Some(active) = range.active.get_mut(&entry).filter(|active| active.epoch == epoch) {
            active.depart();
            range.passing.remove(&entry);
        }
        range.machine.floor()
    }

    /// Notes that a state has come to `shard`; the range's floor, or `None` if the actor is here already.
    pub(crate) fn carry(&self, id: &ActorId, shard: ShardId) -> Option<Epoch> {
        let entry = Entry::new(id.clone());
        let mut range = self.range(entry.word);
        let free = !range.active.contains_key(&entry) && range.carried.get(&entry).is_none_or(|at| *at == shard);
        if free {
            range.carried.insert(entry, shard);
        }
        free.then(|| range.machine.floor())
    }

    /// The shard that waits for the decision of `wish`.
    pub(crate) fn waits_for_move(&self, wish: &Move<Entry>) -> Option<ShardId> {
        let range = self.range(wish.key.word);
        let leaves = range.active.get(&wish.key).filter(|active| active.is_moving() && active.epoch == wish.from.epoch);
        leaves.map(Active::shard).or_else(|| range.carried.get(&wish.key).copied())
    }

    /// Decides a move, as the owner of its range.
    pub(crate) fn decide(&self, now: Timestamp, wish: &Move<Entry>) -> Decision {
        let mut range = self.range(wish.key.word);
        let decision = range.machine.decide(now, wish);
        if let Decision::Granted(grant) = &decision {
            range.memory.note(wish.key.hash(), grant.placed.node, now);
            self.note_granted(now, &mut range, &wish.key, (grant.placed.node, grant.placed.epoch));
        }
        decision
    }

    /// Takes in that a move is over, as the owner of its range; the owner, if that is another node.
    pub(crate) fn settled(&self, key: &Entry, placed: Placed) -> Option<NodeId> {
        let mut range = self.range(key.word);
        range.machine.settled(key, placed);
        range.machine.owner().filter(|owner| *owner != self.me)
    }

    /// Takes in the decision of a move whose state is on `shard` of this node, since `since` was the range's floor.
    pub(crate) fn end_move(
        &self,
        node: &Here,
        wish: &Move<Entry>,
        decision: &Decision,
        (shard, since): (ShardId, Epoch),
    ) -> MoveEnd {
        let mut range = self.range(wish.key.word);
        match decision {
            Decision::Granted(grant) => match range.machine.accept_held(since, grant) {
                Acceptance::Accepted => {
                    range.carried.remove(&wish.key);
                    let epoch = grant.placed.epoch;
                    let border = self.border();
                    let doubtful = border.is_some_and(|border| border.begins_doubtful(&mut range, &wish.key, epoch));
                    range.active.insert(wish.key.clone(), Active::new(epoch, shard, doubtful));
                    return MoveEnd::Here(epoch);
                }
                Acceptance::Behind { view } => {
                    node.order(Order::Refresh(view));
                    return MoveEnd::Again;
                }
                Acceptance::NotOwner { .. } => return MoveEnd::Again,
                Acceptance::Stale | Acceptance::NotMe => {}
            },
            Decision::Void => {}
            Decision::Wait | Decision::NotOwner(_) => return MoveEnd::Again,
        }
        range.carried.remove(&wish.key);
        if range.active.get(&wish.key).is_some_and(|active| active.is_moving() && active.epoch == wish.from.epoch) {
            range.active.remove(&wish.key);
            // Whoever decided knows: no late grant of this activation begins it again.
            range.machine.release(wish.key.clone(), wish.from.epoch);
        }
        MoveEnd::Elsewhere
    }
}
