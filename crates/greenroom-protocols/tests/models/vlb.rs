//! Exhausts VLB (Geo §3.5): while its leader lives, every confirmed update is in the latest version exactly once.
//!
//! No instance goes back, one version is one state, and who refreshes sees all that anybody has seen before. Messages may come
//! late, in any order, or never. The leader is replaced: handed over while it lives, or after it failed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::time::Timestamp;
use greenroom_protocols::vlb::{
    Action, Checks, Config, Event, Leader, LeaderEpoch, Note, Participant, Session, Snapshot, Submission, Version,
    Versioned, Waiter,
};
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
    /// At which participant each update is enqueued.
    updates: Vec<u16>,
    resends_max: usize,
    /// Whether the old leader lives and is asked; if not, it fails.
    hands_over: bool,
    /// How often another leader is appointed.
    replaced: u64,
    /// How often an instance refreshes.
    refreshes: u64,
    /// Whether the instances know the first leader before they send it anything.
    met: bool,
    checks: Checks,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Message {
    Submission(Submission<u8>),
    Note(Session, Note<Log>),
    Collected(LeaderEpoch, Session, Snapshot<Log>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    leaders: BTreeMap<LeaderEpoch, Leader<Log>>,
    participants: BTreeMap<Session, Participant<Log>>,
    network: BTreeSet<Message>,
    enqueued: usize,
    own: BTreeMap<Session, Vec<u8>>,
    /// The updates that were confirmed, and under which leader.
    confirmed: BTreeSet<(u8, LeaderEpoch)>,
    resent: usize,
    appointed: u64,
    refreshed: u64,
    /// What anybody had seen when a refresh began.
    wanted: BTreeMap<Waiter, Version>,
    /// The last version that each instance has shown.
    shown: BTreeMap<Session, Version>,
    /// What each version was where it was seen.
    named: BTreeMap<Version, Log>,
    broken: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Enqueue,
    Deliver(Message),
    Resend(Session),
    Appoint,
    Learn(Session),
    Refresh(Session),
    Begin,
}

impl World {
    fn config(&self) -> Config {
        Config { resend_after: Duration::ZERO, collect_for: Duration::ZERO, checks: self.checks, ..Config::default() }
    }

    fn handle(&self, state: &mut State, id: Session, event: Event<Log>) {
        let mut out = Vec::new();
        let participant = state.participants.get_mut(&id).expect("only known participants are addressed");
        let before = participant.settled();
        participant.handle(Timestamp::default(), event, &mut out);
        let (epoch, now) = (participant.confirmed().version.epoch, participant.confirmed().version);
        for number in before..participant.settled() {
            state.confirmed.insert((state.own[&id][number as usize], epoch));
        }
        for action in out {
            match action {
                Action::Submit(submission) => _ = state.network.insert(Message::Submission(submission)),
                Action::Collected(epoch, from, found) => {
                    state.network.insert(Message::Collected(epoch, from, found));
                }
                Action::Done(waiter) if state.wanted.get(&waiter).is_some_and(|wanted| now < *wanted) => {
                    state.broken = Some(STALE);
                }
                Action::Outcome(..) | Action::Done(_) => {}
            }
        }
    }

    /// Looks at all versions that can be seen.
    fn look(state: &mut State) {
        for (id, participant) in &state.participants {
            let version = participant.confirmed().version;
            let shown = state.shown.insert(*id, version).unwrap_or_default();
            if version < shown {
                state.broken = Some(BACK);
            }
        }
        let seen = state.participants.values().map(Participant::confirmed);
        for Snapshot { version, state: log, .. } in seen.chain(state.leaders.values().filter_map(Leader::latest)) {
            if version.number > 0 && state.named.entry(*version).or_insert_with(|| log.clone()) != log {
                state.broken = Some(TWO);
            }
        }
    }

    fn appoint(&self, state: &mut State) {
        state.appointed += 1;
        let epoch = LeaderEpoch(state.appointed);
        let mut out = Vec::new();
        let mut instances: Vec<Session> = state.participants.keys().copied().collect();
        let old = state.leaders.values_mut().next_back();
        let handed = old.and_then(|old| self.hands_over.then(|| old.supersede(epoch)).flatten());
        if handed.is_some() {
            instances.push(OLD);
        }
        let mut leader = Leader::new(Timestamp::default(), epoch, instances, self.config(), &mut out);
        if let Some(snapshot) = handed {
            leader.collected(epoch, OLD, snapshot);
        } else if !self.hands_over {
            state.leaders.clear();
        }
        state.leaders.insert(epoch, leader);
        let known = out.into_iter().filter(|(to, _)| *to != OLD);
        state.network.extend(known.map(|(to, note)| Message::Note(to, note)));
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let ids = [session(1), session(2)];
        let mut state = State {
            leaders: BTreeMap::new(),
            participants: ids.iter().map(|id| (*id, Participant::new(*id, self.config()))).collect(),
            network: BTreeSet::new(),
            enqueued: 0,
            own: ids.iter().map(|id| (*id, Vec::new())).collect(),
            confirmed: BTreeSet::new(),
            resent: 0,
            appointed: 0,
            refreshed: 0,
            wanted: BTreeMap::new(),
            shown: BTreeMap::new(),
            named: BTreeMap::new(),
            broken: None,
        };
        self.appoint(&mut state);
        state.network.clear();
        for leader in state.leaders.values_mut() {
            leader.tick(Timestamp::default());
        }
        for id in ids.into_iter().filter(|_| self.met) {
            self.handle(&mut state, id, Event::Leader(LeaderEpoch(1)));
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.enqueued < self.updates.len() {
            steps.push(Step::Enqueue);
        }
        if state.appointed <= self.replaced {
            steps.push(Step::Appoint);
        }
        for (id, participant) in &state.participants {
            if participant.deadline().is_some() && state.resent < self.resends_max {
                steps.push(Step::Resend(*id));
            }
            if state.appointed > 1 {
                steps.push(Step::Learn(*id));
            }
            if state.refreshed < self.refreshes {
                steps.push(Step::Refresh(*id));
            }
        }
        if !self.hands_over && state.leaders.values().any(|leader| leader.deadline().is_some()) {
            steps.push(Step::Begin);
        }
        steps.extend(state.network.iter().cloned().map(Step::Deliver));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Enqueue => {
                let (id, update) = (session(self.updates[state.enqueued]), state.enqueued as u8);
                state.enqueued += 1;
                state.own.get_mut(&id)?.push(update);
                self.handle(&mut state, id, Event::Enqueue(update));
            }
            Step::Deliver(message) => {
                state.network.remove(&message);
                match message {
                    Message::Submission(submission) => {
                        let mut out = Vec::new();
                        for leader in state.leaders.values_mut() {
                            let joins = submission.epoch == LeaderEpoch::default();
                            if leader.epoch() == submission.epoch || joins || !self.checks.epoch {
                                leader.submitted(submission.clone(), &mut out);
                            }
                        }
                        let known = out.into_iter().filter(|(to, _)| *to != OLD);
                        state.network.extend(known.map(|(to, note)| Message::Note(to, note)));
                    }
                    Message::Note(to, note) => self.handle(&mut state, to, Event::Received(note)),
                    Message::Collected(epoch, from, found) => {
                        state.leaders.get_mut(&epoch)?.collected(epoch, from, found);
                    }
                }
            }
            Step::Resend(id) => {
                state.resent += 1;
                self.handle(&mut state, id, Event::Tick);
            }
            Step::Appoint => self.appoint(&mut state),
            Step::Learn(id) => {
                let epoch = LeaderEpoch(state.appointed);
                self.handle(&mut state, id, Event::Leader(epoch));
            }
            Step::Refresh(id) => {
                state.refreshed += 1;
                let seen = state.participants.values().map(|participant| participant.confirmed().version).max();
                state.wanted.insert(Waiter(state.refreshed), seen.unwrap_or_default());
                let waiter = Waiter(state.refreshed);
                self.handle(&mut state, id, Event::Refresh(waiter));
            }
            Step::Begin => {
                for leader in state.leaders.values_mut() {
                    leader.tick(Timestamp::default());
                }
            }
        }
        Self::look(&mut state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |world: &Self, state: &State| {
                let Some((epoch, leader)) = state.leaders.last_key_value() else { return true };
                let Some(latest) = leader.latest() else { return true };
                let times = |update: &u8| latest.state.0.iter().filter(|other| *other == update).count();
                latest.state.0.iter().all(|update| times(update) == 1)
                    && state
                        .confirmed
                        .iter()
                        .filter(|(_, under)| world.hands_over || under == epoch)
                        .all(|(update, _)| times(update) == 1)
            }),
            Property::always(TENTATIVE, |_, state: &State| {
                state.participants.values().all(|participant| {
                    let log = participant.tentative().0;
                    log.iter().collect::<BTreeSet<_>>().len() == log.len()
                })
            }),
            Property::always(BACK, |_, state: &State| state.broken != Some(BACK)),
            Property::always(TWO, |_, state: &State| state.broken != Some(TWO)),
            Property::always(STALE, |_, state: &State| state.broken != Some(STALE)),
            Property::sometimes("confirmed", |world: &Self, state: &State| {
                let confirmed: BTreeSet<u8> = state.confirmed.iter().map(|(update, _)| *update).collect();
                confirmed.len() == world.updates.len() && state.appointed == 1 + world.replaced
            }),
        ]
    }
}

