//! The directory's part in a multi-cluster: the machines that ask other clusters are beside the ranges that they are for,
//! so that what they allow and what is granted is one step.

use std::sync::Arc;

use greenroom_protocols::directory::{Epoch, RangeId, Resolution};
use greenroom_protocols::gsi::{self, ClusterId};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::{Directory, Entry, RangeHere};
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::cluster::Order;
use crate::geo::{Effect, Event, Geo, GeoRange, Message, Operation, Presence, Standings};
use crate::shard::raw::RawParcel;

/// What becomes of a letter.
pub(crate) enum Passing {
    /// It was taken in, or nobody is known to want it.
    Done,
    /// That node owns the range.
    On(NodeId, Message),
}

impl Directory {
    /// Takes in a call whose actor other clusters must be asked for.
    pub(crate) fn call_abroad(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        key: &Entry,
        call: gsi::Call<Operation>,
        parcel: RawParcel,
    ) {
        let mut range = self.range(key.hash);
        let tenure = range.machine.tenure();
        let absent = range.presence(now, key) == Presence::Absent;
        let (Some(tenure), true, false) = (tenure, absent, range.may_begin(key)) else {
            // The range has another owner by now, or the actor is here: it looks again.
            drop(range);
            return geo.deliver(parcel);
        };
        let mut effects = Vec::new();
        range.geo.get_or_insert_default().call(geo, now, tenure, key, (call, parcel), &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
    }

    /// Takes in what another cluster says of an actor.
    pub(crate) fn letter(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        key: &Entry,
        from: ClusterId,
        message: Message,
    ) -> Passing {
        let mut range = self.range(key.hash);
        let Some(tenure) = range.machine.tenure() else {
            return match range.machine.owner() {
                Some(owner) if owner != self.me => Passing::On(owner, message),
                _ => Passing::Done,
            };
        };
        let presence = range.presence(now, key);
        let mut effects = Vec::new();
        let machines = range.geo.get_or_insert_default();
        machines.received(geo, now, (tenure, presence), key, (from, message), &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
        Passing::Done
    }

    /// Tells all machines something.
    pub(crate) fn all_abroad(&self, geo: &Arc<Geo>, now: Timestamp, event: impl Fn() -> Event) {
        self.each_abroad(geo, now, |machines, _| machines.all(geo, now, &event));
    }

    /// Tells all machines that a cluster does not answer.
    pub(crate) fn lost_cluster(&self, geo: &Arc<Geo>, now: Timestamp, cluster: ClusterId) {
        self.all_abroad(geo, now, || Event::Lost(cluster));
    }

    /// Lets machines go on that are due.
    pub(crate) fn tick_abroad(&self, geo: &Arc<Geo>, now: Timestamp) {
        self.each_abroad(geo, now, |machines, presence| machines.tick(geo, now, presence));
    }

    /// When [`Directory::tick_abroad`] is next wanted.
    pub(crate) fn deadline_abroad(&self) -> Option<Timestamp> {
        let due = |range: usize| self.at(range).geo.as_ref().and_then(|machines| machines.deadline());
        (0..self.ranges.len()).filter_map(due).min()
    }

    /// Whether no actor of this node's ranges has an instance or waits for one.
    pub(crate) fn is_empty_abroad(&self) -> bool {
        (0..self.ranges.len()).all(|range| self.at(range).geo.as_ref().is_none_or(|machines| machines.is_empty()))
    }

    /// Counts the actors of this node's ranges by where they stand.
    pub(crate) fn count_abroad(&self, counts: &mut Standings) {
        for range in 0..self.ranges.len() {
            if let Some(machines) = &self.at(range).geo {
                machines.count(counts);
            }
        }
    }

    /// Whether the activation of this epoch here may not be the only one over all clusters.
    pub(crate) fn is_doubtful(&self, id: &ActorId, epoch: Epoch) -> bool {
        let key = Entry::new(id.clone());
        let range = self.range(key.hash);
        range.active.get(&key).is_some_and(|active| active.epoch == epoch && active.doubtful)
    }

    /// The activations here of these ranges that may not be the only ones over all clusters.
    pub(crate) fn doubtful(&self, ranges: impl Iterator<Item = RangeId>) -> Vec<Entry> {
        if self.geo.is_none() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for range in ranges {
            let here = self.at(range.0.into());
            all.extend(here.active.iter().filter(|(_, active)| active.doubtful).map(|(key, _)| key.clone()));
        }
        all
    }

    /// Takes in which of the reported activations of hosts may not be the only ones.
    pub(crate) fn reported_doubtful(&self, now: Timestamp, keys: Vec<Entry>) {
        let Some(geo) = &self.geo else { return };
        for key in keys {
            let mut range = self.range(key.hash);
            range.geo.get_or_insert_default().reported([key]);
            range.look_for_doubtful(geo, now);
        }
    }

    /// Takes in that an activation here is the only one over all clusters.
    pub(crate) fn owned(&self, key: &Entry, epoch: Epoch) {
        let mut range = self.range(key.hash);
        match range.active.get_mut(key) {
            Some(active) if active.epoch == epoch => active.doubtful = false,
            Some(_) => {}
            None => {
                // The word was faster than the call that begins it.
                if range.owned_early.len() == super::GONE_MAX {
                    range.owned_early.pop_front();
                }
                range.owned_early.push_back((key.clone(), epoch));
            }
        }
    }

    /// Tells a host to which an actor was granted that it is the only one, if it is.
    pub(super) fn tell_owned(&self, range: &RangeHere, key: &Entry, node: NodeId, epoch: Epoch) {
        if let Some(geo) = &self.geo
            && node != self.me
            && range.geo.as_ref().is_some_and(|machines| machines.owns(key))
        {
            geo.order(Order::Owned { to: node, key: key.clone(), epoch });
        }
    }

    /// Takes in that an activation has ended, as the owner of its range.
    pub(super) fn gone_abroad(&self, now: Timestamp, range: &mut RangeHere, key: &Entry) {
        let Some(geo) = self.geo.as_ref().filter(|_| range.geo.is_some()) else { return };
        if range.presence(now, key) == Presence::Absent {
            let mut effects = Vec::new();
            if let Some(machines) = &mut range.geo {
                machines.gone(geo, now, key, &mut effects);
            }
            self.take_effect(geo, now, range, key, effects);
        }
    }

    /// Takes in that a view has changed who owns the range, or may have.
    pub(super) fn viewed_abroad(&self, now: Timestamp, range: &mut RangeHere, before: Option<u64>) {
        let Some(geo) = &self.geo else { return };
        let tenure = range.machine.tenure();
        if tenure != before {
            if let Some(machines) = &mut range.geo {
                machines.forget(geo);
            }
            if tenure.is_some() {
                let own: Vec<Entry> =
                    range.active.iter().filter(|(_, active)| active.doubtful).map(|(key, _)| key.clone()).collect();
                range.geo.get_or_insert_default().reported(own);
            }
        }
        range.look_for_doubtful(geo, now);
    }

    fn at(&self, range: usize) -> std::sync::MutexGuard<'_, RangeHere> {
        self.ranges[range].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn each_abroad(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        mut each: impl FnMut(&mut GeoRange, &dyn Fn(&Entry) -> Presence) -> Vec<(Entry, Vec<Effect>)>,
    ) {
        for index in 0..self.ranges.len() {
            let mut range = self.at(index);
            let RangeHere { machine, geo: machines, .. } = &mut *range;
            let Some(machines) = machines else { continue };
            let all = each(machines, &|key: &Entry| presence(&machine.resolve(now, key)));
            for (key, effects) in all {
                self.take_effect(geo, now, &mut range, &key, effects);
            }
        }
    }

    /// Does what a machine wants of the directory.
    fn take_effect(&self, geo: &Arc<Geo>, now: Timestamp, range: &mut RangeHere, key: &Entry, effects: Vec<Effect>) {
        let mut effects = std::collections::VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match (range.machine.resolve(now, key), effect) {
                (Resolution::At(grant), Effect::Owned) if grant.placed.node == self.me => {
                    if let Some(active) = range.active.get_mut(key) {
                        active.doubtful = false;
                    }
                }
                (Resolution::At(grant), Effect::Owned) => {
                    geo.order(Order::Owned { to: grant.placed.node, key: key.clone(), epoch: grant.placed.epoch });
                }
                (Resolution::At(grant), Effect::End { leaving }) => {
                    let why = if leaving { Why::Leaving } else { Why::Duplicate };
                    geo.order(Order::End { to: grant.placed.node, key: key.clone(), epoch: grant.placed.epoch, why });
                }
                (Resolution::Absent, Effect::End { .. }) => {
                    let mut more = Vec::new();
                    if let Some(machines) = &mut range.geo {
                        machines.gone(geo, now, key, &mut more);
                    }
                    effects.extend(more);
                }
                _ => {}
            }
        }
        geo.look_at(range.geo.as_ref().and_then(|machines| machines.deadline()));
    }
}

impl RangeHere {
    fn presence(&self, now: Timestamp, key: &Entry) -> Presence {
        presence(&self.machine.resolve(now, key))
    }

