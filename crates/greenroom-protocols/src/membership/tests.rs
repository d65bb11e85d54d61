mod names;
mod trouble;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::node::{KindInfo, Member, Status};

/// A cluster under one true time, with a store, and nodes whose clocks start and run differently.
struct World {
    /// True milliseconds.
    now: u64,
    table: Option<(Table, Etag)>,
    leases: BTreeMap<NodeId, (LeaseRecord, Etag)>,
    writes: u64,
    nodes: Vec<Process>,
    /// (member, joiner) indexes that do not reach each other.
    cut: BTreeSet<(usize, usize)>,
    died: BTreeSet<NodeId>,
}

struct Process {
    machine: Membership,
    /// Whether all checks are in force, so that nothing may go wrong.
    whole: bool,
    /// Origin of its clock, and its speed in thousandths.
    origin: u64,
    speed: u64,
    pending: Vec<Action>,
    paused: bool,
    store_down: bool,
    /// Whether the store takes no leases of it.
    unrenewed: bool,
    stopped: Option<StopReason>,
    view: Option<Arc<View>>,
    fences: Vec<Timestamp>,
}

impl World {
    fn new() -> Self {
        Self {
            now: 0,
            table: None,
            leases: BTreeMap::new(),
            writes: 0,
            nodes: Vec::new(),
            cut: BTreeSet::new(),
            died: BTreeSet::new(),
        }
    }

    /// A cluster of `count` active nodes named a, b, c and so on.
    fn settled(count: usize, config: &Config) -> Self {
        let mut world = Self::new();
        for i in 0..count {
            world.start(&"abcdef"[i..=i], config);
            world.run(2_000);
            assert_eq!(world.status(i), Some(Status::Active), "node {i} joins");
        }
        world
    }

    fn start(&mut self, name: &str, config: &Config) -> usize {
        let index = self.nodes.len();
        let member = Member { name: name.to_owned(), address: format!("{name}:1"), ..Member::default() };
        self.nodes.push(Process {
            machine: Membership::new(config.clone(), member),
            whole: config.checks == Checks::default(),
            origin: 1_000_000 * (5 - index.min(5) as u64),
            speed: [1_000, 1_004, 996][index % 3],
            pending: Vec::new(),
            paused: false,
            store_down: false,
            unrenewed: false,
            stopped: None,
            view: None,
            fences: Vec::new(),
        });
        index
    }

    fn id(&self, i: usize) -> NodeId {
        self.nodes[i].machine.me().expect("the node has joined")
    }

    fn status(&self, i: usize) -> Option<Status> {
        self.table.as_ref()?.0.status(self.nodes[i].machine.me()?)
    }

    /// The true time, in milliseconds, at which the clock of `i` shows `time`.
    fn truly(&self, i: usize, time: Timestamp) -> f64 {
        let node = &self.nodes[i];
        (time.as_nanos() as f64 / 1e6 - node.origin as f64) * 1000.0 / node.speed as f64
    }

    fn clock(&self, i: usize) -> Timestamp {
        let node = &self.nodes[i];
        Timestamp::from_nanos((node.origin * 1000 + self.now * node.speed) * 1000)
    }

    fn event(&mut self, i: usize, event: Event) {
        let now = self.clock(i);
        let mut out = Vec::new();
        self.nodes[i].machine.handle(now, event, &mut out);
        for action in out {
            let node = &mut self.nodes[i];
            match action {
                Action::Stop(reason) => node.stopped = Some(reason),
                Action::Publish(view) => node.view = Some(view),
                Action::SetFence { until } => node.fences.push(until),
                action => node.pending.push(action),
            }
        }
        self.check();
    }

