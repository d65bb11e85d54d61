//! The machines of one range's actors, on the node that owns the range.

mod adaptive;
mod held;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::adaptive::Mode;
use greenroom_protocols::gsi::{self, End, Refusal, Round, State, Verdict};
use greenroom_protocols::node::{NodeId, View};
use greenroom_world::Timestamp;

use self::adaptive::AdaptiveRange;
pub(crate) use self::adaptive::Deed;
use self::held::{Ending, Held};
use super::Geo;
use super::letter::{Action, Blob, Body, Event, Machine, Message};
use super::quiet::Stillness;
use crate::cluster::directory::Entry;
use crate::shard::raw::RawParcel;

/// The machines of one range, and what waits for them. Lives behind the lock of the range.
#[derive(Default)]
pub(crate) struct GeoRange {
    held: BTreeMap<Entry, Held>,
    /// When each machine next wants a tick.
    agenda: BTreeSet<(Timestamp, Entry)>,
    /// The last round of those that were forgotten, or where the rounds of this tenure begin.
    floor: Option<Round>,
    /// Actors that hosts have reported as perhaps not the only instances.
    doubtful: BTreeSet<Entry>,
    stillness: Stillness,
    look_around_at: Timestamp,
    /// When this node knew all of the range: what its machines run for other clusters since then is remembered.
    since: Option<Timestamp>,
    /// Who decides how many instances actors have, and switches under way.
    adaptive: AdaptiveRange,
}

/// What the directory knows of an actor in this cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    /// It is active, or granted to a host.
    At,
    /// It is not.
    Absent,
    /// That is not known yet.
    Unknown,
}

/// What the directory must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// End the activation: this cluster leaves, or another one owns the actor.
    End {
        /// Whether this cluster leaves.
        leaving: bool,
    },
    /// Tell the host that the instance is the only one.
    Owned,
    /// As `Owned`; the instance also reads its states again before its next turn.
    Reload,
}

impl GeoRange {
    /// Whether an instance of the actor may be activated in this cluster.
    pub(crate) fn may_begin(&self, key: &Entry) -> bool {
        self.held.get(key).is_some_and(|held| held.machine.running().is_some() && held.ending.is_none())
    }

    /// Whether this cluster owns the actor: its instance is the only one.
    pub(crate) fn owns(&self, key: &Entry) -> bool {
        self.held.get(key).is_some_and(|held| matches!(held.machine.state(), State::Owned(_)))
    }

    /// Returns the cluster that owns the actor, if this one believes that another does.
    pub(crate) fn owner_elsewhere(&self, key: &Entry) -> Option<gsi::ClusterId> {
        match self.held.get(key)?.machine.state() {
            State::Cached(owner) => Some(owner.cluster),
            _ => None,
        }
    }

    /// Makes a machine for `key` if there is none.
    fn meet(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        tenure: u64,
        key: &Entry,
        presence: Presence,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if self.held.contains_key(key) {
            return true;
        }
        let instances = geo.instances(key.kind());
        let since = self.since(now);
        // An instance that is one of several is none that the machine keeps single.
        let one_of_several = presence == Presence::At && geo.mode(key) == Mode::PerCluster;
        match presence {
            Presence::Unknown => return false,
            Presence::At if !one_of_several => {
                // Its earlier range owner's machine is gone, the instance is not.
                // Hosts know, whatever its kind is configured to be by now.
                let owned = !self.doubtful.remove(key);
                self.recover(geo, now, (tenure, since), key, owned, effects);
            }
            Presence::At | Presence::Absent => {
                let floor = *self.floor(geo, tenure);
                let config = gsi::Config { home: geo.home(key), ..geo.config().machine(instances) };
                let machine = Machine::new(geo.me(), geo.clusters().configuration(), config, floor, since);
                self.hold(geo, now, key, machine, Vec::new(), effects);
            }
        }
        true
    }

    /// What new machines number their rounds above.
    fn floor(&mut self, geo: &Geo, tenure: u64) -> &mut Round {
        self.floor.get_or_insert_with(|| Round::floor(tenure, geo.world.random()))
    }

