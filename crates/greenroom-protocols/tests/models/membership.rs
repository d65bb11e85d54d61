//! Membership, checked exhaustively on small instances, and shown to break without each of its checks.
//!
//! The real machines share one modelled store and one clock of a few ticks. Nothing forces a node to move: a request may
//! be performed at any later tick, a node may wake at any later tick, so every node may pause or crash anywhere. Within
//! bounds, a read sees the table long before the leases, a write's answer comes late, and a request that seemed to fail lands later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use greenroom_protocols::checks::Checks;
use greenroom_protocols::membership::{Action, Config, Etag, Event, LeaseRecord, LeaseTimes, Membership, Table};
use greenroom_protocols::node::{Member, NodeId, Status};
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

/// A small instance: who is there, who may do what, and how much may happen.
#[derive(Clone)]
struct Cluster {
    /// Nodes that are active at first, and nodes that then want to join.
    settled: usize,
    joiners: usize,
    /// Nodes that move by themselves, not only when they suspect.
    wakers: &'static [usize],
    /// Nodes whose requests are performed and answered at once.
    swift: &'static [usize],
    /// Whether renewals and probes are answered at once, and only the table is slow.
    prompt: bool,
    ticks_max: u64,
    /// (by, of) that may happen, once each.
    suspicions: &'static [(usize, usize)],
    delays_max: usize,
    failures_max: usize,
    /// Pairs that cannot reach each other.
    cut: &'static [(usize, usize)],
    /// Of two nodes, the second of which has the name of the first.
    namesakes: Option<(usize, usize)>,
    /// Whether the store refuses a write whose record has changed.
    swaps: bool,
    checks: Checks,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    now: u64,
    table: Option<(Table, Etag)>,
    leases: BTreeMap<NodeId, (LeaseRecord, Etag)>,
    nodes: Vec<Node>,
    suspected: BTreeSet<(usize, usize)>,
    delays: usize,
    failures: usize,
    died: BTreeSet<NodeId>,
    revived: bool,
    /// When the first of the namesakes last renewed its lease.
    renewed: u64,
    /// Whether the second has taken its place while that lease held.
    evicted: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    machine: Membership,
    stopped: bool,
    requests: Vec<Action>,
    /// Performed, but the answer is still on its way.
    answers: Vec<Event>,
    /// Given up by the node, but not by the network.
    lost: Vec<Action>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Tick,
    Wake(usize),
    Do(usize, usize),
    Delay(usize, usize),
    Answer(usize),
    Fail(usize, usize),
    Land(usize),
    Suspect(usize, usize),
}

impl Cluster {
    fn config(&self) -> Config {
        let tick = Duration::from_nanos;
        Config {
            lease: Some(LeaseTimes { length: tick(LEASE_TICKS), renew_every: tick(1), drift_permille: 0 }),
            poll_every: tick(1),
            retry_after: tick(1),
            store_timeout: tick(100),
            suspicion_expiry: tick(100),
            dead_kept: tick(100),
            checks: self.checks,
            ..Config::default()
        }
    }

    fn event(&self, state: &mut State, i: usize, event: Event) {
        let mut out = Vec::new();
        let node = &mut state.nodes[i];
        node.machine.handle(Timestamp::from_nanos(state.now), event, &mut out);
        for action in out {
            match action {
                Action::Stop(_) => {
                    node.stopped = true;
                    node.requests.retain(|action| matches!(action, Action::RenewLease { .. }));
                }
                Action::SetFence { .. } | Action::Publish(_) | Action::DeleteLease { .. } => {}
                Action::RenewLease { .. } => node.requests.insert(0, action),
                action if !node.requests.contains(&action) => node.requests.push(action),
                _ => {}
            }
        }
    }

