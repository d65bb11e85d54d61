//! Removal of lost clusters over two cuts, checked exhaustively on a small instance, and shown to give two clusters one actor without each
//! of its rules.
//!
//! Each cluster is one node that owns a pessimistic actor. It gives it up when it is fenced, when its list removes it, and when it restarts. The
//! first cluster by number of each side of a cut removes all others as lost. A list reaches a cluster, and its table, at any time;
//! questions are asked and answered once in half of `lost_after`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use greenroom_protocols::cluster_list::{
    Action, Answer, Checks, ClusterList, Config, Event, ListKeeper, ListStep, StepRefused,
};
use greenroom_protocols::gsi::{ClusterId, Configuration, Standing};
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

/// An answer counts until the next look, and two looks later a removed cluster's time has run out.
const LOOK: Duration = Duration::from_millis(1020);
const LOST_AFTER: Duration = Duration::from_secs(2);

/// A set of clusters, one bit for each.
type Side = u8;

#[derive(Clone)]
struct Small {
    checks: Checks,
    clusters: u16,
    /// The sides that a cut parts from the others.
    cuts: Vec<Side>,
    cuts_max: u8,
    steps_max: u8,
    restarts_max: u8,
    looks_max: u8,
    /// True if tables outlast a restart of all nodes.
    durable: bool,
    /// The clusters that reach the store that the list is in, if it is in one.
    store: Option<Side>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    sites: Vec<Site>,
    side: Side,
    stored: Option<ClusterList>,
    looks: u8,
    cuts: u8,
    steps: u8,
    restarts: u8,
    /// Lists that were in force, by the number of the list before.
    in_force: BTreeMap<u64, BTreeSet<u64>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Site {
    keeper: ListKeeper,
    owns: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// The network parts this side from the others; 0 heals it.
    Cut(Side),
    /// A cluster hears which list another one works by.
    Hear(usize, usize),
    /// A cluster reads the list in the store.
    Read(usize),
    /// A cluster removes all that it cannot reach.
    Remove(usize),
    /// A cluster drops those whose time has run out.
    Drop(usize),
    /// All nodes of a cluster start anew.
    Restart(usize),
    /// All that reach each other ask, answer, and hear what the others have acknowledged.
    Look,
}

impl State {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(0) + LOOK * (u32::from(self.looks) + 1)
    }

    fn reaches(&self, one: usize, other: usize) -> bool {
        one != other && (self.side >> one & 1) == (self.side >> other & 1)
    }

    /// True if both are connected, and neither has removed the other.
    fn talk(&self, one: usize, other: usize) -> bool {
        let lists = |site: usize, of: usize| self.sites[site].keeper.list().is_member(id(of));
        self.reaches(one, other) && lists(one, other) && lists(other, one)
    }

    fn handle(&mut self, site: usize, event: Event) {
        let now = self.now();
        let mut out = Vec::new();
        self.sites[site].keeper.handle(now, event, &mut out);
        for action in out {
            match action {
                Action::Accept(list) => self.accept(site, list),
                Action::InForce(number) => {
                    let base = self.sites[site].keeper.list().base().0;
                    self.in_force.entry(base).or_default().insert(number.0);
                }
                // Looked at once all answers are in.
                Action::Fence(_) => {}
            }
        }
    }

    /// A fenced cluster gives up what it owns.
    fn give_up(&mut self) {
        for site in &mut self.sites {
            site.owns &= !site.keeper.is_fenced();
        }
    }

    fn accept(&mut self, site: usize, list: ClusterList) {
        let number = list.number();
        self.sites[site].owns &= list.is_member(id(site));
        self.handle(site, Event::Accepted(list));
        self.handle(site, Event::Acknowledged(id(site), number));
    }
}

fn id(site: usize) -> ClusterId {
    ClusterId(site as u16 + 1)
}

impl Small {
    fn config(&self) -> Config {
        Config { lost_after: LOST_AFTER, checks: self.checks }
    }

    fn given(&self) -> ClusterList {
        ClusterList::given(Configuration::new((0..usize::from(self.clusters)).map(id)))
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..usize::from(self.clusters)
    }

    fn reads_store(&self, site: usize) -> bool {
        self.store.is_some_and(|readers| readers >> site & 1 == 1)
    }

    fn silent(&self, state: &State, site: usize) -> BTreeSet<ClusterId> {
        self.all().filter(|other| *other != site && !state.reaches(site, *other)).map(id).collect()
    }

    /// True if a cluster makes the changes of its side: where the list is in a store any cluster does that reaches it.
    fn makes_changes(&self, state: &State, site: usize) -> bool {
        match (self.store, &state.stored) {
            (Some(_), Some(stored)) => self.reads_store(site) && stored == state.sites[site].keeper.list(),
            _ => {
                let keeper = &state.sites[site].keeper;
                keeper
                    .list()
                    .members()
                    .find(|first| *first == id(site) || state.reaches(site, usize::from(first.0) - 1))
                    == Some(id(site))
            }
        }
    }