    /// Since when no machine was forgotten that could have run anything for other clusters.
    fn since(&self, now: Timestamp) -> Timestamp {
        self.since.map_or(Timestamp::NEVER, |since| since.max(now - FORGET_AFTER))
    }

    /// Keeps a new machine, which has said `out`.
    fn hold(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        key: &Entry,
        mut machine: Machine,
        mut out: Vec<Action>,
        effects: &mut Vec<Effect>,
    ) {
        for cluster in geo.silent() {
            machine.handle(now, Event::Lost(cluster), &mut out);
        }
        if geo.is_fenced() {
            machine.handle(now, Event::Fenced(true), &mut out);
        }
        let mut held = Held::new(machine, now, self.stillness);
        for action in out {
            held.perform(geo, key, action, &mut Vec::new(), effects);
        }
        self.held.insert(key.clone(), held);
        self.plan(key);
    }

    /// Takes in a call of this cluster that no instance here may run.
    pub(crate) fn call(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        tenure: u64,
        key: &Entry,
        (call, parcel, host): (gsi::Call<super::letter::Operation>, RawParcel, Option<NodeId>),
        out: &mut Vec<Effect>,
    ) {
        let Some(parcel) = self.park(key, parcel) else { return };
        self.meet(geo, now, tenure, key, Presence::Absent, out);
        if self.held.get(key).is_some_and(|held| held.ending.is_some()) {
            // It has ended while the range could not tell.
            self.gone(geo, now, key, out);
        }
        if let Some(held) = self.held.get_mut(key) {
            geo.waits(1);
            held.calls.insert(call.id, parcel);
            // What is read early could be older than what callers have seen of an instance that was one of several.
            held.host = host.or(held.host).filter(|_| !geo.is_adaptive(key.kind()));
        }
        self.handle(geo, now, key, Event::Call(call), out);
    }

    /// Takes in what another cluster said.
    pub(crate) fn received(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        (tenure, presence): (u64, Presence),
        key: &Entry,
        (from, message, quiet): (gsi::ClusterId, Message, bool),
        out: &mut Vec<Effect>,
    ) {
        if self.meet(geo, now, tenure, key, presence, out) {
            if let Some(held) = self.held.get_mut(key) {
                held.hears(now, presence, from, &message, quiet);
            }
            self.handle(geo, now, key, Event::Received(from, message), out);
        } else {
            // G4: a range in recovery cannot tell. What came with a question or for an instance is gone.
            let body = match message.body {
                Body::Ask { round, carried, .. } => {
                    let (verdict, carried) = (Verdict::Unknown, !carried.is_empty());
                    Body::Answer { round, verdict, declined: carried, carried, remembers_ms: 0 }
                }
                Body::Forward { to, call } => Body::NotHere { to, call: call.id },
                _ => return,
            };
            geo.send(from, key, Message { configuration: geo.clusters().configuration().epoch, body });
        }
    }

    /// Takes in that no activation of the actor is left in this cluster.
    pub(crate) fn gone(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, out: &mut Vec<Effect>) {
        self.doubtful.remove(key);
        let Some(held) = self.held.get_mut(key) else {
            if geo.is_single(key.kind()) {
                self.stillness.ended(now);
            }
            return;
        };
        (held.left, held.reading) = (now, None);
        let event = match held.ending.take() {
            Some(Ending::Suspend(instance)) => Some(Event::Suspended { instance, unseen: Blob::default() }),
            Some(Ending::Release(instance)) => Some(Event::Released(instance)),
            Some(Ending::Deactivate) => None,
            None => held.machine.running().map(Event::Released),
        };
        if let Some(event) = event {
            self.handle(geo, now, key, event, out);
        }
    }

    /// Lets the owned instance of an actor end, for the cluster that calls it most.
    pub(crate) fn yields(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, out: &mut Vec<Effect>) {
        if self.held.get(key).is_some_and(|held| held.ending.is_none()) {
            geo.counts().yielded();
            self.handle(geo, now, key, Event::Yield, out);
        }
    }

