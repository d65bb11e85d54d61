//! The directory's part in adaptive actors: what is decided and switched is beside the ranges that it is for.

use std::sync::Arc;

use greenroom_protocols::adaptive::{self, Epoch, Known};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::presence;
use crate::cluster::directory::{Directory, Entry, RangeHere};
use crate::geo::{Deed, Geo, GeoRange};

/// Who owns an actor's range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tenant {
    /// This node.
    Here,
    /// That node.
    There(NodeId),
    /// Nobody is known to.
    Unknown,
}

impl Directory {
    /// Who owns the range of `key`.
    pub(crate) fn tenant(&self, key: &Entry) -> Tenant {
        let range = self.range(key.hash());
        match (range.machine.tenure(), range.machine.owner()) {
            (Some(_), _) => Tenant::Here,
            (None, Some(owner)) if owner != self.me() => Tenant::There(owner),
            _ => Tenant::Unknown,
        }
    }

    /// Takes in a mode; whether it is new here, and its epoch if this node's cluster is to be the home and is ready.
    pub(crate) fn adapt(&self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, known: &Known) -> (bool, Option<Epoch>) {
        let mut range = self.range(key.hash());
        let before = geo.modes().known(key).epoch;
        if known.epoch < before {
            return (false, None);
        }
        // Under the lock: no call of this range goes by the new mode before the switch has begun.
        let fresh = geo.modes().learn(now, key, known);
        let Some(tenure) = range.machine.tenure() else { return (fresh, None) };
        let (presence, mut effects) = (range.presence(now, key), Vec::new());
        let machines = range.machines();
        let ready = machines.adapt(geo, now, (tenure, presence), key, (known, fresh), &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
        (fresh, ready)
    }

    /// Takes in that the instance of an actor in the cluster `from` is refreshed.
    pub(crate) fn refreshed(&self, geo: &Geo, now: Timestamp, key: &Entry, from: ClusterId, request: u64) {
        if let Some(machines) = self.range(key.hash()).beyond.get_mut::<GeoRange>() {
            machines.refreshed(now, key, from, request);
            geo.look_at(machines.deadline());
        }
    }

    /// Tells who decides for an actor what has happened, as the owner of its range.
    pub(crate) fn tell_decider(
        &self,
        geo: &Geo,
        now: Timestamp,
        (key, near): (&Entry, Option<ClusterId>),
        event: adaptive::Event,
    ) -> Vec<Deed> {
        let mut range = self.range(key.hash());
        let machines = range.machines();
        let deeds = machines.decide(geo, now, (key, near), event);
        geo.look_at(machines.deadline());
        deeds
    }

    /// Lets deciders and switches go on.
    pub(crate) fn tick_adaptive(&self, geo: &Arc<Geo>, now: Timestamp) -> Vec<(Entry, Deed)> {
        let mut deeds = Vec::new();
        for mut range in self.every() {
            let RangeHere { machine, beyond, .. } = &mut *range;
            let Some(machines) = beyond.get_mut::<GeoRange>() else { continue };
            let mut effects = Vec::new();
            let at = |key: &Entry| presence(&machine.resolve(now, key));
            deeds.extend(machines.tick_adaptive(geo, now, at, &mut effects));
            for (key, effects) in effects {
                self.take_effect(geo, now, &mut range, &key, effects);
            }
        }
        deeds
    }
}
