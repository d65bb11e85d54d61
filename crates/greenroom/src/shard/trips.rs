//! Activations that leave for another node: where each is to go at its next turn boundary, and what it carries.
//!
//! One that leaves ends at a turn boundary with the hook `migrating`. What that gives a part of the shard sends on its way, and agrees
//! with the other nodes on whose the actor is from then on.

mod departure;
mod trip;

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::Offer;

pub(crate) use self::departure::Departed;
pub(crate) use self::trip::{Told, Trip, TripEnd};
use super::activation::AnyActivation;
use super::{Shard, Slot};
use crate::actor::interface::{Travels, Why};
use crate::actor::key::{ActorId, Kind};
use crate::actor::migration::Unmoved;
use crate::pids::key::is_reserved;

/// The activations of one shard that are to leave.
#[derive(Default)]
pub(super) struct Trips {
    /// Where activations are to go at their next turn boundary.
    wanted: BTreeMap<ActorId, Trip>,
    /// What ended activations carry that have not set out yet.
    packed: BTreeMap<ActorId, (Trip, Bytes)>,
}

impl Shard {
    /// Lets an activation go to the node `to` at its next turn boundary.
    pub(crate) fn migrate(&self, activation: &Rc<dyn AnyActivation>, to: NodeId) -> Result<(), Unmoved> {
        self.send_off(activation, Trip::to(to))
    }

    fn send_off(&self, activation: &Rc<dyn AnyActivation>, trip: Trip) -> Result<(), Unmoved> {
        let (node, id, to) = (&self.port.node, activation.id(), trip.to);
        if is_reserved(&id.key) {
            return Err(Unmoved::Spawned { actor: id.to_string() });
        }
        let kind = || id.kind.name().to_owned();
        if node.kinds().workers(id.kind) > 0 {
            return Err(Unmoved::Worker { kind: kind() });
        }
        if node.kinds().travels(id.kind) == Travels::Not {
            return Err(Unmoved::NotCarried { kind: kind() });
        }
        let view = node.view();
        let name = || view.member(to).map_or_else(|| to.to_string(), |member| member.name.clone());
        let Some(there) = view.hosts(id.kind).and_then(|hosts| hosts.offer_of(to)) else {
            return Err(Unmoved::NotHosted { node: name(), kind: kind() });
        };
        if let Some(here) = self.is_older(id.kind, there) {
            return Err(Unmoved::Older { node: name(), kind: kind(), version: there.version, here });
        }
        if to != node.me() {
            // Who wished for something else is told that it did not come to that, when nothing is borrowed.
            let before = self.trips.borrow_mut().wanted.insert(id.clone(), trip);
            drop(before);
            activation.clone().end(self, Why::Migrating);
        }
        Ok(())
    }

    /// The version of a kind in hosts here, if an actor would go back to an older one where that is `there`: those that are compiled in say
    /// themselves whether they can read what comes.
    fn is_older(&self, kind: Kind, there: Offer) -> Option<u16> {
        let here = self.port.node.kinds().foreign(kind)?.said().offer.version;
        (there.version < here).then_some(here)
    }

    /// As [`Shard::migrate`], for the activation in `slot`.
    pub(crate) fn migrate_slot(&self, slot: Slot, to: NodeId) {
        let Some(activation) = self.activation(slot) else {
            return self.follow_slot(slot, move |shard, slot| shard.migrate_slot(slot, to));
        };
        if let Err(unmoved) = self.migrate(&activation, to) {
            tracing::warn!(actor = %activation.id(), %unmoved, "an activation stays where it is");
        }
    }

    /// The same for what nobody has asked for: if nothing holds it here.
    pub(crate) fn migrate_freely(&self, slot: Slot, trip: Trip) {
        if let Some(activation) = self.activation(slot)
            && self.held_here(slot).is_none()
            && let Err(unmoved) = self.send_off(&activation, trip)
        {
            tracing::debug!(actor = %activation.id(), %unmoved, "an activation stays where it is");
        }
    }

    /// What an activation has on its node that does not travel, if there is anything.
    pub(crate) fn held_here(&self, slot: Slot) -> Option<&'static str> {
        let kept_until = self.activation(slot)?.kept_until();
        (kept_until > self.now()).then_some("it has asked to be kept alive").or_else(|| self.tied_here(slot))
    }

    /// The node that an activation goes to as this one leaves, if it carries what it holds.
    pub(super) fn destination(&self, id: &ActorId) -> Option<NodeId> {
        let node = &self.port.node;
        if node.kinds().travels(id.kind) != Travels::Carrying {
            return None;
        }
        let view = node.view();
        let hosts = view.hosts(id.kind)?;
        let may = |other: &NodeId| {
            let is_older = || hosts.offer_of(*other).and_then(|there| self.is_older(id.kind, there)).is_some();
            *other != node.me() && !self.has_departed(*other) && !is_older()
        };
        let others: Vec<NodeId> = hosts.nodes.iter().copied().filter(may).collect();
        self.whither(id, &others).or_else(|| {
            let chosen = (node.world().random() % others.len().max(1) as u64) as usize;
            others.get(chosen).copied()
        })
    }

    /// Has a part send what an ended activation carries on its way.
    fn send_on_trip(&self, departed: Departed) {
        self.note_carried(&departed.id, departed.state.len());
        self.parts.iter().try_fold(departed, |departed, part| part.departs(self, departed));
    }

    /// What the ended activation of `id` carries, and where to, if it is on the move.
    pub(super) fn take_packed(&self, id: &ActorId) -> Option<(Trip, Bytes)> {
        // It ends, whatever was wished for it.
        let wanted = self.trips.borrow_mut().wanted.remove(id);
        drop(wanted);
        self.trips.borrow_mut().packed.remove(id)
    }
}

/// Longest state that travels, in bytes. An actor that carries more stays where it is.
pub(crate) const STATE_LEN_MAX: usize = 4 << 20;