const ONCE: &str = "every confirmed update is in the latest version exactly once, and no update twice";
const TENTATIVE: &str = "no instance sees an update twice";
const BACK: &str = "no instance goes back";
const TWO: &str = "a version is one state";
const STALE: &str = "who refreshes sees what anybody has seen before";
const OLD: Session = session(9);

const fn session(id: u16) -> Session {
    Session { cluster: ClusterId(id), epoch: 1 }
}

/// One leader that lives.
fn lives() -> World {
    World {
        updates: vec![1, 2, 1],
        resends_max: 2,
        hands_over: true,
        replaced: 0,
        refreshes: 0,
        met: true,
        checks: Checks::default(),
    }
}

fn handed_over() -> World {
    World { updates: vec![1, 2], resends_max: 1, replaced: 1, ..lives() }
}

fn fails() -> World {
    World { hands_over: false, ..handed_over() }
}

fn exhaust(name: &str, world: World) {
    let begun = Instant::now();
    let bounds = format!(
        "updates at {:?}, {} resends, hands over {}, met {}",
        world.updates, world.resends_max, world.hands_over, world.met
    );
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    checker.assert_no_discovery(ONCE);
    checker.assert_no_discovery(TENTATIVE);
    for property in [BACK, TWO, STALE] {
        checker.assert_no_discovery(property);
    }
    checker.assert_any_discovery("confirmed");
}