    fn next_list(&self, state: &State, site: usize, step: &ListStep) -> Result<ClusterList, StepRefused> {
        let keeper = &state.sites[site].keeper;
        let first = keeper.list().members().next();
        let number =
            keeper.list().configuration.number_after(id(site), first != Some(id(site)) && self.store.is_none());
        keeper.step(step, number, &BTreeMap::new(), &self.silent(state, site))
    }

    fn removal(&self, state: &State, site: usize) -> ListStep {
        let members: BTreeSet<ClusterId> = state.sites[site].keeper.list().members().collect();
        ListStep::Lose(self.silent(state, site).intersection(&members).copied().collect())
    }
}

impl Model for Small {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let start = Timestamp::from_nanos(0);
        let list = self.given();
        let site =
            |at: usize| Site { keeper: ListKeeper::new(id(at), list.clone(), true, self.config(), start), owns: true };
        let mut state = State {
            sites: self.all().map(site).collect(),
            side: 0,
            stored: self.store.map(|_| list.clone()),
            looks: 0,
            cuts: 0,
            steps: 0,
            restarts: 0,
            in_force: BTreeMap::new(),
        };
        look(self, &mut state);
        state.give_up();
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.cuts < self.cuts_max {
            steps.extend(self.cuts.iter().filter(|side| **side != state.side).map(|side| Step::Cut(*side)));
        }
        for site in self.all() {
            let keeper = &state.sites[site].keeper;
            let adopts = |list: &ClusterList, in_force| {
                list.replaces(keeper.list(), in_force)
                    || !self.checks.one_vote && list.number() > keeper.list().number()
            };
            for other in self.all().filter(|other| state.talk(site, *other)) {
                let theirs = &state.sites[other].keeper;
                let same = theirs.list() == keeper.list() && theirs.is_in_force() && !keeper.is_in_force();
                if same || adopts(theirs.list(), theirs.is_in_force()) {
                    steps.push(Step::Hear(site, other));
                }
            }
            if self.reads_store(site) && state.stored.as_ref().is_some_and(|list| adopts(list, false)) {
                steps.push(Step::Read(site));
            }
            if self.makes_changes(state, site) && state.steps < self.steps_max {
                steps.extend(self.next_list(state, site, &self.removal(state, site)).map(|_| Step::Remove(site)));
            }
            if self.makes_changes(state, site) && keeper.due_step(state.now(), Duration::ZERO).is_some() {
                steps.push(Step::Drop(site));
            }
            if state.restarts < self.restarts_max {
                steps.push(Step::Restart(site));
            }
        }
        if state.looks < self.looks_max {
            steps.push(Step::Look);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Cut(side) => {
                state.cuts += 1;
                state.side = side;
            }
            Step::Hear(site, other) => {
                let theirs = &state.sites[other].keeper;
                let heard = Event::Heard { list: theirs.list().clone(), in_force: theirs.is_in_force() };
                state.handle(site, heard);
                let number = state.sites[site].keeper.list().number();
                state.handle(other, Event::Acknowledged(id(site), number));
            }
            Step::Read(site) => {
                let list = state.stored.clone()?;
                state.handle(site, Event::Heard { list, in_force: false });
            }
            Step::Remove(site) => {
                state.steps += 1;
                let list = self.next_list(&state, site, &self.removal(&state, site)).ok()?;
                state.stored = state.stored.map(|_| list.clone());
                state.accept(site, list);
            }
            Step::Drop(site) => {
                let list = self.next_list(&state, site, &ListStep::DropLost).ok()?;
                state.stored = state.stored.map(|_| list.clone());
                state.accept(site, list);
            }
            Step::Restart(site) => {
                state.restarts += 1;
                let now = state.now();
                let known = &state.sites[site].keeper;
                let (list, in_force) = match self.durable {
                    true => (known.list().clone(), known.is_in_force()),
                    false => (self.given(), true),
                };
                state.sites[site].owns = false;
                state.sites[site].keeper = ListKeeper::new(id(site), list, in_force, self.config(), now);
            }
            Step::Look => {
                state.looks += 1;
                look(self, &mut state);
            }
        }
        state.give_up();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no cluster owns that another one has dropped", |_, state: &State| {
                let dropped = |site: usize| {
                    state.sites.iter().any(|other| other.keeper.list().configuration.standing(id(site)).is_none())
                };
                !(0..state.sites.len()).any(|site| state.sites[site].owns && dropped(site))
            }),
            // A model in which no cluster owns anything shows nothing.
            Property::sometimes("a cluster owns after a second look", |_, state: &State| {
                state.looks > 1 && state.sites.iter().any(|site| site.owns)
            }),
            Property::always("one list follows another", |_, state: &State| {
                state.in_force.values().all(|lists| lists.len() < 2)
            }),
        ]
    }
}