    /// Performs the first pending action of `i`, and gives the answer without handing it over.
    fn perform(&mut self, i: usize, action: &Action) -> Option<Event> {
        if self.nodes[i].store_down
            && let Action::ReadTable { op } | Action::WriteTable { op, .. } | Action::RenewLease { op, .. } = action
        {
            return Some(Event::StoreFailed { op: *op });
        }
        if let (true, Action::RenewLease { op, .. }) = (self.nodes[i].unrenewed, action) {
            return Some(Event::StoreFailed { op: *op });
        }
        self.writes += 1;
        let etag = Etag(self.writes.to_string());
        match action {
            Action::ReadTable { op } => {
                Some(Event::TableRead { op: *op, table: self.table.clone(), leases: self.leases.clone() })
            }
            Action::WriteTable { op, table, expect } => {
                if *expect != self.table.as_ref().map(|(_, etag)| etag.clone()) {
                    return Some(Event::Conflict { op: *op });
                }
                for (id, row) in &table.rows {
                    assert!(
                        row.member.status == Status::Dead || !self.died.contains(id),
                        "a dead row is never revived"
                    );
                }
                let dead = table.rows.iter().filter(|(_, row)| row.member.status == Status::Dead);
                self.died.extend(dead.map(|(id, _)| *id));
                self.table = Some((table.clone(), etag.clone()));
                Some(Event::Written { op: *op, etag })
            }
            Action::RenewLease { op, record, expect } => {
                if *expect != self.leases.get(&record.node).map(|(_, etag)| etag.clone()) {
                    return Some(Event::Conflict { op: *op });
                }
                self.leases.insert(record.node, (*record, etag.clone()));
                Some(Event::Written { op: *op, etag })
            }
            Action::DeleteLease { node } => {
                self.leases.remove(node);
                None
            }
            Action::ProbeForJoin { node, .. } => {
                let asked = self.nodes.iter().position(|n| n.machine.me() == Some(*node))?;
                let up = !self.nodes[asked].paused && self.nodes[asked].stopped.is_none();
                // The dead say nothing.
                up.then(|| Event::JoinProbeAnswered { node: *node, reachable: !self.cut.contains(&(asked, i)) })
            }
            _ => None,
        }
    }

    /// Lets `i` go on until it waits.
    fn settle(&mut self, i: usize) {
        while !self.nodes[i].paused && !self.nodes[i].pending.is_empty() {
            let action = self.nodes[i].pending.remove(0);
            if let Some(event) = self.perform(i, &action) {
                self.event(i, event);
            }
        }
    }

    fn step(&mut self) {
        for i in 0..self.nodes.len() {
            if !self.nodes[i].paused && self.nodes[i].stopped.is_none() {
                if self.nodes[i].machine.deadline().is_some_and(|due| due <= self.clock(i)) {
                    self.event(i, Event::Tick);
                }
                self.settle(i);
            }
        }
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + millis;
        while self.now < end {
            self.step();
            self.now += 50;
        }
    }

    /// The first of: no fence outlives the time at which another node thinks that the lease is over.
    fn violation(&self) -> Option<String> {
        for (j, reader) in self.nodes.iter().enumerate() {
            let Some(view) = &reader.view else { continue };
            for (i, node) in self.nodes.iter().enumerate() {
                let (Some(id), Some(fence)) = (node.machine.me(), node.machine.fence()) else { continue };
                let Some(over) = view.lease_over(id) else { continue };
                let (over, fence) = (self.truly(j, over).max(self.now as f64), self.truly(i, fence));
                if fence > over + 0.001 && fence > self.now as f64 {
                    return Some(format!("{id} may start turns until {fence}, node {j} replaces it from {over}"));
                }
            }
        }
        None
    }

    fn check(&self) {
        if self.nodes.iter().all(|node| node.whole) {
            assert_eq!(self.violation(), None);
        }
    }

    fn suspect(&mut self, by: usize, of: usize) {
        let node = self.id(of);
        self.event(by, Event::Suspected { node });
        self.settle(by);
    }
}

fn without(remove: impl FnOnce(&mut Checks)) -> Config {
    let mut config = Config::default();
    remove(&mut config.checks);
    config
}

/// Node 2 of three pauses and is evicted; gives the worst violation met before it wakes.
fn pause_and_replace(config: &Config) -> (World, Option<String>) {
    let mut world = World::settled(3, config);
    world.nodes[2].paused = true;
    world.suspect(0, 2);
    world.suspect(1, 2);
    assert_eq!(world.status(2), Some(Status::Dead));
    let violation = world.violation();
    world.run(10_000);
    world.nodes[2].paused = false;
    (world, violation)
}

#[test]
fn m1_a_paused_node_starts_no_turn_after_its_replacement_may() {
    let (mut world, violation) = pause_and_replace(&Config::default());
    assert_eq!(violation, None);
    assert!(world.nodes[2].machine.fence().unwrap() < world.clock(2), "its fence passed while it slept");
    world.step();
    assert_eq!(world.nodes[2].stopped, Some(StopReason::LeaseRanOut));
    let (_, violation) = pause_and_replace(&without(|checks| checks.lease_wait = false));
    assert!(violation.is_some(), "without the wait for the lease both may run");
}

