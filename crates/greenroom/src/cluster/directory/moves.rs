//! Moves, as the directory of one node sees them.

use greenroom_protocols::directory::{Acceptance, Decision, Epoch, Grant, Move, Placed};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::{Active, Directory, Entry};
use crate::actor::key::ActorId;
use crate::cluster::Order;
use crate::here::Here;
use crate::shard::ShardId;

/// A word on a move whose state is on this node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MoveWord {
    /// The owner grants the actor to this node.
    Granted(Grant),
    /// The owner says, in this version of its view, that the state is void.
    Refused { by: NodeId, view: u64 },
    /// The actor is active elsewhere: on `host`, where that is known.
    Superseded { host: Option<NodeId> },
    /// Not known yet.
    Undecided,
}

impl MoveWord {
    /// Returns what `by` has decided in this version of its view. Nodes of the previous build do not say the version: 0.
    pub(crate) fn of(decision: Decision, by: NodeId, view: u64) -> Self {
        match decision {
            Decision::Granted(grant) => Self::Granted(grant),
            Decision::Void if view == 0 => Self::Superseded { host: None },
            Decision::Void => Self::Refused { by, view },
            Decision::Wait | Decision::NotOwner(_) => Self::Undecided,
        }
    }
}

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

    /// Notes that the state of the activation `from` has come to `shard`: it is reported until its actor is decided. Returns the range's
    /// floor, or `None` if the actor is here already.
    pub(crate) fn carry(&self, id: &ActorId, shard: ShardId, from: Placed) -> Option<Epoch> {
        let entry = Entry::new(id.clone());
        let mut range = self.range(entry.word);
        let free = !range.active.contains_key(&entry) && range.carried.get(&entry).is_none_or(|(at, _)| *at == shard);
        if free {
            range.carried.insert(entry, (shard, from));
        }
        free.then(|| range.machine.floor())
    }

    /// The shard that waits for the decision of `wish`.
    pub(crate) fn waits_for_move(&self, wish: &Move<Entry>) -> Option<ShardId> {
        let range = self.range(wish.key.word);
        let leaves = range.active.get(&wish.key).filter(|active| active.is_moving() && active.epoch == wish.from.epoch);
        leaves.map(Active::shard).or_else(|| range.carried.get(&wish.key).map(|(shard, _)| *shard))
    }

    /// Decides a move, as the owner of its range. Returns the version of the view too.
    pub(crate) fn decide(&self, now: Timestamp, wish: &Move<Entry>) -> (Decision, u64) {
        let mut range = self.range(wish.key.word);
        let decision = range.machine.decide(now, wish);
        if let Decision::Granted(grant) = &decision {
            range.memory.note(wish.key.hash(), grant.placed.node, now);
            self.note_granted(now, &mut range, &wish.key, (grant.placed.node, grant.placed.epoch));
        }
        (decision, range.machine.version())
    }

    /// Takes in that a move is over, as the owner of its range; the owner, if that is another node.
    pub(crate) fn settled(&self, key: &Entry, placed: Placed) -> Option<NodeId> {
        let mut range = self.range(key.word);
        range.machine.settled(key, placed);
        range.machine.owner().filter(|owner| *owner != self.me)
    }

    /// Takes in the word on a move whose state is on `shard` of this node, since `since` was the range's floor.
    pub(crate) fn end_move(
        &self,
        node: &Here,
        wish: &Move<Entry>,
        word: MoveWord,
        (shard, since): (ShardId, Epoch),
    ) -> MoveEnd {
        let mut range = self.range(wish.key.word);
        match word {
            MoveWord::Granted(grant) => match range.machine.accept_held(since, &grant) {
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
            MoveWord::Refused { by, view } if !range.machine.heeds(by, view) => {
                if view > range.machine.version() {
                    node.order(Order::Refresh(view));
                }
                return MoveEnd::Again;
            }
            MoveWord::Refused { .. } | MoveWord::Superseded { .. } => {}
            MoveWord::Undecided => return MoveEnd::Again,
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
