//! The way of a message to an actor that the directory knows, or whose activations are stateless workers.

use greenroom_protocols::courses::Next;
use greenroom_protocols::directory::Epoch;
use greenroom_protocols::node::NodeId;

use super::directory::Directory;
use super::part::InCluster;
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::here::location::{Asker, Location, Passage};
use crate::shard::raw::Journey;
use crate::shard::routes::Marked;
use crate::shard::seed::Seed;
use crate::shard::underway::{Underway, Way};
use crate::shard::{AnyParcel, Shard, ShardId, Slot};

impl Way for InCluster {
    /// The directory knows all actors that no other part does.
    fn takes(&self, _: &Here, _: &dyn Underway) -> bool {
        true
    }

    fn send(&self, shard: &Shard, message: &mut dyn Underway) -> Result<(), Refusal> {
        let (node, id) = (&shard.port().node, message.id().clone());
        if node.kinds().workers(id.kind) > 0 {
            return send_to_worker(shard, &id, message);
        }
        let (hash, journey) = (message.hash(), message.journey(node));
        let ours = journey.from == node.me();
        if ours && shard.keeps_to_round(hash) {
            match shard.next_course(hash) {
                Next::Held => {
                    if let Some(parcel) = message.sealed(shard) {
                        shard.hold_back(parcel);
                    }
                    return Ok(());
                }
                Next::Round(by) => return message.send_to(shard, by, None),
                Next::Straight(_) | Next::Asks | Next::Unknown => {}
            }
        }
        match self.location(shard, &id, message)? {
            Location::Here { shard: at, slot, epoch } if at == shard.id() => {
                let activation = match slot {
                    Some(slot) => shard.activation(slot).ok_or(Refusal::Moved)?,
                    None => shard.activate(id, epoch, Seed::Fresh, message.callers())?,
                };
                message.found(shard, at, activation.slot());
                message.offer(shard, activation)?;
            }
            Location::Here { shard: at, slot, .. } => {
                if let Some(slot) = slot {
                    message.found(shard, at, slot);
                }
                shard.pass_on(message, at);
            }
            Location::There { node: to, grant } => {
                if journey.hops == 0 && !ours && !message.is_awaited() {
                    shard.lane_hint(journey.from, hash, to);
                }
                let to = match grant {
                    None if ours => course(shard, &id, to, message),
                    Some(_) if ours => {
                        shard.goes_straight(hash, to);
                        to
                    }
                    _ => to,
                };
                message.send_to(shard, to, grant)?;
            }
            Location::Moving { shard: at } if at == shard.id() => {
                if let Some(parcel) = message.sealed(shard) {
                    shard.hold_for_move(&id, parcel);
                }
            }
            Location::Moving { shard: at } => shard.pass_on(message, at),
            Location::Passing { to, passage } => shard.follow_over(message, to, passage)?,
            Location::Abroad => {
                let border = node.directory().and_then(Directory::border);
                match (message.written(shard)?, border) {
                    (Some(parcel), Some(border)) => border.call(shard, parcel),
                    (Some(parcel), None) => Box::new(parcel).refuse(Refusal::Recovering),
                    (None, _) => {}
                }
            }
            Location::Wait => {
                if let Some(parcel) = message.sealed(shard) {
                    shard.park(parcel);
                }
            }
        }
        Ok(())
    }

    fn pass(&self, id: &ActorId, epoch: Epoch, passage: Passage, to: ShardId) -> bool {
        self.directory.get().is_some_and(|directory| directory.pass(id, epoch, passage, to))
    }

    fn passed(&self, id: &ActorId, epoch: Epoch, passage: Passage, at: (ShardId, Slot)) {
        if let Some(directory) = self.directory.get() {
            directory.passed(id, epoch, passage, at);
        }
    }

    fn place(&self, id: &ActorId) -> Option<(ShardId, Option<Slot>)> {
        self.directory.get()?.place(id)
    }
}

impl InCluster {
    /// Where the directory says that a message must go.
    fn location(&self, shard: &Shard, id: &ActorId, message: &mut dyn Underway) -> Result<Location, Refusal> {
        let node = &shard.port().node;
        let (hash, Journey { origin, from, grant, .. }) = (message.hash(), message.journey(node));
        if shard.is_parked(hash) {
            if let (Some(grant), Some(directory)) = (grant, node.directory()) {
                directory.handed_back(shard.now(), id, hash, from, &grant);
            }
            return Ok(Location::Wait);
        }
        if from == node.me() && node.is_yet_to_come(id.kind) {
            return Ok(Location::Wait);
        }
        let outside = from == node.me() && !shard.in_turn();
        let asker = Asker { origin, from, near: shard.index(), outside, wanted: message.wanted() };
        Ok(shard.reachable(node.locate(id, hash, asker, grant)?))
    }
}

/// Where a message goes that `owner` would pass on.
fn course(shard: &Shard, id: &ActorId, owner: NodeId, message: &mut dyn Underway) -> NodeId {
    let hash = message.hash();
    match shard.next_course(hash) {
        Next::Straight(host) => host,
        _ => {
            shard.goes_round(hash, owner, Marked { id: id.clone(), version: message.wanted() });
            owner
        }
    }
}

fn send_to_worker(shard: &Shard, id: &ActorId, message: &mut dyn Underway) -> Result<(), Refusal> {
    if !shard.port().node.kinds().serves(id.kind, message.wanted()) {
        return shard.send_to_other_workers(message);
    }
    let worker = shard.worker(id, message.callers())?;
    message.offer(shard, worker)
}
