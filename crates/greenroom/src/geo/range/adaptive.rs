//! The adaptive actors of one range: who decides for them, and switches under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::adaptive::{self, Decider, Epoch, Known, Mode, Setting};
use greenroom_protocols::gsi::{self, ClusterId, Report, Standing, State};
use greenroom_world::Timestamp;

use super::{Effect, GeoRange, Held, Presence};
use crate::cluster::directory::Entry;
use crate::geo::Geo;
use crate::geo::adaptive::switching::{Step, Switching};
use crate::geo::letter::{Event, Machine};
use crate::shard::raw::RawParcel;

/// What the adaptive actors of one range need.
#[derive(Default)]
pub(super) struct AdaptiveRange {
    deciders: BTreeMap<Entry, Decider>,
    /// When each decider next wants a tick.
    due: BTreeMap<Entry, Timestamp>,
    switching: BTreeMap<Entry, Switching>,
    /// When switches are looked at next.
    look_at: Timestamp,
}

/// What is to be done once the range is not locked any more.
pub(crate) enum Deed {
    /// What a decider wants.
    Decided(adaptive::Action),
    /// Ask these clusters to refresh their instances, under this number.
    Refresh(BTreeSet<ClusterId>, u64),
    /// The switch is over: these calls look for their actor again.
    Go(Vec<RawParcel>),
}

impl AdaptiveRange {
    /// When something is to be looked at.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let switching = (!self.switching.is_empty()).then_some(self.look_at);
        self.due.values().copied().chain(switching).min()
    }

    /// Forgets deciders that nobody tells anything.
    pub(super) fn look_around(&mut self, now: Timestamp) {
        self.deciders.retain(|_, decider| !decider.is_idle(now));
    }

    /// Forgets everything: calls that wait look for their actor again.
    pub(super) fn forget(&mut self, geo: &Geo) {
        for switching in std::mem::take(self).switching.into_values() {
            switching.into_parked().into_iter().for_each(|parcel| geo.deliver(parcel));
        }
    }
}

impl GeoRange {
    /// Whether an adaptive actor has one instance, as far as calls of this cluster are concerned.
    pub(crate) fn is_single(&self, geo: &Geo, key: &Entry) -> bool {
        self.adaptive.switching.contains_key(key) || geo.mode(key) != Mode::PerCluster
    }

    /// Lets a call wait for a switch that is under way; it comes back if there is none, or no room.
    pub(super) fn park(&mut self, key: &Entry, parcel: RawParcel) -> Option<RawParcel> {
        match self.adaptive.switching.get_mut(key) {
            Some(switching) => switching.park(parcel),
            None => Some(parcel),
        }
    }

    /// Goes by the mode `known` of an actor, which is new here if `fresh`; its epoch, if this cluster is to be the actor's home
    /// and is ready for that.
    pub(crate) fn adapt(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        (tenure, presence): (u64, Presence),
        key: &Entry,
        (known, fresh): (&Known, bool),
        out: &mut Vec<Effect>,
    ) -> Option<Epoch> {
        let runs = self.held.get(key).is_some_and(|held| held.machine.running().is_some());
        let begins = match known.mode {
            Mode::Single { home } if home == Some(geo.me()) => {
                if presence == Presence::At && !runs {
                    self.claim(geo, now, tenure, key, out);
                }
                // What would have waited goes to the instance here.
                self.end_switch(geo, key);
                let ready = presence == Presence::Absent || self.owns(key);
                return ready.then_some(known.epoch);
            }
            Mode::Single { .. } => fresh || presence == Presence::At && !runs,
            // Who has the one instance keeps it.
            Mode::PerCluster if presence == Presence::At => {
                self.end_switch(geo, key);
                false
            }
            Mode::PerCluster => fresh,
        };
        if begins {
            let (per_cluster, request) = (known.mode == Mode::PerCluster, geo.next_call());
            let new = || Switching::new(now, per_cluster, request, PATIENCE);
            match self.adaptive.switching.get_mut(key) {
                Some(switching) if fresh => switching.turn(now, per_cluster, request),
                Some(_) => {}
                None => drop(self.adaptive.switching.insert(key.clone(), new())),
            }
            self.adaptive.look_at = now;
        }
        None
    }

    fn end_switch(&mut self, geo: &Geo, key: &Entry) {
        let waiting = self.adaptive.switching.remove(key).map(Switching::into_parked);
        waiting.into_iter().flatten().for_each(|parcel| geo.deliver(parcel));
    }

    /// Lets the machine of an actor ask for the instance here, which was one of several.
    fn claim(&mut self, geo: &Arc<Geo>, now: Timestamp, tenure: u64, key: &Entry, out: &mut Vec<Effect>) {
        if let Some(held) = self.held.get(key) {
            if !held.machine.is_empty() {
                return;
            }
            self.floor = self.floor.max(Some(held.machine.last_round()));
        }
        self.held.remove(key);
        // What the machine has run for other clusters is forgotten with it.
        self.recover(geo, now, (tenure, now), key, false, out);
    }

    /// Has the machine give up what it owns, though the instance stays: it is one of several now.
    pub(super) fn let_go(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, out: &mut Vec<Effect>) {
        let settled = geo.modes().since(key).is_some_and(|since| now.since(since) > LET_GO_AFTER);
        if !settled || geo.mode(key) != Mode::PerCluster {
            return;
        }
        let running = |held: &Held| held.machine.running().filter(|_| held.ending.is_none());
        if let Some(instance) = self.held.get(key).and_then(running) {
            self.handle(geo, now, key, Event::Released(instance), out);
        }
    }

