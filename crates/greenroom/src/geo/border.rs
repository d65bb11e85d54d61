//! The border of the directory, where other clusters begin: the machines that ask these are beside the ranges that they are for, so that
//! what they allow and what is granted is one step.

mod adaptive;

use std::sync::Arc;

use greenroom_protocols::adaptive::Mode;
use greenroom_protocols::directory::{Action, Epoch, Resolution};
use greenroom_protocols::gsi::{self, ClusterId};
use greenroom_protocols::node::{NodeId, View};
use greenroom_world::Timestamp;

use super::word::News;
use super::{Effect, Event, Geo, GeoRange, Message, Operation, Presence, Standings};
use crate::actor::interface::Why;
use crate::actor::key::Kind;
use crate::cluster::directory::{Border, Directory, Entry, RangeHere};
use crate::cluster::{ControlMessage, Order};
use crate::here::Here;
use crate::here::location::Asker;
use crate::shard::Shard;
use crate::shard::raw::RawParcel;

pub(crate) use self::adaptive::Tenant;

/// What becomes of a letter.
pub(crate) enum Passing {
    /// It was taken in, or nobody is known to want it.
    Done,
    /// That node owns the range.
    On(NodeId, Message),
}

impl Border for Arc<Geo> {
    fn is_single(&self, kind: Kind) -> bool {
        Geo::is_single(self, kind)
    }

    fn may_begin(&self, range: &RangeHere, key: &Entry) -> bool {
        range.may_begin_here(self, key)
    }

    fn call(&self, shard: &Shard, parcel: RawParcel) {
        shard.go_abroad(self, parcel);
    }

    fn early_host(&self, range: &RangeHere, now: Timestamp, key: &Entry, node: &Here, wanted: u16) -> Option<NodeId> {
        let host = range.beyond.get::<GeoRange>()?.early_host(now, key)?;
        node.view().hosts(key.kind())?.serving(wanted).contains(&host).then_some(host)
    }

    fn is_in_each(&self, key: &Entry) -> bool {
        self.mode(key) == Mode::PerCluster
    }

    fn reported(&self, directory: &Directory, now: Timestamp, keys: Vec<Entry>) {
        directory.reported_doubtful(self, now, keys);
    }

    fn told(&self, here: &Here, from: NodeId, news: News) {
        self.told_by_node(here, from, news);
    }

    fn read_early(&self, here: &Here, key: &Entry, token: u64) {
        Geo::read_early(self, here, &key.id(), token);
    }

    fn allow_early(&self, key: &Entry, token: u64, epoch: Epoch) {
        self.early().allow(&key.id(), token, epoch);
    }

    fn begins_doubtful(&self, range: &mut RangeHere, key: &Entry, epoch: Epoch) -> bool {
        let told = range.owned_early.iter().position(|(early, at)| early == key && *at == epoch);
        if let Some(told) = told {
            range.owned_early.remove(told);
        }
        Geo::is_single(self, key.kind()) && told.is_none() && !range.owns(key)
    }

    fn granted(
        &self,
        directory: &Directory,
        now: Timestamp,
        range: &mut RangeHere,
        key: &Entry,
        host: (NodeId, Epoch),
    ) {
        directory.tell_owned(self, now, range, key, host);
    }

    fn gone(&self, directory: &Directory, now: Timestamp, range: &mut RangeHere, key: &Entry) {
        directory.gone_abroad(self, now, range, key);
    }

    fn viewed(&self, directory: &Directory, now: Timestamp, range: &mut RangeHere, before: Option<u64>, view: &View) {
        directory.viewed_abroad(self, now, range, before, view);
    }

    fn recovered(&self, now: Timestamp, range: &mut RangeHere) {
        range.recovered_abroad(now);
    }

    fn acted(&self, now: Timestamp, range: &mut RangeHere, actions: &[Action<Entry>]) {
        // It knows all that its cluster has of it.
        if actions.contains(&Action::Ready) {
            range.machines().complete(now);
        }
    }
}