    /// Whether an instance of a single actor may be activated in this cluster.
    pub(super) fn may_begin(&self, key: &Entry) -> bool {
        self.geo.as_ref().is_some_and(|machines| machines.may_begin(key))
    }

    /// Whether an activation that begins here may not be the only one over all clusters.
    pub(super) fn begins_doubtful(&mut self, geo: Option<&Arc<Geo>>, key: &Entry, epoch: Epoch) -> bool {
        let single = geo.is_some_and(|geo| geo.is_single(key.id().kind));
        let told = self.owned_early.iter().position(|(early, at)| early == key && *at == epoch);
        if let Some(told) = told {
            self.owned_early.remove(told);
        }
        single && told.is_none() && !self.geo.as_ref().is_some_and(|machines| machines.owns(key))
    }

    fn look_for_doubtful(&mut self, geo: &Arc<Geo>, now: Timestamp) {
        let Self { machine, geo: machines, .. } = self;
        if let (Some(machines), Some(tenure)) = (machines, machine.tenure()) {
            machines.look_for_doubtful(geo, now, tenure, |key| presence(&machine.resolve(now, key)));
            geo.look_at(machines.deadline());
        }
    }
}

fn presence(resolution: &Resolution) -> Presence {
    match resolution {
        Resolution::At(_) => Presence::At,
        Resolution::Absent => Presence::Absent,
        Resolution::Wait { .. } | Resolution::NotOwner(_) => Presence::Unknown,
    }
}
