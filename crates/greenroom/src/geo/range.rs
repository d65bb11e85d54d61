//! The machines of one range's actors, on the node that owns the range.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::gsi::{self, CallId, End, Refusal, Report, Round, State, Verdict};
use greenroom_protocols::node::Instances;
use greenroom_world::Timestamp;

use super::Geo;
use super::letter::{Action, Blob, Body, Event, Machine, Message};
use crate::cluster::directory::Entry;
use crate::shard::raw::RawParcel;

/// The machines of one range, and what waits for them. Lives behind the lock of the range.
#[derive(Default)]
pub(crate) struct GeoRange {
    held: BTreeMap<Entry, Held>,
    /// When each machine next wants a tick.
    agenda: BTreeSet<(Timestamp, Entry)>,
    /// The last round of those that were forgotten.
    floor: Round,
    /// Actors that hosts have reported as perhaps not the only instances.
    doubtful: BTreeSet<Entry>,
    look_around_at: Timestamp,
}

/// One actor's machine.
struct Held {
    machine: Box<Machine>,
    due: Option<Timestamp>,
    /// Calls that came in here and have not ended.
    calls: BTreeMap<CallId, RawParcel>,
    /// Set while the activation is to end.
    ending: Option<Ending>,
    touched: Timestamp,
}