impl Directory {
    /// Takes in a call whose actor other clusters must be asked for.
    pub(crate) fn call_abroad(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        key: &Entry,
        (call, parcel, host): (gsi::Call<Operation>, RawParcel, Option<NodeId>),
    ) {
        let mut range = self.range(key.hash());
        let tenure = range.machine.tenure();
        let absent = range.presence(now, key) == Presence::Absent;
        let (Some(tenure), true, false) = (tenure, absent, range.may_begin_here(geo, key)) else {
            // The range has another owner by now, or the actor is here: it looks again.
            drop(range);
            return geo.deliver(parcel);
        };
        let mut effects = Vec::new();
        range.machines().call(geo, now, tenure, key, (call, parcel, host), &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
    }

    /// Takes in what another cluster says of an actor.
    pub(crate) fn letter(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        key: &Entry,
        (from, message, quiet): (ClusterId, Message, bool),
    ) -> Passing {
        let mut range = self.range(key.hash());
        let Some(tenure) = range.machine.tenure() else {
            return match range.machine.owner() {
                Some(owner) if owner != self.me() => Passing::On(owner, message),
                _ => Passing::Done,
            };
        };
        let presence = range.presence(now, key);
        let mut effects = Vec::new();
        let machines = range.machines();
        machines.received(geo, now, (tenure, presence), key, (from, message, quiet), &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
        Passing::Done
    }

    /// Lets an actor go to the cluster that calls it most, if its range is this node's; otherwise who owns the range.
    pub(crate) fn yields(&self, geo: &Arc<Geo>, now: Timestamp, key: &Entry) -> Option<NodeId> {
        let mut range = self.range(key.hash());
        if range.machine.tenure().is_none() {
            return range.machine.owner().filter(|owner| *owner != self.me());
        }
        let mut effects = Vec::new();
        range.machines().yields(geo, now, key, &mut effects);
        self.take_effect(geo, now, &mut range, key, effects);
        None
    }

    /// Tells all machines something.
    pub(crate) fn all_abroad(&self, geo: &Arc<Geo>, now: Timestamp, event: impl Fn() -> Event) {
        self.each_abroad(geo, now, |machines, _| machines.all(geo, now, &event));
    }

    /// Lets machines go on that are due.
    pub(crate) fn tick_abroad(&self, geo: &Arc<Geo>, now: Timestamp) {
        self.each_abroad(geo, now, |machines, presence| machines.tick(geo, now, presence));
    }

    /// When [`Directory::tick_abroad`] is next wanted.
    pub(crate) fn deadline_abroad(&self) -> Option<Timestamp> {
        self.every().filter_map(|range| range.beyond.get().and_then(GeoRange::deadline)).min()
    }

    /// Whether no actor of this node's ranges has an instance or waits for one, and no activation is here that `filter` wants; and the
    /// version of the view in which that is so. What a range in recovery has is not known yet.
    pub(crate) fn is_vacant_abroad(&self, filter: impl Fn(&Entry) -> bool) -> (bool, u64) {
        let view = self.viewed();
        let is_vacant = self.every().all(|range| {
            let owns = range.machine.tenure().is_some();
            let machines = range.beyond.get().is_none_or(GeoRange::is_vacant);
            let vacant = !owns || range.machine.deadline().is_none() && machines;
            vacant && !range.active.keys().any(&filter)
        });
        (is_vacant, view)
    }

    /// Whether no actor of this node's ranges is owned here and at home in another cluster.
    pub(crate) fn owns_none_away(&self) -> bool {
        self.every().all(|range| range.beyond.get().is_none_or(GeoRange::owns_none_away))
    }

    /// The activations here that `filter` wants, except those that may not be the only ones.
    pub(crate) fn owned_here(&self, filter: impl Fn(&Entry) -> bool) -> Vec<(Entry, Epoch)> {
        let mut all = Vec::new();
        for here in self.every() {
            let owned = here.active.iter().filter(|(key, active)| !active.is_doubtful() && filter(key));
            all.extend(owned.map(|(key, active)| (key.clone(), active.epoch)));
        }
        all
    }

    /// Returns the cluster that owns the actor, if this node decides where it is and believes that another cluster does.
    pub(crate) fn owner_elsewhere(&self, key: &Entry) -> Option<ClusterId> {
        self.range(key.hash()).beyond.get::<GeoRange>()?.owner_elsewhere(key)
    }

    /// Counts the actors of this node's ranges by where they stand.
    pub(crate) fn count_abroad(&self, counts: &mut Standings) {
        for range in self.every() {
            if let Some(machines) = range.beyond.get::<GeoRange>() {
                machines.count(counts);
            }
        }
    }

    /// Takes in which of the reported activations of hosts may not be the only ones.
    fn reported_doubtful(&self, geo: &Arc<Geo>, now: Timestamp, keys: Vec<Entry>) {
        for key in keys {
            let mut range = self.range(key.hash());
            if range.owns(&key) {
                // The host has missed a message, which may have told it to reload.
                self.take_effect(geo, now, &mut range, &key, vec![Effect::Reload]);
                continue;
            }
            range.machines().reported([key]);
            for (key, effects) in range.look_for_doubtful(geo, now) {
                self.take_effect(geo, now, &mut range, &key, effects);
            }
        }
    }

    /// Tells a host to which an actor was granted that it is the only one, if it is, and whether it may use what it has read
    /// early.
    fn tell_owned(
        &self,
        geo: &Geo,
        now: Timestamp,
        range: &mut RangeHere,
        key: &Entry,
        (node, epoch): (NodeId, Epoch),
    ) {
        let Some(machines) = range.beyond.get_mut::<GeoRange>() else { return };
        let early = machines.take_early(now, key, node);
        if node != self.me() && machines.owns(key) {
            geo.order(Order::Say(node, ControlMessage::Owned { key: key.clone(), epoch, early, reload: false }));
        } else if let Some(token) = early {
            geo.early().allow(&key.id(), token, epoch);
        }
    }

    /// The node that would have the actor, if it were activated for this caller: it reads the actor's states while other
    /// clusters are asked. `None` for actors without any.
    pub(crate) fn early_host(&self, node: &Here, key: &Entry, asker: Asker) -> Option<NodeId> {
        let kind = node.kinds().find(key.kind())?;
        if kind.states().is_empty() {
            return None;
        }
        self.choose(node, (&key.id(), key.hash()), asker, None).ok()?
    }

    fn gone_abroad(&self, geo: &Arc<Geo>, now: Timestamp, range: &mut RangeHere, key: &Entry) {
        if range.beyond.get::<GeoRange>().is_some() && range.presence(now, key) == Presence::Absent {
            let mut effects = Vec::new();
            if let Some(machines) = range.beyond.get_mut::<GeoRange>() {
                machines.gone(geo, now, key, &mut effects);
            }
            self.take_effect(geo, now, range, key, effects);
        }
    }

    fn viewed_abroad(&self, geo: &Arc<Geo>, now: Timestamp, range: &mut RangeHere, before: Option<u64>, view: &View) {
        let tenure = range.machine.tenure();
        if tenure != before {
            if let Some(machines) = range.beyond.get_mut::<GeoRange>() {
                machines.forget(geo);
            }
            if tenure.is_some() {
                let own: Vec<Entry> = range
                    .active
                    .iter()
                    .filter(|(_, active)| active.is_doubtful())
                    .map(|(key, _)| key.clone())
                    .collect();
                range.machines().reported(own);
            }
        }
        if let Some(machines) = range.beyond.get_mut::<GeoRange>() {
            machines.viewed(now, view);
        }
        range.recovered_abroad(now);
        for (key, effects) in range.look_for_doubtful(geo, now) {
            self.take_effect(geo, now, range, &key, effects);
        }
    }

    fn each_abroad(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        mut each: impl FnMut(&mut GeoRange, &dyn Fn(&Entry) -> Presence) -> Vec<(Entry, Vec<Effect>)>,
    ) {
        for mut range in self.every() {
            let RangeHere { machine, beyond, .. } = &mut *range;
            let Some(machines) = beyond.get_mut() else { continue };
            let all = each(machines, &|key: &Entry| presence(&machine.resolve(now, key)));
            for (key, effects) in all {
                self.take_effect(geo, now, &mut range, &key, effects);
            }
        }
    }

    /// Does what a machine wants of the directory.
    pub(super) fn take_effect(
        &self,
        geo: &Arc<Geo>,
        now: Timestamp,
        range: &mut RangeHere,
        key: &Entry,
        effects: Vec<Effect>,
    ) {
        let mut effects = std::collections::VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match (range.machine.resolve(now, key), effect) {
                (Resolution::At(grant), Effect::Owned | Effect::Reload) if grant.placed.node == self.me() => {
                    let found = range.settle(key, grant.placed.epoch);
                    if let (Some((shard, slot)), Effect::Reload) = (found, effect) {
                        geo.reload(shard, slot);
                    }
                }
                (Resolution::At(grant), Effect::Owned | Effect::Reload) => {
                    let (key, reload) = (key.clone(), effect == Effect::Reload);
                    let owned = ControlMessage::Owned { key, epoch: grant.placed.epoch, early: None, reload };
                    geo.order(Order::Say(grant.placed.node, owned));
                }
                (Resolution::At(grant), Effect::End { leaving }) => {
                    let why = if leaving { Why::Leaving } else { Why::Duplicate };
                    let end = ControlMessage::End { key: key.clone(), epoch: grant.placed.epoch, why };
                    geo.order(Order::Say(grant.placed.node, end));
                }
                (Resolution::Absent, Effect::End { .. }) => {
                    let mut more = Vec::new();
                    if let Some(machines) = range.beyond.get_mut::<GeoRange>() {
                        machines.gone(geo, now, key, &mut more);
                    }
                    effects.extend(more);
                }
                _ => {}
            }
        }
        geo.look_at(range.beyond.get().and_then(GeoRange::deadline));
    }
}

impl RangeHere {
    /// The machines of this range's actors, made if there are none.
    pub(super) fn machines(&mut self) -> &mut GeoRange {
        self.beyond.get_or_default()
    }