    /// Takes in that a cluster has refreshed its instance of an actor.
    pub(crate) fn refreshed(&mut self, now: Timestamp, key: &Entry, from: ClusterId, request: u64) {
        if let Some(switching) = self.adaptive.switching.get_mut(key) {
            switching.refreshed(from, request);
            self.adaptive.look_at = now;
        }
    }

    /// Tells who decides for an actor what has happened.
    pub(crate) fn decide(
        &mut self,
        geo: &Geo,
        now: Timestamp,
        (key, near): (&Entry, Option<ClusterId>),
        event: adaptive::Event,
    ) -> Vec<Deed> {
        let list = geo.clusters().configuration();
        let full = |(id, standing): (&ClusterId, &Standing)| (*standing == Standing::Full).then_some(*id);
        let setting = Setting { clusters: list.clusters.iter().filter_map(full).collect(), near };
        let deciders = &mut self.adaptive.deciders;
        if deciders.len() >= DECIDERS_MAX && !deciders.contains_key(key) {
            return Vec::new();
        }
        let new = || {
            let (me, machine, known) = (geo.world.random(), geo.config().adaptive.machine(), geo.modes().known(key));
            Decider::new(me, machine, setting.clone(), known, now)
        };
        let decider = deciders.entry(key.clone()).or_insert_with(new);
        let (wall, mut out) = (geo.world.wall(), Vec::new());
        if *decider.setting() != setting {
            decider.handle(now, wall, adaptive::Event::Setting(setting), &mut out);
        }
        let apart = !geo.silent().is_disjoint(&decider.setting().clusters);
        decider.handle(now, wall, adaptive::Event::Apart(apart), &mut out);
        decider.handle(now, wall, event, &mut out);
        self.adaptive.plan(key);
        out.into_iter().map(Deed::Decided).collect()
    }

    /// Lets deciders and switches go on.
    pub(crate) fn tick_adaptive(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        presence: impl Fn(&Entry) -> Presence,
        effects: &mut Vec<(Entry, Vec<Effect>)>,
    ) -> Vec<(Entry, Deed)> {
        let mut deeds = Vec::new();
        let due = self.adaptive.due.iter().filter(|(_, due)| **due <= now).map(|(key, _)| key.clone());
        for key in due.collect::<Vec<_>>() {
            let mut out = Vec::new();
            if let Some(decider) = self.adaptive.deciders.get_mut(&key) {
                decider.handle(now, geo.world.wall(), adaptive::Event::Tick, &mut out);
            }
            self.adaptive.plan(&key);
            deeds.extend(out.into_iter().map(|action| (key.clone(), Deed::Decided(action))));
        }
        if self.adaptive.switching.is_empty() || self.adaptive.look_at > now {
            return deeds;
        }
        self.adaptive.look_at = now + LOOK_EVERY;
        let others = || {
            let silent = geo.silent();
            let all = geo.clusters().configuration().clusters.into_keys();
            all.filter(|id| *id != geo.me() && !silent.contains(id)).collect::<BTreeSet<_>>()
        };
        let mut over = Vec::new();
        for (key, switching) in &mut self.adaptive.switching {
            let held = self.held.get(key);
            let is_out = held.is_some_and(|held| !held.calls.is_empty());
            // Another cluster is silent, and GSI sees to what it has begun meanwhile.
            let doubtful = held.is_some_and(|held| {
                held.machine.running().is_some() && !matches!(held.machine.state(), State::Owned(_))
            });
            let ended = switching.per_cluster || doubtful || presence(key) == Presence::Absent;
            match switching.step(now, !is_out && ended, others) {
                Step::Wait => {}
                Step::End => effects.push((key.clone(), vec![Effect::End { leaving: false }])),
                Step::Ask(clusters, request) => deeds.push((key.clone(), Deed::Refresh(clusters, request))),
                Step::Over => over.push(key.clone()),
            }
        }
        for key in over {
            let waiting = self.adaptive.switching.remove(&key).map(Switching::into_parked).unwrap_or_default();
            deeds.push((key, Deed::Go(waiting)));
        }
        deeds
    }

    /// Makes the machine of an actor whose instance is here already, and is the only one if it is `owned`; nothing is forgotten
    /// since `since`.
    pub(super) fn recover(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        (tenure, since): (u64, Timestamp),
        key: &Entry,
        owned: bool,
        effects: &mut Vec<Effect>,
    ) {
        let floor = self.floor(geo, tenure);
        floor.0 += 1;
        let instance = *floor;
        let mut out = Vec::new();
        let config = gsi::Config { home: geo.home(key), ..geo.config().machine(geo.instances(key.kind())) };
        let mut machine = Machine::recovering(geo.me(), geo.clusters().configuration(), config, instance, since);
        machine.handle(now, Event::Recovered(Some(Report { instance, owned })), &mut out);
        self.hold(geo, now, key, machine, out, effects);
    }
}

impl AdaptiveRange {
    fn plan(&mut self, key: &Entry) {
        match self.deciders.get(key).and_then(Decider::deadline) {
            Some(due) => drop(self.due.insert(key.clone(), due)),
            None => drop(self.due.remove(key)),
        }
    }
}

/// Time that a switch may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at switches.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time after which an instance that has become one of several is owned by its cluster no more: calls that were on their way to
/// the one instance have ended.
const LET_GO_AFTER: Duration = Duration::from_secs(10);
/// Actors of one range that are decided for on one node.
const DECIDERS_MAX: usize = 4096;
