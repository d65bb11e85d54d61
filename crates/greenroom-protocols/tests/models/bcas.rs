//! Exhausts BCAS (Geo §3.4) on two or three sessions: every confirmed update is in the state exactly once, in one order.
//!
//! The workers are activations of *one* cluster. A write may land at any time, also after it was given up or its writer crashed;
//! its answer may be true, lost, or a refusal of its own success. Notifications and batches may be late or lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use greenroom_protocols::bcas::{
    Action, Batch, Change, Checks, Config, Etag, Event, Record, Session, Version, Versioned, Waiter, Worker, Written,
};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

/// A state that shows what was applied, and in which order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
struct Log(Vec<u8>);

impl Versioned for Log {
    type Update = u8;
    type Output = ();
    type Error = ();

    fn apply(&mut self, update: &u8) -> Result<(), ()> {
        self.0.push(*update);
        Ok(())
    }
}

#[derive(Clone)]
struct World {
    /// Whether each worker is far from the store; the first one is the nearest.
    far: Vec<bool>,
    /// At which worker each update is enqueued.
    updates: Vec<u8>,
    attempts_max: usize,
    crashes_max: usize,
    lies_max: usize,
    notifies: bool,
    /// Whether each worker is of a cluster of its own, whose earlier sessions are collected.
    apart: bool,
    /// How often an instance refreshes, and the store goes back to an earlier record.
    refreshes_max: u64,
    restores_max: usize,
    checks: Checks,
}