    /// Remembers actors whose instances may not be the only ones.
    pub(crate) fn reported(&mut self, doubtful: impl IntoIterator<Item = Entry>) {
        self.doubtful.extend(doubtful);
    }

    /// Lets the machines of reported doubtful actors look for others.
    pub(crate) fn look_for_doubtful(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        tenure: u64,
        presence: impl Fn(&Entry) -> Presence,
    ) -> Vec<(Entry, Vec<Effect>)> {
        let mut all = Vec::new();
        for key in self.doubtful.iter().cloned().collect::<Vec<_>>() {
            match presence(&key) {
                Presence::At if geo.mode(&key) != Mode::PerCluster => {
                    let mut out = Vec::new();
                    self.meet(geo, now, tenure, &key, Presence::At, &mut out);
                    self.doubtful.remove(&key);
                    all.push((key, out));
                }
                Presence::At | Presence::Absent => {
                    self.doubtful.remove(&key);
                }
                Presence::Unknown => {}
            }
        }
        all
    }

    /// Gives all machines an event.
    pub(crate) fn all(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        event: impl Fn() -> Event,
    ) -> Vec<(Entry, Vec<Effect>)> {
        let keys: Vec<Entry> = self.held.keys().cloned().collect();
        let mut all = Vec::new();
        for key in keys {
            let mut out = Vec::new();
            self.handle(geo, now, &key, event(), &mut out);
            if !out.is_empty() {
                all.push((key, out));
            }
        }
        all
    }

    /// Lets due machines go on, and forgets those that nobody needs.
    pub(crate) fn tick(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        presence: impl Fn(&Entry) -> Presence,
    ) -> Vec<(Entry, Vec<Effect>)> {
        let mut all = Vec::new();
        while let Some((due, key)) = self.agenda.first().cloned()
            && due <= now
        {
            let mut out = Vec::new();
            self.handle(geo, now, &key, Event::Tick, &mut out);
            all.push((key.clone(), out));
            if self.held.get(&key).is_some_and(|held| held.due.is_some_and(|again| again <= now)) {
                // It has nothing to do at its own deadline: later.
                self.agenda.remove(&(due, key));
            }
        }
        if self.look_around_at <= now {
            self.look_around_at = now + LOOK_AROUND_EVERY;
            self.look_around(geo, now, presence, &mut all);
        }
        all
    }

    fn look_around(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        presence: impl Fn(&Entry) -> Presence,
        all: &mut Vec<(Entry, Vec<Effect>)>,
    ) {
        let mut idle = Vec::new();
        for (key, held) in &self.held {
            let old = now.since(held.touched);
            if held.ending.is_some() || held.machine.running().is_some() && old > LOOK_AROUND_EVERY {
                idle.push(key.clone());
            }
        }
        self.adaptive.look_around(now);
        for key in idle {
            let mut out = Vec::new();
            self.let_go(geo, now, &key, &mut out);
            if presence(&key) == Presence::Absent {
                self.gone(geo, now, &key, &mut out);
            } else if let Some(ending) = self.held.get(&key).and_then(|held| held.ending) {
                // The word to end it may have been lost.
                out.push(Effect::End { leaving: matches!(ending, Ending::Release(_)) });
            }
            all.push((key, out));
        }
        let forgotten = |held: &Held| held.machine.is_empty() && now.since(held.touched) > FORGET_AFTER;
        let floor = &mut self.floor;
        self.held.retain(|_, held| {
            let keep = !forgotten(held);
            if !keep {
                *floor = (*floor).max(Some(held.machine.last_round()));
            }
            keep
        });
    }

