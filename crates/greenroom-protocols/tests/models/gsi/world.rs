//! The model: clusters of one entry each, a network that loses, and what operators and processes do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use greenroom_protocols::gsi::{
    Acknowledged, Action, Body, Call, CallId, Change, Checks, ClusterId, Config, ConfigEpoch, Configuration, End,
    Entry, Event, Home, Message, Mode, Report, Round, Standing, State as At,
};
use greenroom_protocols::time::Timestamp;
use stateright::{Model, Property};

/// What is run, and what comes of it, is a number of the call's; what an instance has is the set of those that it has run or was
/// handed.
pub(super) type Gsi = Entry<u8, u8, u8>;
pub(super) type Note = Message<u8, u8, u8>;

#[derive(Clone)]
pub(super) struct World {
    pub(super) clusters: u16,
    pub(super) first: Vec<u16>,
    pub(super) script: Vec<Change>,
    pub(super) mode: Mode,
    pub(super) lossy: bool,
    pub(super) calls: Vec<u16>,
    pub(super) rounds_max: u64,
    pub(super) releases_max: usize,
    /// Owned instances that give way to another cluster.
    pub(super) yields_max: usize,
    pub(super) crashes_max: usize,
    pub(super) recoveries_max: usize,
    pub(super) twice_max: usize,
    /// Questions that are sent again before their round ends.
    pub(super) resends_max: usize,
    /// Times that the transport tells a cluster that it does not reach another.
    pub(super) losses_max: usize,
    /// Whether callers give up at once: a call has not more time than until its cluster looks again.
    pub(super) short: bool,
    /// Where the actor is at home, if it has a home.
    pub(super) home: Option<Home>,
    /// What hosts say of an instance whose range recovers.
    pub(super) says: Says,
    /// Whether the kind is configured to be pessimistic where a range recovers.
    pub(super) switches: bool,
    /// Whether a cluster that begins anew numbers its rounds as before.
    pub(super) forgets_rounds: bool,
    /// Whether a cluster that is taken out as lost may hear of that.
    pub(super) hears_lost: bool,
    pub(super) checks: Checks,
}

/// What a host says of its instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// What is true.
    Truth,
    /// That it may not be the only one: it has not been told otherwise.
    Doubt,
    /// That it is the only one, by what its kind is.
    Owned,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    entries: BTreeMap<ClusterId, Gsi>,
    network: BTreeSet<(ClusterId, ClusterId, Note)>,
    configuration: Configuration,
    changed: usize,
    called: usize,
    released: usize,
    yielded: usize,
    /// Clusters whose instances are about to end for it.
    yielding: BTreeSet<ClusterId>,
    crashed: usize,
    recovered: usize,
    twice: usize,
    resent: usize,
    lost: usize,
    /// Lost clusters that have given up what must be single, as their time has run out.
    fenced: BTreeSet<ClusterId>,
    /// The newest configuration that was complete, with nothing owned away from home.
    settled: ConfigEpoch,
    /// What the hosts of a cluster whose range recovers will report.
    reports: BTreeMap<ClusterId, Option<Report>>,
    ran: BTreeMap<CallId, usize>,
    /// What the instances have.
    contents: BTreeMap<ClusterId, u8>,
    /// What was handed over and taken in.
    taken: u8,
    /// How calls ended that were not run where they came in.
    ended: BTreeMap<CallId, Vec<End<u8>>>,
    /// What must not be.
    wrong: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    Call,
    Deliver(ClusterId, ClusterId, Note),
    DeliverTwice(ClusterId, ClusterId, Note),
    Tick(ClusterId),
    Resend(ClusterId),
    Lose(ClusterId, ClusterId),
    Release(ClusterId),
    Yield(ClusterId),
    Crash(ClusterId),
    Recover(ClusterId),
    Recovered(ClusterId),
    Change,
    Learn(ClusterId),
    Lease(ClusterId),
    Fence(ClusterId),
}

impl World {
    fn config(&self) -> Config {
        Config {
            mode: self.mode,
            resend_after: Duration::ZERO,
            silent_after: Duration::ZERO,
            back_off: Duration::ZERO,
            rerun_every: Duration::ZERO,
            yield_for: Duration::ZERO,
            home: self.home,
            checks: self.checks,
            ..Config::default()
        }
    }