/// Each of two nodes suspects the other while both renew; whether both live.
fn two_suspect_each_other(config: &Config) -> bool {
    let mut world = World::settled(2, config);
    for _ in 0..20 {
        world.suspect(0, 1);
        world.suspect(1, 0);
        world.run(1_000);
    }
    (0..2).all(|i| world.status(i) == Some(Status::Active) && world.nodes[i].stopped.is_none())
}

#[test]
fn m2_two_nodes_of_two_do_not_evict_each_other_on_suspicion() {
    assert!(two_suspect_each_other(&Config::default()));
    assert!(!two_suspect_each_other(&without(|checks| checks.tie_break = false)));
}

#[test]
fn of_two_nodes_the_one_that_lost_the_store_is_evicted_by_its_lease() {
    let mut world = World::settled(2, &Config::default());
    world.nodes[1].store_down = true;
    world.suspect(0, 1);
    world.run(3_000);
    assert_eq!(world.status(1), Some(Status::Active));
    world.run(3_000);
    assert_eq!(world.status(1), Some(Status::Dead));
    assert_eq!(world.nodes[1].stopped, Some(StopReason::LeaseRanOut));
}

/// A renewal of node 2 is under way while it is evicted, and lands afterwards; whether it moved the fence.
fn late_renewal(config: &Config) -> bool {
    let mut world = World::settled(3, config);
    let renewal = loop {
        world.now += 50;
        world.event(2, Event::Tick);
        let pending = std::mem::take(&mut world.nodes[2].pending);
        if let Some(renewal) = pending.iter().find(|a| matches!(a, Action::RenewLease { .. })) {
            break renewal.clone();
        }
        world.nodes[2].pending = pending;
        world.settle(2);
    };
    world.nodes[2].paused = true;
    world.suspect(0, 2);
    world.suspect(1, 2);
    assert_eq!(world.status(2), Some(Status::Dead));
    let fences = world.nodes[2].fences.len();
    let event = world.perform(2, &renewal).expect("a renewal is answered");
    assert!(matches!(event, Event::Written { .. }), "the lease record does not know of the death");
    world.event(2, event);
    assert_eq!(world.status(2), Some(Status::Dead), "the row stays dead");
    world.nodes[2].fences.len() > fences
}

#[test]
fn m3_a_dead_generations_late_renewal_gives_it_nothing() {
    assert!(!late_renewal(&Config::default()));
    assert!(late_renewal(&without(|checks| checks.fresh_read = false)));
}

fn joins_though_cut_off(config: &Config) -> World {
    let mut world = World::settled(2, config);
    world.start("c", config);
    world.cut.insert((1, 2));
    world.run(8_000);
    world
}

#[test]
fn m4_a_joiner_that_a_member_cannot_reach_is_not_admitted() {
    let mut world = joins_though_cut_off(&Config::default());
    assert_eq!(world.status(2), Some(Status::Joining));
    assert_eq!(world.nodes[2].machine.awaited(), [world.id(1)]);
    world.cut.clear();
    world.run(2_000);
    assert_eq!(world.status(2), Some(Status::Active));
    let world = joins_though_cut_off(&without(|checks| checks.join_probe = false));
    assert_eq!(world.status(2), Some(Status::Active));
}

#[test]
fn m4_of_two_joiners_that_cannot_reach_each_other_one_is_admitted() {
    let mut world = World::settled(1, &Config::default());
    world.start("b", &Config::default());
    world.start("c", &Config::default());
    world.cut.extend([(1, 2), (2, 1)]);
    world.run(5_000);
    let active = (1..3).filter(|i| world.status(*i) == Some(Status::Active)).count();
    assert_eq!(active, 1);
}

/// Node 0 suspects node 2, and long afterwards node 1 does; whether node 2 is still alive.
fn two_suspicions_apart(config: &Config, millis: u64) -> bool {
    let mut world = World::settled(3, config);
    world.suspect(0, 2);
    world.run(millis);
    world.suspect(1, 2);
    world.run(2_000);
    world.status(2) == Some(Status::Active)
}

#[test]
fn m5_an_expired_suspicion_does_not_count() {
    assert!(two_suspicions_apart(&Config::default(), 11_000));
    assert!(!two_suspicions_apart(&Config::default(), 5_000));
    assert!(!two_suspicions_apart(&without(|checks| checks.suspicion_expiry = false), 11_000));
}