    fn perform(&self, state: &mut State, i: usize, action: &Action) -> Option<Event> {
        match action {
            Action::ReadTable { op } => {
                Some(Event::TableRead { op: *op, table: state.table.clone(), leases: state.leases.clone() })
            }
            Action::WriteTable { op, table, expect } => {
                if self.swaps && *expect != state.table.as_ref().map(|(_, etag)| etag.clone()) {
                    return Some(Event::Conflict { op: *op });
                }
                for (id, row) in &table.rows {
                    match row.member.status {
                        Status::Dead => {
                            let fresh = state.died.insert(*id);
                            state.evicted |=
                                fresh && self.replaces(state, i, *id) && state.now < state.renewed + LEASE_TICKS;
                        }
                        _ => state.revived |= state.died.contains(id),
                    }
                }
                let etag = Etag(table.version.to_string());
                state.table = Some((table.clone(), etag.clone()));
                Some(Event::Written { op: *op, etag })
            }
            Action::RenewLease { op, record, expect } => {
                if *expect != state.leases.get(&record.node).map(|(_, etag)| etag.clone()) {
                    return Some(Event::Conflict { op: *op });
                }
                let etag = Etag(record.counter.to_string());
                state.leases.insert(record.node, (*record, etag.clone()));
                if self.namesakes.is_some_and(|(old, _)| old == i) {
                    state.renewed = state.now;
                }
                Some(Event::Written { op: *op, etag })
            }
            Action::ProbeForJoin { node, .. } => {
                let asked = state.nodes.iter().position(|n| n.machine.me() == Some(*node))?;
                let cut = self.cut.contains(&(asked, i)) || self.cut.contains(&(i, asked));
                Some(Event::JoinProbeAnswered { node: *node, reachable: !cut })
            }
            _ => None,
        }
    }

    /// Performs the requests of node `i` that are `due`, and those that follow from them.
    fn settle(&self, state: &mut State, i: usize, due: impl Fn(&Action) -> bool) {
        while let Some(k) = state.nodes[i].requests.iter().position(&due) {
            let action = state.nodes[i].requests.remove(k);
            if let Some(event) = self.perform(state, i, &action) {
                self.event(state, i, event);
            }
        }
    }

    /// Whether what node `i` writes is that it takes the place of `node`, which has its name.
    fn replaces(&self, state: &State, i: usize, node: NodeId) -> bool {
        self.namesakes.is_some_and(|(old, new)| i == new && state.nodes[old].machine.me() == Some(node))
    }

    fn violates_fence(state: &State) -> bool {
        let now = Timestamp::from_nanos(state.now);
        state.nodes.iter().any(|node| {
            let (Some(id), Some(fence)) = (node.machine.me(), node.machine.fence()) else { return false };
            fence > now && state.nodes.iter().any(|n| n.machine.lease_over(id).is_some_and(|over| over <= now))
        })
    }