type Write = (u8, Option<Etag>, Record<Log>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    workers: BTreeMap<u8, Worker<Log>>,
    sessions: BTreeMap<u8, Session>,
    store: Option<(Record<Log>, Etag)>,
    /// What each worker waits for: a read, or the write with this salt.
    accesses: BTreeMap<u8, Option<(Session, u64)>>,
    writes: BTreeSet<Write>,
    /// Answers under way, to the worker that waits for the write with this salt.
    answers: BTreeSet<(u8, (Session, u64), Option<Etag>)>,
    notes: BTreeSet<(u8, Record<Log>, Etag)>,
    batches: BTreeSet<Batch<u8>>,
    /// Word to the first worker that these sessions have ended, and who has looked for such.
    ended: BTreeSet<Session>,
    looked: BTreeSet<Session>,
    enqueued: usize,
    /// The updates of each worker that its present activation enqueued, by sequence number.
    own: BTreeMap<u8, Vec<u8>>,
    confirmed: BTreeSet<u8>,
    attempts: usize,
    crashed: usize,
    lied: usize,
    refreshed: u64,
    /// The version that the store had when a refresh began.
    wanted: BTreeMap<Waiter, Version>,
    restored: usize,
    /// The first record that was written.
    first: Option<Record<Log>>,
    /// The last version that each instance has shown.
    shown: BTreeMap<u8, Version>,
    /// What each version was where it was seen.
    named: BTreeMap<Version, Log>,
    broken: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Answer {
    True,
    Refused,
    Lost,
    Late,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Enqueue,
    Read(u8),
    Land(Write, Answer),
    Answer(u8, (Session, u64), Option<Etag>),
    GiveUp(u8),
    Note(u8, Record<Log>, Etag),
    Batch(Batch<u8>),
    Ended(Session),
    Tick(u8),
    Crash(u8),
    Refresh(u8),
    Restore(bool),
}

impl World {
    fn worker(&self, id: u8, epoch: u64) -> Worker<Log> {
        let config = Config {
            far: self.far[usize::from(id)],
            delegate_timeout: Duration::ZERO,
            retry_after: Duration::ZERO,
            delegates: self.apart,
            checks: self.checks,
            ..Config::default()
        };
        Worker::new(self.session(id, epoch), config)
    }

    fn session(&self, id: u8, epoch: u64) -> Session {
        Session { cluster: ClusterId(if self.apart { u16::from(id) + 1 } else { 1 }), epoch }
    }

    /// Who is far from the store in a cluster of its own begins without the record.
    fn begin(&self, state: &mut State, id: u8) {
        if !(self.apart && self.far[usize::from(id)]) {
            self.handle(state, id, Event::Refresh(Waiter(0)));
        }
    }

    fn handle(&self, state: &mut State, id: u8, event: Event<Log>) {
        let mut out = Vec::new();
        state.workers.get_mut(&id).expect("only known workers are addressed").handle(
            Timestamp::default(),
            event,
            &mut out,
        );
        for action in out {
            match action {
                Action::Read => _ = state.accesses.insert(id, None),
                Action::Write { expect, record, .. } => {
                    state.attempts += 1;
                    state.accesses.insert(id, Some(record.salt));
                    state.writes.insert((id, expect, record));
                }
                Action::Notify(record, etag) if self.notifies => {
                    let others = (0..self.far.len() as u8).filter(|other| *other != id);
                    state.notes.extend(others.map(|other| (other, record.clone(), etag.clone())));
                }
                Action::Delegate(batch) => _ = state.batches.insert(batch),
                Action::Outcome(sequence, _) => {
                    let update = state.own[&id][sequence as usize - 1];
                    state.confirmed.insert(update);
                }
                Action::Done(waiter) => {
                    let version = state.workers[&id].confirmed().1;
                    if state.wanted.get(&waiter).is_some_and(|wanted| version < *wanted) {
                        state.broken = Some(STALE);
                    }
                }
                Action::Trouble(_) if self.restores_max == 0 => state.broken = Some(TROUBLE),
                _ => {}
            }
        }
    }

    /// Who is shown a record first collects earlier sessions of its cluster, and tells who is near the store.
    fn collect(&self, state: &mut State) {
        if !self.apart {
            return;
        }
        let now: Vec<(u8, Session)> = (0..self.far.len() as u8).map(|id| (id, state.sessions[&id])).collect();
        for (id, own) in now {
            let worker = &state.workers[&id];
            if worker.record().is_none() || !state.looked.insert(own) {
                continue;
            }
            let earlier: Vec<Session> =
                worker.sessions().filter(|other| other.cluster == own.cluster && *other != own).collect();
            for session in earlier {
                state.ended.insert(session);
                self.handle(state, id, Event::Fenced(session));
            }
        }
    }

    /// Looks at all versions that can be seen.
    fn look(&self, state: &mut State) {
        for (id, worker) in &state.workers {
            let (log, version) = worker.confirmed();
            let shown = state.shown.insert(*id, version).unwrap_or_default();
            if version < shown {
                state.broken = Some(BACK);
            }
            // Who has not seen what was restored over goes on from there.
            if self.restores_max == 0 && state.named.entry(version).or_insert_with(|| log.clone()) != log {
                state.broken = Some(TWO);
            }
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let ids = 0..self.far.len() as u8;
        let mut state = State {
            workers: ids.clone().map(|id| (id, self.worker(id, u64::from(id) + 1))).collect(),
            sessions: ids.clone().map(|id| (id, self.session(id, u64::from(id) + 1))).collect(),
            store: None,
            accesses: BTreeMap::new(),
            writes: BTreeSet::new(),
            answers: BTreeSet::new(),
            notes: BTreeSet::new(),
            batches: BTreeSet::new(),
            ended: BTreeSet::new(),
            looked: BTreeSet::new(),
            enqueued: 0,
            own: ids.clone().map(|id| (id, Vec::new())).collect(),
            confirmed: BTreeSet::new(),
            attempts: 0,
            crashed: 0,
            lied: 0,
            refreshed: 0,
            wanted: BTreeMap::new(),
            restored: 0,
            first: None,
            shown: BTreeMap::new(),
            named: BTreeMap::new(),
            broken: None,
        };
        for id in ids {
            self.begin(&mut state, id);
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.enqueued < self.updates.len() {
            steps.push(Step::Enqueue);
        }
        for (id, access) in &state.accesses {
            match access {
                None => steps.push(Step::Read(*id)),
                Some(_) if state.lied < self.lies_max => steps.push(Step::GiveUp(*id)),
                Some(_) => {}
            }
        }
        for write in &state.writes {
            steps.push(Step::Land(write.clone(), Answer::True));
            if state.lied < self.lies_max && state.accesses.get(&write.0) == Some(&Some(write.2.salt)) {
                steps.push(Step::Land(write.clone(), Answer::Refused));
                steps.push(Step::Land(write.clone(), Answer::Lost));
                steps.push(Step::Land(write.clone(), Answer::Late));
            }
        }
        steps.extend(state.answers.iter().cloned().map(|(id, salt, etag)| Step::Answer(id, salt, etag)));
        steps.extend(state.notes.iter().cloned().map(|(to, record, etag)| Step::Note(to, record, etag)));
        steps.extend(state.batches.iter().cloned().map(Step::Batch));
        steps.extend(state.ended.iter().copied().map(Step::Ended));
        for (id, worker) in &state.workers {
            if worker.deadline().is_some() {
                steps.push(Step::Tick(*id));
            }
            if state.crashed < self.crashes_max {
                steps.push(Step::Crash(*id));
            }
            if state.refreshed < self.refreshes_max {
                steps.push(Step::Refresh(*id));
            }
        }
        if state.restored < self.restores_max && state.store.is_some() {
            steps.extend([Step::Restore(true), Step::Restore(false)]);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Enqueue => {
                let (id, update) = (self.updates[state.enqueued], state.enqueued as u8);
                state.enqueued += 1;
                state.own.get_mut(&id)?.push(update);
                self.handle(&mut state, id, Event::Enqueue(Change::Update(update)));
            }
            Step::Read(id) => {
                state.accesses.remove(&id);
                self.handle(&mut state, id, Event::Read(last.store.clone()));
            }
            Step::Land(write, answer) => {
                state.writes.remove(&write);
                let (id, expect, record) = write;
                let waits = state.accesses.get(&id) == Some(&Some(record.salt));
                let lands = state.store.as_ref().map(|(_, etag)| etag) == expect.as_ref();
                let etag = Etag(format!("{:?}", record.salt));
                if lands {
                    state.first.get_or_insert_with(|| record.clone());
                    state.store = Some((record, etag.clone()));
                }
                if waits && answer == Answer::Late {
                    state.lied += 1;
                    let salt = state.accesses[&id]?;
                    state.answers.insert((id, salt, lands.then_some(etag)));
                } else if waits {
                    state.accesses.remove(&id);
                    state.lied += usize::from(answer != Answer::True);
                    let written = match answer {
                        Answer::True if lands => Written::Applied(etag),
                        Answer::True | Answer::Refused => Written::Conflict,
                        Answer::Lost | Answer::Late => Written::Unknown,
                    };
                    self.handle(&mut state, id, Event::Written(written));
                }
            }
            Step::Answer(id, salt, etag) => {
                state.answers.remove(&(id, salt, etag.clone()));
                if state.accesses.get(&id) == Some(&Some(salt)) {
                    state.accesses.remove(&id);
                    let written = etag.map_or(Written::Conflict, Written::Applied);
                    self.handle(&mut state, id, Event::Written(written));
                }
            }
            Step::GiveUp(id) => {
                state.lied += 1;
                state.accesses.remove(&id);
                self.handle(&mut state, id, Event::Written(Written::Unknown));
            }
            Step::Note(to, record, etag) => {
                state.notes.remove(&(to, record.clone(), etag.clone()));
                self.handle(&mut state, to, Event::Notified(record, etag));
            }
            Step::Batch(batch) => {
                state.batches.remove(&batch);
                self.handle(&mut state, 0, Event::Delegated(batch));
            }
            Step::Ended(session) => {
                state.ended.remove(&session);
                self.handle(&mut state, 0, Event::Fenced(session));
            }
            Step::Tick(id) => self.handle(&mut state, id, Event::Tick),
            Step::Crash(id) => {
                state.crashed += 1;
                state.shown.remove(&id);
                state.accesses.remove(&id);
                state.own.insert(id, Vec::new());
                let epoch = 10 * state.crashed as u64 + u64::from(id);
                state.workers.insert(id, self.worker(id, epoch));
                state.sessions.insert(id, self.session(id, epoch));
                self.begin(&mut state, id);
            }
            Step::Refresh(id) => {
                state.refreshed += 1;
                let waiter = Waiter(state.refreshed);
                let version = state.store.as_ref().map(|(record, _)| record.version);
                state.wanted.insert(waiter, version.unwrap_or_default());
                self.handle(&mut state, id, Event::Refresh(waiter));
            }
            Step::Restore(first) => {
                state.restored += 1;
                let tag = Etag(format!("restored {}", state.restored));
                state.store = state.first.clone().filter(|_| first).map(|record| (record, tag));
            }
        }
        self.collect(&mut state);
        self.look(&mut state);
        (state != *last).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.attempts <= self.attempts_max
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| {
                let log = state.store.as_ref().map(|(record, _)| record.state.0.clone()).unwrap_or_default();
                let times = |update: &u8| log.iter().filter(|other| *other == update).count();
                let has_all = || state.confirmed.iter().all(|update| times(update) == 1);
                log.iter().all(|update| times(update) == 1) && (state.restored > 0 || has_all())
            }),
            Property::always(ORDER, |_, state: &State| {
                let log = state.store.as_ref().map(|(record, _)| record.state.0.clone()).unwrap_or_default();
                let sees = |worker: &Worker<Log>| log.starts_with(&worker.confirmed().0.0);
                state.restored > 0 || state.workers.values().all(sees)
            }),
            Property::always(BACK, |_, state: &State| state.broken != Some(BACK)),
            Property::always(TWO, |_, state: &State| state.broken != Some(TWO)),
            Property::always(STALE, |_, state: &State| state.broken != Some(STALE)),
            Property::always(TROUBLE, |_, state: &State| state.broken != Some(TROUBLE)),
            Property::sometimes("confirmed", |world: &Self, state: &State| {
                state.confirmed.len() == world.updates.len()
            }),
        ]
    }
}

const ONCE: &str = "every confirmed update is in the state exactly once, and no update twice";
const ORDER: &str = "every instance sees a prefix of the one order";
const BACK: &str = "no instance goes back";
const TWO: &str = "a version is one state";
const STALE: &str = "who refreshes sees what the store had";
const TROUBLE: &str = "a store that does not go back is not said to have done so";

/// Two sessions; answers lost, writes delayed, a crash.
fn two() -> World {
    World {
        far: vec![false, false],
        updates: vec![0, 1, 0],
        attempts_max: 5,
        crashes_max: 0,
        lies_max: 2,
        notifies: true,
        apart: false,
        refreshes_max: 0,
        restores_max: 0,
        checks: Checks::default(),
    }
}

fn exhaust(name: &str, world: World) {
    let begun = Instant::now();
    let bounds = format!(
        "{} sessions, updates at {:?}, {} writes, {} crashes, {} answers lost or false, far {:?}",
        world.far.len(),
        world.updates,
        world.attempts_max,
        world.crashes_max,
        world.lies_max,
        world.far
    );
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    checker.assert_no_discovery(ONCE);
    checker.assert_no_discovery(ORDER);
    for property in [BACK, TWO, STALE, TROUBLE] {
        checker.assert_no_discovery(property);
    }
    checker.assert_any_discovery("confirmed");
}

/// Asserts that without one check the property fails.
fn breaks(name: &str, world: World, without: impl FnOnce(&mut Checks)) {
    let mut world = world;
    without(&mut world.checks);
    let checker = world
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyOf([ONCE].into()))
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let path = checker.discovery(ONCE).unwrap_or_else(|| panic!("{name}: the model does not need this check"));
    println!("{name}: broken after {} steps", path.into_actions().len());
}