#[test]
fn m5_a_suspicion_of_unknown_age_does_not_count() {
    let mut world = World::settled(3, &Config::default());
    world.suspect(0, 2);
    world.run(30_000);
    world.start("d", &Config::default());
    world.run(2_000);
    world.suspect(3, 2);
    world.run(2_000);
    assert_eq!(world.status(2), Some(Status::Active));
}

#[test]
fn a_dead_voters_suspicion_does_not_count() {
    let mut world = World::settled(4, &Config::default());
    world.suspect(0, 3);
    world.event(0, Event::Leave);
    world.run(1_500);
    world.suspect(1, 3);
    world.run(1_500);
    assert_eq!(world.status(3), Some(Status::Active));
}

#[test]
fn nobody_waits_for_the_lease_of_a_node_that_left() {
    let mut world = World::settled(2, &Config::default());
    world.event(1, Event::Leave);
    world.run(1_500);
    assert_eq!(world.nodes[1].stopped, Some(StopReason::Left));
    assert_eq!(world.nodes[1].fences.last(), Some(&Timestamp::default()));
    assert!(world.nodes[0].machine.lease_over(world.id(1)).unwrap() <= world.clock(0));
}

#[test]
fn a_node_without_the_store_stops_by_its_fence_and_not_before() {
    let mut world = World::settled(1, &Config::default());
    world.nodes[0].store_down = true;
    world.run(2_500);
    assert_eq!(world.nodes[0].stopped, None);
    world.run(2_500);
    assert_eq!(world.nodes[0].stopped, Some(StopReason::LeaseRanOut));
}

#[test]
fn a_cluster_that_died_whole_starts_again_under_new_names() {
    let mut world = World::settled(2, &Config::default());
    world.nodes[0].paused = true;
    world.nodes[1].paused = true;
    world.start("c", &Config::default());
    world.run(8_000);
    assert_eq!(world.status(2), Some(Status::Active));
    assert_eq!(world.table.as_ref().unwrap().0.active().count(), 1);
}

#[test]
fn dead_rows_go_after_a_while_and_their_leases_with_them() {
    let mut world = World::settled(2, &Config::default());
    let left = world.id(1);
    world.event(1, Event::Leave);
    world.run(70_000);
    assert_eq!(world.table.as_ref().unwrap().0.status(left), None);
    assert!(!world.leases.contains_key(&left));
    assert_eq!(world.nodes[0].machine.lease_over(left), Some(Timestamp::default()));
}

#[test]
fn a_joiner_that_gave_up_is_cleared_away() {
    let mut world = World::settled(1, &Config::default());
    world.start("b", &Config::default());
    world.cut.insert((0, 1));
    world.run(3_000);
    world.nodes[1].paused = true;
    world.run(14_000);
    assert_eq!(world.status(1), Some(Status::Dead));
}

#[test]
fn a_newcomer_is_admitted_after_all_members_have_died_at_once() {
    let mut world = World::settled(2, &Config::default());
    world.nodes[0].paused = true;
    world.nodes[1].paused = true;
    world.start("c", &Config::default());
    world.run(3_000);
    assert_eq!(world.status(2), Some(Status::Joining), "their leases may still last");
    world.run(4_000);
    assert_eq!([0, 1, 2].map(|i| world.status(i)), [Some(Status::Dead), Some(Status::Dead), Some(Status::Active)]);
}

#[test]
fn a_single_process_needs_no_lease() {
    let config = Config { lease: None, ..Config::default() };
    let world = World::settled(1, &config);
    assert_eq!(world.nodes[0].fences, [Timestamp::NEVER]);
    assert!(world.leases.is_empty());
}

#[test]
fn results_of_an_operation_that_was_given_up_are_ignored() {
    let mut world = World::settled(1, &Config::default());
    world.now += 1_000;
    world.event(0, Event::Tick);
    let before = world.nodes[0].machine.clone();
    world.event(0, Event::Conflict { op: OpId(1) });
    world.event(0, Event::Written { op: OpId(2), etag: Etag::default() });
    assert_eq!(world.nodes[0].machine, before);
}

#[test]
fn the_default_lease_is_judged_over_after_its_length_and_the_drift() {
    let lease = LeaseTimes::default();
    assert_eq!(lease.judged_over(lease.length), Duration::from_millis(4_040));
}