/// Why an activation is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Another cluster owns the actor.
    Suspend(Round),
    /// This cluster leaves.
    Release(Round),
    /// The machine has given it up already.
    Deactivate,
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

    /// Makes a machine for `key` if there is none.
    fn meet(&mut self, geo: &Arc<Geo>, now: Timestamp, tenure: u64, key: &Entry, presence: Presence) -> bool {
        if self.held.contains_key(key) {
            return true;
        }
        let instances = geo.instances(key.id().kind);
        // Rounds of an earlier tenure's machines were below.
        self.floor = self.floor.max(Round(tenure << 32));
        let config = geo.config().machine(instances);
        let configuration = geo.clusters().configuration();
        let mut out = Vec::new();
        let mut machine = match presence {
            Presence::Unknown => return false,
            Presence::Absent => Machine::new(geo.me(), configuration, config, self.floor),
            Presence::At => {
                // Its earlier range owner's machine is gone, the instance is not.
                let doubtful = self.doubtful.remove(key) && instances != Instances::Pessimistic;
                self.floor.0 += 1;
                let report = Report { instance: self.floor, owned: !doubtful, ran: BTreeMap::new() };
                let mut machine = Machine::recovering(geo.me(), configuration, config, self.floor);
                machine.handle(now, Event::Recovered(Some(report)), &mut out);
                machine
            }
        };
        for cluster in geo.silent() {
            machine.handle(now, Event::Lost(cluster), &mut out);
        }
        let held = Held { machine: Box::new(machine), due: None, calls: BTreeMap::new(), ending: None, touched: now };
        self.held.insert(key.clone(), held);
        self.plan(key);
        true
    }

    /// Takes in a call of this cluster that no instance here may run.
    pub(crate) fn call(
        &mut self,
        geo: &Arc<Geo>,
        now: Timestamp,
        tenure: u64,
        key: &Entry,
        (call, parcel): (gsi::Call<super::letter::Operation>, RawParcel),
        out: &mut Vec<Effect>,
    ) {
        self.meet(geo, now, tenure, key, Presence::Absent);
        if let Some(held) = self.held.get_mut(key) {
            geo.waits(1);
            held.calls.insert(call.id, parcel);
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
        (from, message): (gsi::ClusterId, Message),
        out: &mut Vec<Effect>,
    ) {
        if self.meet(geo, now, tenure, key, presence) {
            self.handle(geo, now, key, Event::Received(from, message), out);
        } else if let Body::Ask { round, .. } = message.body {
            // G4: a range in recovery cannot tell.
            let body = Body::Answer { round, verdict: Verdict::Unknown, declined: false };
            geo.send(from, key, Message { configuration: geo.clusters().configuration().epoch, body });
        }
    }

    /// Takes in that no activation of the actor is left in this cluster.
    pub(crate) fn gone(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, out: &mut Vec<Effect>) {
        self.doubtful.remove(key);
        let Some(held) = self.held.get_mut(key) else { return };
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
    ) {
        for key in self.doubtful.iter().cloned().collect::<Vec<_>>() {
            match presence(&key) {
                Presence::At => {
                    self.meet(geo, now, tenure, &key, Presence::At);
                    self.doubtful.remove(&key);
                }
                Presence::Absent => {
                    self.doubtful.remove(&key);
                }
                Presence::Unknown => {}
            }
        }
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
        for key in idle {
            let mut out = Vec::new();
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
                *floor = (*floor).max(held.machine.last_round());
            }
            keep
        });
    }

    /// When [`GeoRange::tick`] is next wanted.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let first = self.agenda.first().map(|(due, _)| *due);
        let around = (!self.held.is_empty()).then_some(self.look_around_at);
        first.into_iter().chain(around).min()
    }

    /// Whether nothing is here and nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.values().all(|held| held.machine.is_empty())
    }

    /// Actors by where they stand.
    pub(crate) fn count(&self, counts: &mut super::status::Standings) {
        for held in self.held.values() {
            counts.add(held.machine.state(), held.machine.instance().is_some());
        }
    }

    /// Forgets everything: another node owns the range, or this one does anew.
    pub(crate) fn forget(&mut self, geo: &Arc<Geo>) {
        for held in std::mem::take(&mut self.held).into_values() {
            self.floor = self.floor.max(held.machine.last_round());
            for parcel in held.calls.into_values() {
                geo.waits(-1);
                geo.end(parcel, End::Unknown);
            }
        }
        self.agenda.clear();
    }

    fn handle(&mut self, geo: &Arc<Geo>, now: Timestamp, key: &Entry, event: Event, out: &mut Vec<Effect>) {
        let Some(held) = self.held.get_mut(key) else { return };
        held.touched = now;
        let mut events = vec![event];
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

impl Held {
    fn perform(&mut self, geo: &Arc<Geo>, key: &Entry, action: Action, events: &mut Vec<Event>, out: &mut Vec<Effect>) {
        match action {
            Action::Send(to, message) => geo.send(to, key, message),
            Action::Activate { doubtful, .. } => {
                self.ending = None;
                geo.counts().activated(doubtful);
                out.extend((!doubtful).then_some(Effect::Owned));
            }
            Action::Settle(_) => {
                self.ending = None;
                out.push(Effect::Owned);
            }
            Action::Resume(_) => self.ending = None,
            Action::Run { origin, call } if origin == geo.me() => {
                if let Some(parcel) = self.calls.remove(&call.id) {
                    geo.waits(-1);
                    geo.deliver(parcel);
                }
            }
            Action::Run { origin, call } => geo.run(origin, key, call),
            Action::End(id, end) => {
                if let Some(parcel) = self.calls.remove(&id) {
                    geo.waits(-1);
                    geo.end(parcel, end);
                }
            }
            Action::Suspend(instance) => {
                geo.counts().duplicate_found();
                self.ending = Some(Ending::Suspend(instance));
                out.push(Effect::End { leaving: false });
            }
            Action::Merge { from, number, .. } => {
                geo.counts().merged();
                events.push(Event::Merged { from, number });
            }
            Action::Release(instance) => {
                self.ending = Some(Ending::Release(instance));
                out.push(Effect::End { leaving: true });
            }
            Action::Deactivate(_) => {
                geo.counts().duplicate_ended();
                self.ending = Some(Ending::Deactivate);
                out.push(Effect::End { leaving: false });
            }
            Action::FetchConfiguration(epoch) => geo.wants_list(epoch.0),
        }
    }
}

/// What keeps a call from having an owner, as its caller is told.
pub(super) fn refusal(geo: &Arc<Geo>, actor: &str, why: Refusal) -> crate::Refusal {
    match why {
        Refusal::Unreachable => {
            let list = geo.clusters();
            let silent = geo.silent().into_iter().filter_map(|id| list.name(id).map(str::to_owned)).collect();
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