    fn status(state: &State, i: usize) -> Option<Status> {
        state.table.as_ref()?.0.status(state.nodes[i].machine.me()?)
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let nodes = (0..self.settled + self.joiners).map(|i| {
            let name = match self.namesakes {
                Some((old, new)) if i == new => format!("node{old}"),
                _ => format!("node{i}"),
            };
            Node {
                machine: Membership::new(self.config(), Member { name, ..Member::default() }),
                stopped: false,
                requests: Vec::new(),
                answers: Vec::new(),
                lost: Vec::new(),
            }
        });
        let mut state = State {
            now: 0,
            table: None,
            leases: BTreeMap::new(),
            nodes: nodes.collect(),
            suspected: BTreeSet::new(),
            delays: 0,
            failures: 0,
            died: BTreeSet::new(),
            revived: false,
            renewed: 0,
            evicted: false,
        };
        for i in 0..self.settled {
            self.event(&mut state, i, Event::Tick);
            self.settle(&mut state, i, |_| true);
        }
        for i in 0..self.settled {
            self.event(&mut state, i, Event::HeardVersion(u64::MAX));
            self.settle(&mut state, i, |_| true);
            assert_eq!(Self::status(&state, i), Some(Status::Active));
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.now < self.ticks_max {
            steps.push(Step::Tick);
        }
        let now = Timestamp::from_nanos(state.now);
        for (i, node) in state.nodes.iter().enumerate() {
            if self.wakers.contains(&i) && node.machine.deadline().is_some_and(|due| due <= now) {
                steps.push(Step::Wake(i));
            }
            for (k, action) in node.requests.iter().enumerate() {
                steps.push(Step::Do(i, k));
                if !matches!(action, Action::ProbeForJoin { .. }) {
                    steps.extend((state.delays < self.delays_max).then_some(Step::Delay(i, k)));
                    steps.extend((state.failures < self.failures_max).then_some(Step::Fail(i, k)));
                }
            }
            if !node.answers.is_empty() {
                steps.push(Step::Answer(i));
            }
            if !node.lost.is_empty() {
                steps.push(Step::Land(i));
            }
        }
        steps.extend(
            self.suspicions.iter().filter(|s| !state.suspected.contains(s)).map(|(i, j)| Step::Suspect(*i, *j)),
        );
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Tick => state.now += 1,
            Step::Wake(i) => self.event(&mut state, i, Event::Tick),
            Step::Do(i, k) => {
                let action = state.nodes[i].requests.remove(k);
                if let Some(event) = self.perform(&mut state, i, &action) {
                    self.event(&mut state, i, event);
                }
            }
            Step::Delay(i, k) => {
                state.delays += 1;
                let action = state.nodes[i].requests.remove(k);
                let event = self.perform(&mut state, i, &action)?;
                state.nodes[i].answers.push(event);
            }
            Step::Answer(i) => {
                let mut event = state.nodes[i].answers.remove(0);
                if let Event::TableRead { leases, .. } = &mut event {
                    *leases = state.leases.clone();
                }
                self.event(&mut state, i, event);
            }
            Step::Fail(i, k) => {
                state.failures += 1;
                let action = state.nodes[i].requests.remove(k);
                let (Action::ReadTable { op } | Action::WriteTable { op, .. } | Action::RenewLease { op, .. }) = action
                else {
                    return None;
                };
                if !matches!(action, Action::ReadTable { .. }) {
                    state.nodes[i].lost.push(action);
                }
                self.event(&mut state, i, Event::StoreFailed { op });
            }
            Step::Land(i) => {
                let action = state.nodes[i].lost.remove(0);
                self.perform(&mut state, i, &action);
            }
            Step::Suspect(i, j) => {
                state.suspected.insert((i, j));
                let node = state.nodes[j].machine.me()?;
                self.event(&mut state, i, Event::Suspected { node });
            }
        }
        for i in 0..state.nodes.len() {
            self.settle(&mut state, i, |action| {
                let table = matches!(action, Action::ReadTable { .. } | Action::WriteTable { .. });
                self.swift.contains(&i) || (self.prompt && !table)
            });
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FENCED, |_, state: &State| !Self::violates_fence(state)),
            Property::always(DEAD, |_, state: &State| !state.revived),
            Property::always(NAMED, |_, state: &State| !state.evicted),
            Property::always(REACHED, |cluster: &Self, state: &State| {
                cluster
                    .cut
                    .iter()
                    .all(|(i, j)| [i, j].iter().any(|node| Self::status(state, **node) != Some(Status::Active)))
            }),
            Property::sometimes("a dead node may be replaced", |_, state: &State| {
                let now = Timestamp::from_nanos(state.now);
                state
                    .died
                    .iter()
                    .any(|id| state.nodes.iter().any(|n| n.machine.lease_over(*id).is_some_and(|over| over <= now)))
            }),
            Property::sometimes("a joiner is admitted", |cluster: &Self, state: &State| {
                (cluster.settled..state.nodes.len()).any(|i| Self::status(state, i) == Some(Status::Active))
            }),
        ]
    }
}

const LEASE_TICKS: u64 = 2;

const FENCED: &str = "a node's fence has passed before anyone may replace what it hosts";
const DEAD: &str = "a dead row is never revived";
const NAMED: &str = "a newcomer takes the place of no node of its name whose lease holds";
const REACHED: &str = "no two active nodes that cannot reach each other";

/// Of two nodes the first suspects the second, whose lease may run out.
fn two_nodes() -> Cluster {
    Cluster {
        settled: 2,
        joiners: 0,
        wakers: &[0, 1],
        swift: &[0],
        prompt: false,
        ticks_max: 4,
        suspicions: &[(0, 1)],
        delays_max: 0,
        failures_max: 0,
        cut: &[],
        namesakes: None,
        swaps: true,
        checks: Checks::default(),
    }
}

/// Each of two nodes may suspect the other.
fn two_suspect_each_other() -> Cluster {
    Cluster { ticks_max: 2, suspicions: &[(0, 1), (1, 0)], ..two_nodes() }
}

/// Two of three nodes vote the third out, whatever it is doing.
fn three_nodes() -> Cluster {
    Cluster { settled: 3, wakers: &[2], ticks_max: 3, suspicions: &[(0, 2), (1, 2)], ..two_nodes() }
}

/// Two nodes want to join a third at once, and cannot reach each other.
fn two_joiners() -> Cluster {
    Cluster {
        settled: 1,
        joiners: 2,
        wakers: &[1, 2],
        prompt: true,
        ticks_max: 1,
        suspicions: &[],
        cut: &[(1, 2)],
        ..two_nodes()
    }
}