/// All that talk to each other ask and answer, and hear what the others have acknowledged.
fn look(small: &Small, state: &mut State) {
    let now = state.now();
    let before = state.clone();
    for site in small.all() {
        for other in small.all().filter(|other| before.talk(site, *other)) {
            let theirs = &before.sites[other].keeper;
            let (number, base) = (theirs.list().number(), theirs.list().base());
            state.handle(site, Event::Answered(Answer { cluster: id(other), asked: now, number, base }));
            state.handle(site, Event::Acknowledged(id(other), number));
            if theirs.list() == before.sites[site].keeper.list() && theirs.is_in_force() {
                state.handle(site, Event::Heard { list: theirs.list().clone(), in_force: true });
            }
        }
        if let Some(stored) = before.stored.as_ref().filter(|_| small.reads_store(site)) {
            let named = stored.configuration.standing(id(site)).is_some_and(|standing| standing != Standing::Lost);
            if named {
                state.handle(site, Event::StoreRead { asked: now, number: stored.number() });
            }
        }
        state.handle(site, Event::Tick);
    }
}

const FIVE: Small = Small {
    checks: ALL,
    clusters: 5,
    cuts: Vec::new(),
    cuts_max: 2,
    steps_max: 2,
    restarts_max: 0,
    looks_max: 3,
    durable: true,
    store: None,
};

const ALL: Checks = Checks {
    in_force_by_majority: true,
    one_vote: true,
    confirmed_by_majority: true,
    list_before_confirms: true,
    answers_of_later_lists: true,
};

/// The first two, or three, clusters are cut off from the others.
const TWO: Side = 0b11;
const THREE: Side = 0b111;
/// The first cluster is cut off from all others.
const ONE: Side = 0b1;

fn checked(small: Small, until: HasDiscoveries) -> impl Checker<Small> {
    let checker = small.checker().threads(2).finish_when(until).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker
}

#[track_caller]
fn holds(small: Small) {
    let checker = checked(small, HasDiscoveries::AnyFailures);
    checker.assert_properties();
    assert!(checker.is_done(), "not all states were looked at");
}

#[track_caller]
fn breaks(small: Small, property: &'static str) {
    let checker = checked(small, HasDiscoveries::AllOf(BTreeSet::from([property])));
    let found = checker.discovery(property).expect("it does not break");
    println!("{:?}", found.into_actions());
}

const OWNERS: &str = "no cluster owns that another one has dropped";
const LISTS: &str = "one list follows another";

#[test]
fn over_two_cuts_of_five_clusters_a_removed_one_owns_nothing_once_it_is_dropped() {
    let cuts = vec![ONE, TWO, THREE, 0b1011];
    holds(Small { cuts, ..FIVE });
}

#[test]
fn a_cluster_that_acknowledges_is_cut_off_and_restarts_keeps_the_list_by_its_table() {
    holds(Small { cuts: vec![THREE, TWO], restarts_max: 1, ..FIVE });
}

#[test]
fn with_acknowledgements_in_memory_a_restart_gives_two_owners() {
    breaks(Small { cuts: vec![THREE, TWO], restarts_max: 1, durable: false, ..FIVE }, OWNERS);
}

#[test]
fn with_steps_from_lists_that_are_not_in_force_two_clusters_go_on_beside_three() {
    let checks = Checks { in_force_by_majority: false, ..ALL };
    breaks(Small { checks, cuts: vec![THREE, TWO], ..FIVE }, OWNERS);
}

#[test]
fn confirmed_by_any_answer_a_pair_goes_on_beside_those_that_removed_it() {
    let checks = Checks { confirmed_by_majority: false, ..ALL };
    breaks(Small { checks, cuts: vec![THREE], cuts_max: 1, ..FIVE }, OWNERS);
}

#[test]
fn confirmed_by_a_list_that_is_not_in_force_a_minority_goes_on_beside_those_that_removed_it() {
    let checks = Checks { list_before_confirms: false, ..ALL };
    breaks(Small { checks, cuts: vec![0b1011, TWO, THREE], ..FIVE }, OWNERS);
}

#[test]
fn with_more_than_one_vote_two_lists_follow_one() {
    let checks = Checks { one_vote: false, ..ALL };
    breaks(Small { checks, cuts: vec![THREE, TWO], ..FIVE }, LISTS);
}

#[test]
fn a_cluster_that_alone_reaches_the_store_does_not_remove_four_that_hear_each_other() {
    let small = Small { cuts: vec![ONE, TWO, THREE], store: Some(ONE), ..FIVE };
    holds(small.clone());
    let checks = Checks { in_force_by_majority: false, ..ALL };
    breaks(Small { checks, ..small }, OWNERS);
}

#[test]
fn two_pairs_or_two_clusters_do_not_remove_each_other() {
    for clusters in [2, 4] {
        let half = (1 << (clusters / 2)) - 1;
        let small = Small { clusters, cuts: vec![half, 0], ..FIVE };
        holds(small.clone());
        holds(Small { store: Some(ONE), ..small.clone() });
        let checks = Checks { in_force_by_majority: false, list_before_confirms: false, ..ALL };
        breaks(Small { checks, ..small }, OWNERS);
    }
}
