//! Exhausts GSI (Geo §3.1-3.3) on three clusters: Props. 3.1 and 3.2, and no operation run twice.
//!
//! Time does not pass: all delays are zero, so whatever waits may go on at any moment. A message that is not delivered is
//! lost or slow. Where nothing is lost, an entry waits until no message of its cluster is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use greenroom_protocols::gsi::{
    Acknowledged, Action, Call, CallId, Change, Checks, ClusterId, Config, Configuration, Entry, Event, Message, Mode,
    Report, Round, State as At,
};
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

type Gsi = Entry<(), (), ()>;
type Note = Message<(), (), ()>;

#[derive(Clone)]
struct World {
    clusters: u16,
    first: Vec<u16>,
    script: Vec<Change>,
    mode: Mode,
    lossy: bool,
    calls: Vec<u16>,
    rounds_max: u64,
    releases_max: usize,
    crashes_max: usize,
    recoveries_max: usize,
    twice_max: usize,
    checks: Checks,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    entries: BTreeMap<ClusterId, Gsi>,
    network: BTreeSet<(ClusterId, ClusterId, Note)>,
    configuration: Configuration,
    changed: usize,
    called: usize,
    released: usize,
    crashed: usize,
    recovered: usize,
    twice: usize,
    /// What the hosts of a cluster whose range recovers will report.
    reports: BTreeMap<ClusterId, Option<Report>>,
    ran: BTreeMap<CallId, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Call,
    Deliver(ClusterId, ClusterId, Note),
    DeliverTwice(ClusterId, ClusterId, Note),
    Tick(ClusterId),
    Release(ClusterId),
    Crash(ClusterId),
    Recover(ClusterId),
    Recovered(ClusterId),
    Change,
    Learn(ClusterId),
}

impl World {
    fn config(&self) -> Config {
        Config {
            mode: self.mode,
            resend_after: Duration::ZERO,
            silent_after: Duration::ZERO,
            back_off: Duration::ZERO,
            rerun_every: Duration::ZERO,
            checks: self.checks,
            ..Config::default()
        }
    }

    fn handle(&self, state: &mut State, me: ClusterId, event: Event<(), (), ()>) {
        let mut events = vec![event];
        while !events.is_empty() {
            let mut out = Vec::new();
            let entry = state.entries.get_mut(&me).expect("only known clusters are addressed");
            entry.handle(Timestamp::default(), events.remove(0), &mut out);
            for action in out {
                match action {
                    Action::Send(to, message) => _ = state.network.insert((me, to, message)),
                    Action::Run { origin, call } => {
                        *state.ran.entry(call.id).or_default() += 1;
                        if origin != me {
                            events.push(Event::Ran { origin, call: call.id, result: () });
                        }
                    }
                    Action::Suspend(instance) => events.push(Event::Suspended { instance, unseen: () }),
                    Action::Merge { from, number, .. } => events.push(Event::Merged { from, number }),
                    _ => {}
                }
            }
        }
    }