/// Asserts that without one check the property fails.
fn breaks(property: &'static str, world: World, without: impl FnOnce(&mut Checks)) {
    let mut world = world;
    without(&mut world.checks);
    let checker = world
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("the model does not need this check"));
    println!("{property}: broken after {} steps", path.into_actions().len());
}

#[test]
fn confirmed_once_while_the_leader_lives() {
    exhaust("lives", lives());
    exhaust("lives", World { met: false, ..lives() });
}

#[test]
fn confirmed_once_while_the_leader_hands_over() {
    exhaust("handed over", World { resends_max: 0, ..handed_over() });
    exhaust("handed over", World { updates: vec![1, 1], ..handed_over() });
    exhaust("handed over", World { met: false, resends_max: 0, ..handed_over() });
}

#[test]
fn confirmed_once_after_the_leader_failed() {
    exhaust("fails", World { resends_max: 0, ..fails() });
    exhaust("fails", World { updates: vec![1, 1], ..fails() });
    exhaust("fails", World { met: false, resends_max: 0, ..fails() });
}

#[test]
fn without_numbers_an_update_is_applied_twice() {
    breaks(ONCE, lives(), |checks| checks.numbers = false);
}

#[test]
fn without_epochs_the_old_leader_confirms_what_is_lost() {
    breaks(ONCE, handed_over(), |checks| checks.epoch = false);
}

#[test]
fn without_collecting_the_new_leader_forgets() {
    breaks(ONCE, handed_over(), |checks| checks.collect = false);
}

#[test]
fn a_refresh_is_linearizable_while_leaders_are_replaced() {
    exhaust("lives", World { updates: vec![1, 2], refreshes: 2, resends_max: 1, ..lives() });
    exhaust("handed over", World { updates: vec![1], refreshes: 1, resends_max: 0, ..handed_over() });
}

#[test]
fn confirmed_once_over_three_leaders() {
    exhaust("handed over", World { updates: vec![1], resends_max: 0, replaced: 2, ..handed_over() });
    exhaust("fail", World { updates: vec![1], resends_max: 0, replaced: 2, ..fails() });
    exhaust("fail, joining", World { updates: vec![1, 2], resends_max: 0, replaced: 1, met: false, ..fails() });
}

#[test]
fn without_asking_who_joins_a_leader_hides_what_that_one_has() {
    breaks(TWO, World { resends_max: 0, met: false, ..fails() }, |checks| checks.assume = false);
}