    /// When [`GeoRange::tick`] is next wanted.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let first = self.agenda.first().map(|(due, _)| *due);
        let around = (!self.held.is_empty()).then_some(self.look_around_at);
        first.into_iter().chain(around).chain(self.adaptive.deadline()).min()
    }

    /// Whether this cluster owns nothing of the range, and is about to own nothing.
    pub(crate) fn is_vacant(&self) -> bool {
        self.doubtful.is_empty() && self.held.values().all(|held| held.machine.is_vacant())
    }

    /// Whether no actor is owned here and at home in another cluster.
    pub(crate) fn owns_none_away(&self) -> bool {
        let away = |held: &Held| held.machine.home().is_some_and(|home| home != held.machine.me());
        !self.held.values().any(|held| away(held) && matches!(held.machine.state(), State::Owned(_)))
    }

    /// Actors by where they stand.
    pub(crate) fn count(&self, counts: &mut super::status::Standings) {
        for held in self.held.values() {
            counts.add(held.machine.state(), held.machine.instance().is_some());
        }
    }

    /// Takes in that all of the range is known, and no other node may act as its owner.
    pub(crate) fn recovered(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// Forgets everything: another node owns the range, or this one does anew.
    pub(crate) fn forget(&mut self, geo: &Arc<Geo>) {
        (self.since, self.floor) = (None, None);
        for held in std::mem::take(&mut self.held).into_values() {
            for parcel in held.calls.into_values() {
                geo.waits(-1);
                geo.end(parcel, End::Unknown, held.machine.silent());
            }
        }
        self.agenda.clear();
        self.adaptive.forget(geo);
        self.stillness.begin();
    }

    /// Takes in that all hosts have reported.
    pub(crate) fn complete(&mut self, now: Timestamp) {
        self.stillness.complete(now);
    }

    /// Takes in a view of the cluster.
    pub(crate) fn viewed(&mut self, now: Timestamp, view: &View) {
        self.stillness.viewed(now, view);
    }

    /// The node that has read the actor's states, if its next activation may use them.
    pub(crate) fn early_host(&self, now: Timestamp, key: &Entry) -> Option<NodeId> {
        let reading = self.held.get(key)?.reading.as_ref()?;
        reading.is_usable(now).then_some(reading.host)
    }

    /// What that node has read them under, for the activation that begins now, on `node`.
    pub(crate) fn take_early(&mut self, now: Timestamp, key: &Entry, node: NodeId) -> Option<u64> {
        let reading = self.held.get_mut(key)?.reading.take()?;
        (reading.is_usable(now) && reading.host == node).then_some(reading.token)
    }

    fn handle(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, event: Event, out: &mut Vec<Effect>) {
        let Some(held) = self.held.get_mut(key) else { return };
        (held.touched, held.stillness) = (now, self.stillness);
        // The last one is the first that is taken.
        let mut events = vec![event];
        events.extend(geo.lease(key.kind()).map(Event::Lease));
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            held.machine.handle(now, event, &mut actions);
            for action in actions {
                held.perform(geo, key, action, &mut events, out);
            }
        }
        self.plan(key);
    }

    /// Enters the machine's deadline into the agenda.
    fn plan(&mut self, key: &Entry) {
        let Some(held) = self.held.get_mut(key) else { return };
        let due = held.machine.deadline();
        if due != held.due {
            if let Some(old) = held.due {
                self.agenda.remove(&(old, key.clone()));
            }
            held.due = due;
        }
        if let Some(due) = due {
            self.agenda.insert((due, key.clone()));
        }
    }
}

/// What keeps a call from having an owner, as its caller is told.
pub(super) fn refusal(geo: &Geo, actor: &str, why: Refusal, silent: &BTreeSet<gsi::ClusterId>) -> crate::Refusal {
    match why {
        Refusal::Unreachable => {
            let list = geo.clusters();
            let silent = geo.silent().union(silent).filter_map(|id| list.name(*id).map(str::to_owned)).collect();
            crate::Refusal::Apart { actor: actor.to_owned(), silent }
        }
        Refusal::Draining => crate::Refusal::Leaving { cluster: geo.name().to_owned() },
        Refusal::Full => crate::Refusal::Overloaded {
            queue: format!("what waits for the cluster that owns {actor}"),
            bound: gsi::Config::default().calls_max as u64,
        },
    }
}

/// Time between two looks for what nobody needs any more.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(10);
/// Time after which a machine without an instance is forgotten: longer than any call may take, as it knows what has run.
const FORGET_AFTER: Duration = Duration::from_secs(600);