    fn next_configuration(&self, state: &State) -> Option<Configuration> {
        let change = *self.script.get(state.changed)?;
        let acknowledged = state
            .entries
            .iter()
            .map(|(id, entry)| (*id, Acknowledged { epoch: entry.configuration().epoch, empty: entry.is_empty() }))
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
        let entry = |id| Entry::new(ClusterId(id), configuration.clone(), self.config(), Round(0));
        vec![State {
            entries: (1..=self.clusters).map(|id| (ClusterId(id), entry(id))).collect(),
            network: BTreeSet::new(),
            configuration: configuration.clone(),
            changed: 0,
            called: 0,
            released: 0,
            crashed: 0,
            recovered: 0,
            twice: 0,
            reports: BTreeMap::new(),
            ran: BTreeMap::new(),
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
            let rounds_left = entry.last_round().0 < self.rounds_max;
            if entry.deadline().is_some() && (self.lossy || quiet) {
                steps.push(Step::Tick(*id));
            }
            if entry.configuration().epoch < state.configuration.epoch && rounds_left {
                steps.push(Step::Learn(*id));
            }
            if entry.running().is_some() && (state.released < self.releases_max || state.changed > 0) {
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
            if state.twice < self.twice_max {
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
                let call = Call { id, operation: (), repeatable: false, deadline: Timestamp::NEVER };
                self.handle(&mut state, at, Event::Call(call));
            }
            Step::Deliver(from, to, message) => {
                state.network.remove(&(from, to, message.clone()));
                self.handle(&mut state, to, Event::Received(from, message));
            }
            Step::DeliverTwice(from, to, message) => {
                state.twice += 1;
                self.handle(&mut state, to, Event::Received(from, message));
            }
            Step::Tick(id) => self.handle(&mut state, id, Event::Tick),
            Step::Release(id) => {
                state.released += 1;
                let instance = state.entries[&id].instance()?;
                self.handle(&mut state, id, Event::Released(instance));
            }
            Step::Crash(id) => {
                state.crashed += 1;
                state.reports.remove(&id);
                let entry = &state.entries[&id];
                let anew = Entry::new(id, entry.configuration().clone(), self.config(), entry.last_round());
                state.entries.insert(id, anew);
            }
            Step::Recover(id) => {
                state.recovered += 1;
                let entry = &state.entries[&id];
                let report = entry.instance().map(|instance| Report {
                    instance,
                    owned: matches!(entry.state(), At::Owned(_)),
                    ran: entry.ran().clone(),
                });
                let anew = Entry::recovering(id, entry.configuration().clone(), self.config(), entry.last_round());
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
            Step::Learn(id) => {
                let configuration = state.configuration.clone();
                self.handle(&mut state, id, Event::Configuration(configuration));
            }
        }
        (state != *last).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.entries.values().all(|entry| entry.last_round().0 <= self.rounds_max)
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
                world.lossy || state.entries.iter().filter(here).count() <= 1
            }),
            Property::always(ONCE, |world: &Self, state: &State| {
                world.crashes_max + world.recoveries_max > 0 || state.ran.values().all(|times| *times <= 1)
            }),
            Property::sometimes("owned", |world: &Self, state: &State| {
                state.called == world.calls.len()
                    && state.changed == world.script.len()
                    && state.entries.iter().any(|(id, entry)| owns(state, *id, entry))
            }),
        ]
    }
}

const OWNED: &str = "at most one cluster owns the actor (Prop. 3.1)";
const INSTANCE: &str = "if nothing is lost, at most one cluster has an instance (Prop. 3.2)";
const ONCE: &str = "no operation runs twice";

fn owns(state: &State, id: ClusterId, entry: &Gsi) -> bool {
    let reported = state.reports.get(&id).and_then(Option::as_ref).is_some_and(|report| report.owned);
    reported || matches!(entry.state(), At::Owned(_))
}

/// Three clusters that lose messages or are silent.
fn lossy() -> World {
    World {
        clusters: 3,
        first: vec![1, 2, 3],
        script: Vec::new(),
        mode: Mode::Optimistic,
        lossy: true,
        calls: vec![1, 2],
        rounds_max: 2,
        releases_max: 0,
        crashes_max: 0,
        recoveries_max: 0,
        twice_max: 0,
        checks: Checks::default(),
    }
}

/// Two clusters that lose messages, for longer.
fn two() -> World {
    World { clusters: 2, first: vec![1, 2], rounds_max: 3, ..lossy() }
}

fn exhaust(name: &str, world: World) {
    let begun = Instant::now();
    let bounds = format!(
        "{} clusters, {:?}, calls at {:?}, {} rounds, {} releases, {} crashes, {} recoveries, {} duplicates, {:?}",
        world.clusters,
        world.mode,
        world.calls,
        world.rounds_max,
        world.releases_max,
        world.crashes_max,
        world.recoveries_max,
        world.twice_max,
        world.script
    );
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    for property in [OWNED, INSTANCE, ONCE] {
        checker.assert_no_discovery(property);
    }
    checker.assert_any_discovery("owned");
}