#[test]
fn confirmed_once_while_writes_are_late_and_answers_lost() {
    exhaust("late writes", World { updates: vec![0, 1, 0, 1], attempts_max: 6, ..two() });
}

#[test]
fn confirmed_once_while_an_activation_crashes() {
    exhaust("crash", World { crashes_max: 1, lies_max: 1, ..two() });
}

#[test]
fn confirmed_once_with_three_sessions() {
    let world = World { far: vec![false; 3], updates: vec![0, 1, 2], attempts_max: 4, notifies: false, ..two() };
    exhaust("three", world);
}

#[test]
fn confirmed_once_while_batches_are_delegated() {
    exhaust("delegated", World { far: vec![false, true], updates: vec![1, 0, 1], lies_max: 1, ..two() });
}

/// Clusters of which activations come and go, and collect the sessions of those before them.
fn forgetful() -> World {
    World {
        far: vec![false, true],
        updates: vec![1, 1, 0],
        crashes_max: 1,
        lies_max: 0,
        attempts_max: 4,
        apart: true,
        ..two()
    }
}

#[test]
fn confirmed_once_though_sessions_are_collected_while_their_batches_are_late() {
    exhaust("collected", forgetful());
    exhaust("collected, twice", World { updates: vec![1, 1, 1], crashes_max: 2, attempts_max: 3, ..forgetful() });
}