/// A node joins that has the name of one of two that are there. It reads and writes at once, so that what it goes by is so.
fn one_name() -> Cluster {
    Cluster {
        joiners: 1,
        wakers: &[1, 2],
        swift: &[0, 2],
        ticks_max: 5,
        suspicions: &[],
        namesakes: Some((1, 2)),
        ..two_nodes()
    }
}

fn exhaust(name: &str, cluster: Cluster, reaches: &'static str) {
    let begun = Instant::now();
    let bounds = format!(
        "{}+{} nodes, {} ticks, {} suspicions, {} delays, {} failures",
        cluster.settled,
        cluster.joiners,
        cluster.ticks_max,
        cluster.suspicions.len(),
        cluster.delays_max,
        cluster.failures_max
    );
    let checker = cluster.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    checker.assert_no_discovery(FENCED);
    checker.assert_no_discovery(DEAD);
    checker.assert_no_discovery(NAMED);
    checker.assert_no_discovery(REACHED);
    checker.assert_any_discovery(reaches);
}

fn breaks(name: &str, property: &'static str, cluster: Cluster) {
    let begun = Instant::now();
    let checker = cluster
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{name}: the model does not need this check"));
    let steps = path.into_actions().len();
    println!(
        "{name}: broken after {steps} steps, {} distinct states in {:?}",
        checker.unique_state_count(),
        begun.elapsed()
    );
}

fn without(cluster: Cluster, remove: impl FnOnce(&mut Checks)) -> Cluster {
    let mut cluster = cluster;
    remove(&mut cluster.checks);
    cluster
}

#[test]
fn of_two_nodes_the_silent_one_is_replaced_after_its_fence() {
    exhaust("two nodes", two_nodes(), "a dead node may be replaced");
    exhaust("two nodes, delays", Cluster { delays_max: 1, ..two_nodes() }, "a dead node may be replaced");
    exhaust("two nodes, failures", Cluster { failures_max: 1, ..two_nodes() }, "a dead node may be replaced");
    exhaust(
        "two suspect each other",
        Cluster { ticks_max: 3, ..two_suspect_each_other() },
        "a dead node may be replaced",
    );
}

#[test]
fn of_three_nodes_the_one_voted_out_is_replaced_after_its_fence() {
    exhaust("three nodes", three_nodes(), "a dead node may be replaced");
    exhaust(
        "three nodes, delays",
        Cluster { ticks_max: 2, delays_max: 1, ..three_nodes() },
        "a dead node may be replaced",
    );
    exhaust(
        "three nodes, failures",
        Cluster { ticks_max: 2, failures_max: 1, ..three_nodes() },
        "a dead node may be replaced",
    );
}

#[test]
fn of_two_joiners_that_cannot_reach_each_other_one_is_admitted() {
    exhaust("two joiners", two_joiners(), "a joiner is admitted");
}

#[test]
fn a_newcomer_with_the_name_of_another_waits_until_its_lease_has_run_out() {
    exhaust("one name", one_name(), "a joiner is admitted");
    exhaust("one name, delays", Cluster { delays_max: 1, ..one_name() }, "a joiner is admitted");
    exhaust("one name, failures", Cluster { failures_max: 1, ..one_name() }, "a joiner is admitted");
}

#[test]
fn without_waiting_for_its_lease_a_newcomer_evicts_the_living_node_of_its_name() {
    breaks("name_wait", NAMED, without(one_name(), |checks| checks.name_wait = false));
}

#[test]
fn without_waiting_for_the_lease_the_dead_and_the_living_both_run() {
    breaks("lease_wait", FENCED, without(three_nodes(), |checks| checks.lease_wait = false));
}

#[test]
fn without_a_fresh_read_a_dead_nodes_late_renewal_moves_its_fence() {
    breaks("fresh_read", FENCED, without(three_nodes(), |checks| checks.fresh_read = false));
}

#[test]
fn without_the_join_probe_nodes_that_cannot_reach_each_other_are_both_active() {
    breaks("join_probe", REACHED, without(two_joiners(), |checks| checks.join_probe = false));
}

#[test]
fn without_compare_and_swap_a_stale_write_revives_a_dead_row() {
    breaks("compare and swap", DEAD, Cluster { swaps: false, ..two_suspect_each_other() });
}