/// Asserts that without one check the property fails.
fn breaks(property: &'static str, world: World, without: impl FnOnce(&mut Checks)) {
    let mut world = world;
    without(&mut world.checks);
    let checker = world
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("the model does not need this check"));
    println!("{property}: broken after {} steps", path.into_actions().len());
}

#[test]
fn one_owner_while_messages_are_lost() {
    exhaust("three, lossy", lossy());
    exhaust("two, lossy", World { twice_max: 1, releases_max: 1, ..two() });
}

#[test]
fn one_instance_while_nothing_is_lost() {
    exhaust("three, timely", World { lossy: false, calls: vec![1, 2, 3], ..lossy() });
    exhaust("two, timely", World { lossy: false, releases_max: 2, calls: vec![1, 2, 1], ..two() });
}

#[test]
fn one_owner_while_clusters_crash_and_ranges_recover() {
    exhaust("three, crash", World { crashes_max: 1, ..lossy() });
    exhaust("three, recovery", World { recoveries_max: 1, ..lossy() });
    exhaust("crash", World { crashes_max: 1, releases_max: 1, ..two() });
    exhaust("recovery", World { recoveries_max: 1, ..two() });
}

/// Cluster 2 owns the actor or tries to, and leaves.
fn leaving() -> World {
    World {
        script: vec![Change::Drain(ClusterId(2)), Change::Drop(ClusterId(2))],
        calls: vec![2, 1],
        rounds_max: 2,
        ..two()
    }
}

#[test]
fn one_owner_while_a_cluster_joins_and_another_leaves() {
    exhaust("leaves", leaving());
    let three = World { clusters: 3, first: vec![1, 2, 3], mode: Mode::Pessimistic, ..leaving() };
    exhaust("three, one leaves", three);
    exhaust(
        "joins",
        World {
            mode: Mode::Pessimistic,
            clusters: 3,
            first: vec![1, 2],
            script: vec![Change::Add(ClusterId(3))],
            calls: vec![1, 3],
            ..leaving()
        },
    );
}

#[test]
fn without_numbered_rounds_a_late_pass_makes_two_owners() {
    breaks(OWNED, two(), |checks| checks.round = false);
}

#[test]
fn without_a_round_for_the_rerun_two_own() {
    breaks(OWNED, two(), |checks| checks.rerun_is_a_round = false);
}

#[test]
fn without_drain_the_one_that_left_still_owns() {
    breaks(OWNED, leaving(), |checks| checks.drain = false);
}

#[test]
fn without_numbered_configurations_the_one_that_joins_is_not_asked() {
    let world = World {
        clusters: 3,
        first: vec![1, 2],
        script: vec![Change::Add(ClusterId(3))],
        calls: vec![1, 3],
        ..leaving()
    };
    breaks(OWNED, world, |checks| checks.configuration = false);
}

#[test]
fn without_unknown_in_recovery_two_own() {
    breaks(OWNED, World { recoveries_max: 1, ..two() }, |checks| checks.recovery = false);
}

#[test]
fn without_the_rule_for_fail_two_have_instances() {
    breaks(INSTANCE, World { lossy: false, ..two() }, |checks| checks.fail = false);
}

#[test]
fn without_arbitration_two_own() {
    breaks(OWNED, two(), |checks| checks.arbitration = false);
}

#[test]
fn without_telling_what_ran_the_next_owner_runs_it_again() {
    let world = World { lossy: false, calls: vec![1, 3, 2], rounds_max: 1, releases_max: 1, ..lossy() };
    exhaust("an owner after another", world.clone());
    breaks(ONCE, world, |checks| checks.ran = false);
}

#[test]
fn without_waiting_for_the_decline_an_operation_runs_twice() {
    breaks(ONCE, two(), |checks| checks.declined = false);
}