    /// Whether this cluster owns the actor: its instance is the only one.
    fn owns(&self, key: &Entry) -> bool {
        self.beyond.get::<GeoRange>().is_some_and(|machines| machines.owns(key))
    }

    pub(super) fn presence(&self, now: Timestamp, key: &Entry) -> Presence {
        presence(&self.machine.resolve(now, key))
    }

    /// Lets the machines know if the range is no longer in recovery.
    fn recovered_abroad(&mut self, now: Timestamp) {
        if let Some(machines) = self.beyond.get_mut::<GeoRange>()
            && self.machine.tenure().is_some()
            && self.machine.deadline().is_none()
        {
            machines.recovered(now);
        }
    }

    /// Whether an instance of a single actor may be activated in this cluster, or an adaptive actor has one in each now.
    fn may_begin_here(&self, geo: &Geo, key: &Entry) -> bool {
        let machines = self.beyond.get::<GeoRange>();
        let one_of_several = || {
            geo.is_adaptive(key.kind())
                && match machines {
                    Some(machines) => !machines.is_single(geo, key),
                    None => geo.mode(key) == Mode::PerCluster,
                }
        };
        machines.is_some_and(|machines| machines.may_begin(key)) || one_of_several()
    }

    fn look_for_doubtful(&mut self, geo: &Arc<Geo>, now: Timestamp) -> Vec<(Entry, Vec<Effect>)> {
        let Self { machine, beyond, .. } = self;
        let (Some(machines), Some(tenure)) = (beyond.get_mut::<GeoRange>(), machine.tenure()) else {
            return Vec::new();
        };
        let all = machines.look_for_doubtful(geo, now, tenure, |key| presence(&machine.resolve(now, key)));
        geo.look_at(machines.deadline());
        all
    }
}

fn presence(resolution: &Resolution) -> Presence {
    match resolution {
        Resolution::At(_) => Presence::At,
        Resolution::Absent => Presence::Absent,
        Resolution::Wait { .. } | Resolution::NotOwner(_) => Presence::Unknown,
    }
}