#[test]
fn without_a_floor_a_late_batch_of_a_collected_session_is_applied_twice() {
    breaks("floors", forgetful(), |checks| checks.floors = false);
}

#[test]
fn without_trimming_what_is_read_an_update_is_applied_twice() {
    let unchecked = |checks: &mut Checks| (checks.trim, checks.sequence) = (false, false);
    breaks("trim", World { notifies: false, ..two() }, unchecked);
}

#[test]
fn without_trimming_what_is_notified_an_update_is_applied_twice() {
    let unchecked = |checks: &mut Checks| (checks.trim_notified, checks.sequence) = (false, false);
    breaks("trim_notified", two(), unchecked);
}

#[test]
fn without_a_session_each_two_activations_lose_an_update() {
    breaks("own_session", two(), |checks| checks.own_session = false);
}

#[test]
fn collecting_a_session_that_is_not_fenced_applies_an_update_twice() {
    breaks("fenced", two(), |checks| checks.fenced = false);
}

#[test]
fn without_the_sequence_a_late_batch_is_applied_twice() {
    let world = World { far: vec![false, true], updates: vec![1], ..two() };
    breaks("sequence", world, |checks| checks.sequence = false);
}

#[test]
fn a_refresh_is_linearizable() {
    exhaust("refresh", World { updates: vec![0, 1], refreshes_max: 2, lies_max: 1, attempts_max: 4, ..two() });
}

#[test]
fn nothing_is_applied_twice_and_no_instance_goes_back_when_the_store_does() {
    let world = World { updates: vec![0, 1, 0], restores_max: 1, lies_max: 0, attempts_max: 6, ..two() };
    exhaust("restored", world.clone());
    exhaust("restored, delegated", World { far: vec![false, true], updates: vec![1, 0, 1], ..world });
}