    fn handle(&self, state: &mut State, me: ClusterId, event: Event<u8, u8, u8>) {
        let now = era(state);
        let mut events = vec![event];
        while !events.is_empty() {
            let mut out = Vec::new();
            let entry = state.entries.get_mut(&me).expect("only known clusters are addressed");
            entry.handle(now, events.remove(0), &mut out);
            for action in out {
                match action {
                    Action::Send(to, message) => _ = state.network.insert((me, to, message)),
                    Action::Run { origin, call } => {
                        *state.ran.entry(call.id).or_default() += 1;
                        *state.contents.entry(me).or_default() |= call.operation;
                        if origin != me {
                            events.push(Event::Ran { origin, call: call.id, result: call.operation });
                        }
                    }
                    Action::End(id, end) => state.ended.entry(id).or_default().push(end),
                    Action::Suspend(instance) => {
                        let unseen = state.contents.get(&me).copied().unwrap_or_default();
                        events.push(Event::Suspended { instance, unseen });
                    }
                    Action::Merge { from, number, unseen } => {
                        if !matches!(state.entries[&me].state(), At::Owned(_)) {
                            state.wrong = Some("what is handed over goes to who does not own");
                        }
                        *state.contents.entry(me).or_default() |= unseen;
                        state.taken |= unseen;
                        events.push(Event::Merged { from, number });
                    }
                    Action::Deactivate(_) => {
                        let had = state.contents.remove(&me).unwrap_or_default();
                        if had & !state.taken != 0 {
                            state.wrong = Some("an instance ends with what nobody has taken in");
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether all clusters have once said that they work by this configuration and own nothing away from home.
    fn is_settled(&self, state: &State, epoch: ConfigEpoch) -> bool {
        let at_home = |id: &ClusterId| {
            let entry = &state.entries[id];
            entry.configuration().epoch == epoch && (entry.home() == Some(*id) || !owns(state, *id, entry))
        };
        let now = state.configuration.epoch == epoch && state.configuration.clusters.keys().all(at_home);
        state.settled == epoch || now || !self.checks.lease
    }

    /// Where the rounds of an entry begin that is made now.
    fn anew(&self, state: &State) -> Round {
        if self.forgets_rounds { Round::floor(0, 100) } else { floor(state.crashed + state.recovered) }
    }

    fn is_lost(&self, state: &State, id: ClusterId) -> bool {
        state.configuration.standing(id) == Some(Standing::Lost)
    }

    fn next_configuration(&self, state: &State) -> Option<Configuration> {
        let change = *self.script.get(state.changed)?;
        let acknowledged = state
            .entries
            .iter()
            .map(|(id, entry)| {
                let empty = if self.is_lost(state, *id) { state.fenced.contains(id) } else { entry.is_vacant() };
                (*id, Acknowledged { epoch: entry.configuration().epoch, empty })
            })
            .collect();
        match state.configuration.change(change, &acknowledged) {
            Ok(next) => Some(next),
            Err(_) if self.checks.drain => None,
            Err(_) => {
                let mut next = state.configuration.clone();
                next.epoch.0 += 1;
                if let Change::Drop(cluster) = change {
                    next.clusters.remove(&cluster);
                }
                Some(next)
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let configuration = Configuration::new(self.first.iter().map(|id| ClusterId(*id)));
        let entry =
            |id| Entry::new(ClusterId(id), configuration.clone(), self.config(), floor(0), Timestamp::default());
        vec![State {
            entries: (1..=self.clusters).map(|id| (ClusterId(id), entry(id))).collect(),
            network: BTreeSet::new(),
            configuration: configuration.clone(),
            changed: 0,
            called: 0,
            released: 0,
            yielded: 0,
            yielding: BTreeSet::new(),
            crashed: 0,
            recovered: 0,
            twice: 0,
            resent: 0,
            lost: 0,
            fenced: BTreeSet::new(),
            settled: ConfigEpoch(0),
            reports: BTreeMap::new(),
            ran: BTreeMap::new(),
            contents: BTreeMap::new(),
            taken: 0,
            ended: BTreeMap::new(),
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.called < self.calls.len() {
            steps.push(Step::Call);
        }
        if self.next_configuration(state).is_some() {
            steps.push(Step::Change);
        }
        for (id, entry) in &state.entries {
            let quiet = !state.network.iter().any(|(from, to, _)| from == id || to == id);
            if state.resent < self.resends_max && matches!(entry.state(), At::Requested | At::Loser) {
                steps.push(Step::Resend(*id));
            }
            if state.lost < self.losses_max {
                steps.extend(state.entries.keys().filter(|other| *other != id).map(|other| Step::Lose(*id, *other)));
            }
            let rounds_left = entry.last_round().count() < self.rounds_max;
            if entry.deadline().is_some() && (self.lossy || quiet) {
                steps.push(Step::Tick(*id));
            }
            let all = || state.configuration.clusters.keys().filter(|other| !self.is_lost(state, **other));
            let taken = || all().all(|other| state.entries[other].configuration().epoch == state.configuration.epoch);
            if self.is_lost(state, *id) && !state.fenced.contains(id) && taken() {
                // It has heard none of them since.
                steps.push(Step::Fence(*id));
            }
            let hears = self.hears_lost || !self.is_lost(state, *id) && state.configuration.standing(*id).is_some();
            if entry.configuration().epoch < state.configuration.epoch && rounds_left && hears {
                steps.push(Step::Learn(*id));
            }
            if entry.home().is_some() && self.is_settled(state, entry.configuration().epoch) {
                steps.push(Step::Lease(*id));
            }
            if entry.running().is_some() && (state.released < self.releases_max || state.changed > 0) {
                steps.push(Step::Release(*id));
            }
            if state.yielded < self.yields_max && matches!(entry.state(), At::Owned(_)) {
                steps.push(Step::Yield(*id));
            }
            if state.yielding.contains(id) {
                steps.push(Step::Release(*id));
            }
            if state.crashed < self.crashes_max {
                steps.push(Step::Crash(*id));
            }
            if state.recovered < self.recoveries_max && !state.reports.contains_key(id) {
                steps.push(Step::Recover(*id));
            }
            if state.reports.contains_key(id) {
                steps.push(Step::Recovered(*id));
            }
        }
        for (from, to, message) in &state.network {
            steps.push(Step::Deliver(*from, *to, message.clone()));
            // What nobody sends again comes once: a link delivers at most once.
            let comes_once = matches!(message.body, Body::Forward { .. });
            if state.twice < self.twice_max && !comes_once {
                steps.push(Step::DeliverTwice(*from, *to, message.clone()));
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Call => {
                let at = ClusterId(self.calls[state.called]);
                let id = CallId(state.called as u64);
                state.called += 1;
                let deadline = if self.short { era(&state) } else { Timestamp::NEVER };
                let call = Call { id, operation: 1 << id.0, repeatable: false, deadline };
                if state.entries.contains_key(&at) {
                    self.handle(&mut state, at, Event::Call(call));
                }
            }
            Step::Deliver(from, to, message) => {
                state.network.remove(&(from, to, message.clone()));
                if state.entries.contains_key(&to) {
                    self.handle(&mut state, to, Event::Received(from, message));
                }
            }
            Step::DeliverTwice(from, to, message) => {
                state.twice += 1;
                state.entries.get(&to)?;
                self.handle(&mut state, to, Event::Received(from, message));
            }
            Step::Tick(id) => self.handle(&mut state, id, Event::Tick),
            Step::Resend(id) => {
                state.resent += 1;
                let mut out = Vec::new();
                let now = era(&state);
                state.entries.get_mut(&id)?.ask_again(now, &mut out);
                for action in out {
                    let Action::Send(to, message) = action else { continue };
                    state.network.insert((id, to, message));
                }
            }
            Step::Lose(id, other) => {
                state.lost += 1;
                self.handle(&mut state, id, Event::Lost(other));
            }
            Step::Yield(id) => {
                state.yielded += 1;
                state.yielding.insert(id);
                self.handle(&mut state, id, Event::Yield);
            }
            Step::Release(id) => {
                state.released += usize::from(!state.yielding.remove(&id));
                let instance = state.entries[&id].instance()?;
                state.contents.remove(&id);
                self.handle(&mut state, id, Event::Released(instance));
            }
            Step::Crash(id) => {
                state.crashed += 1;
                state.yielding.remove(&id);
                let since = era(&state);
                state.reports.remove(&id);
                state.contents.remove(&id);
                let entry = &state.entries[&id];
                let anew = Entry::new(id, entry.configuration().clone(), self.config(), self.anew(&state), since);
                state.entries.insert(id, anew);
            }
            Step::Recover(id) => {
                state.recovered += 1;
                let since = era(&state);
                let entry = &state.entries[&id];
                let owned = match self.says {
                    Says::Truth => matches!(entry.state(), At::Owned(_)),
                    Says::Doubt => false,
                    Says::Owned => true,
                };
                let report = entry.instance().map(|instance| Report { instance, owned });
                let mode = if self.switches { Mode::Pessimistic } else { self.mode };
                let config = Config { mode, ..self.config() };
                let anew = Entry::recovering(id, entry.configuration().clone(), config, self.anew(&state), since);
                state.reports.insert(id, report);
                state.entries.insert(id, anew);
            }
            Step::Recovered(id) => {
                let report = state.reports.remove(&id)?;
                self.handle(&mut state, id, Event::Recovered(report));
            }
            Step::Change => {
                state.configuration = self.next_configuration(last)?;
                state.changed += 1;
            }
            Step::Fence(id) => {
                state.fenced.insert(id);
                self.handle(&mut state, id, Event::Fenced(true));
                // Its time is chosen so that what it gives up has ended.
                if self.mode == Mode::Pessimistic
                    && self.checks.lost
                    && let Some(instance) = state.entries[&id].instance()
                {
                    state.contents.remove(&id);
                    self.handle(&mut state, id, Event::Released(instance));
                }
            }
            Step::Lease(id) => {
                let epoch = state.entries[&id].configuration().epoch;
                state.settled = state.settled.max(epoch);
                self.handle(&mut state, id, Event::Lease(epoch));
            }
            Step::Learn(id) => {
                let configuration = state.configuration.clone();
                self.handle(&mut state, id, Event::Configuration(configuration));
            }
        }
        (state != *last).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.entries.values().all(|entry| entry.last_round().count() <= self.rounds_max)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(OWNED, |_, state: &State| {
                state.entries.iter().filter(|(id, entry)| owns(state, **id, entry)).count() <= 1
            }),
            Property::always(INSTANCE, |world: &Self, state: &State| {
                let here = |(id, entry): &(&ClusterId, &Gsi)| {
                    entry.running().is_some() || state.reports.get(id).is_some_and(Option::is_some)
                };
                // Who waits for nobody goes on beside a cluster that is silent or has forgotten.
                let doubts = world.lossy || state.crashed + state.recovered > 0;
                world.mode == Mode::Optimistic && doubts || state.entries.iter().filter(here).count() <= 1
            }),
            Property::always(ONCE, |_, state: &State| state.ran.values().all(|times| *times <= 1)),
            Property::always(TOLD, |_, state: &State| {
                let truly = |(id, ends): (&CallId, &Vec<End<u8>>)| match ends[..] {
                    [End::Refused(_)] => !state.ran.contains_key(id),
                    [End::Result(result)] => result == 1 << id.0,
                    [End::Unknown] => true,
                    _ => false,
                };
                state.ended.iter().all(truly)
            }),
            Property::always(HANDED, |_, state: &State| state.wrong.is_none()),
            Property::sometimes("owned", |world: &Self, state: &State| {
                state.called == world.calls.len()
                    && state.changed == world.script.len()
                    && state.entries.iter().any(|(id, entry)| owns(state, *id, entry))
            }),
        ]
    }
}

pub(super) const OWNED: &str = "at most one cluster owns the actor (Prop. 3.1)";
pub(super) const INSTANCE: &str = "if nothing is lost or all wait, at most one cluster has an instance (Prop. 3.2)";
pub(super) const ONCE: &str = "no operation runs twice";

pub(super) const TOLD: &str = "a call ends once, with its own result, and what was refused has not run";
pub(super) const HANDED: &str = "what is handed over goes to the owner, and is kept until it has it";

/// Where the rounds of an entry begin. What comes later is lower: clusters that have forgotten everything say nothing of what
/// came first.
fn floor(life: usize) -> Round {
    Round::floor(0, 100 - life as u64)
}

/// Time passes only when a cluster forgets: what it remembers is then younger than the rounds that are under way.
fn era(state: &State) -> Timestamp {
    Timestamp::from_nanos((state.crashed + state.recovered) as u64 * 1_000_000)
}

pub(super) fn owns(state: &State, id: ClusterId, entry: &Gsi) -> bool {
    let reported = state.reports.get(&id).and_then(Option::as_ref).is_some_and(|report| report.owned);
    reported || matches!(entry.state(), At::Owned(_))
}
