//! The directory, checked exhaustively on small instances, and shown to break without each of its checks.
//!
//! The real machines of one range run under a membership that only makes views: nodes join and die in a script, each node
//! sees the newest view whenever it likes, and so skips some. Messages are never removed from the network: each may
//! be delivered at any time, in any order, never, or again and again. A node that was declared dead may go on until
//! its lease is over. Nothing forces a node to move, so every node may pause or crash anywhere.

mod world;

use std::time::{Duration, Instant};

use greenroom_protocols::checks::Checks;
use greenroom_protocols::directory::{RANGES, RangeId, owner};
use greenroom_protocols::node::{Member, NodeId, Status, View};
use stateright::{Checker, HasDiscoveries, Model};

use world::*;

/// The range whose owners are, of the node sets given, the nodes given.
fn range_where(owners: &[(&[u64], u64)]) -> RangeId {
    (0..RANGES)
        .map(RangeId)
        .find(|range| {
            owners.iter().all(|(active, wanted)| {
                let members = active
                    .iter()
                    .map(|id| (NodeId(*id), Member { status: Status::Active, ..Member::default() }))
                    .collect();
                owner(*range, &View { members, ..View::default() }) == Some(NodeId(*wanted))
            })
        })
        .expect("with 128 ranges every order of three nodes occurs")
}

/// Node 1 owns the range, then node 3 joins and takes it, then node 3 dies and node 1 has it again.
fn lost_and_regained() -> Cluster {
    Cluster {
        range: range_where(&[(&[1, 2], 1), (&[1, 2, 3], 3)]),
        nodes: 3,
        first: vec![1, 2],
        script: vec![Change::Join(3), Change::Die(3)],
        keys: 1,
        grants_max: 2,
        releases_max: 1,
        asks_max: 1,
        moves_max: 0,
        checks: Checks::default(),
    }
}

/// The owner dies; the one that inherits may have to ask.
fn owner_dies() -> Cluster {
    Cluster {
        range: range_where(&[(&[1, 2, 3], 1), (&[2, 3], 2)]),
        first: vec![1, 2, 3],
        script: vec![Change::Die(1)],
        ..lost_and_regained()
    }
}

/// The new owner of a range that moves dies before or after the hand-off, and a third one inherits.
fn owner_dies_while_another_joins() -> Cluster {
    Cluster {
        range: range_where(&[(&[1, 2], 1), (&[1, 2, 3], 3), (&[2, 3], 3)]),
        script: vec![Change::Join(3), Change::Die(1)],
        ..lost_and_regained()
    }
}

/// One after the other, two of three nodes die.
fn two_die() -> Cluster {
    Cluster { script: vec![Change::Die(1), Change::Die(2)], ..owner_dies() }
}

/// The range stays where it is, and actors come and go.
fn nothing_changes(keys: Key) -> Cluster {
    Cluster {
        range: range_where(&[(&[1, 2], 1)]),
        nodes: 2,
        first: vec![1, 2],
        script: Vec::new(),
        keys,
        grants_max: 3,
        releases_max: 2,
        asks_max: 0,
        moves_max: 0,
        checks: Checks::default(),
    }
}

fn exhaust(name: &str, cluster: Cluster) {
    let begun = Instant::now();
    let bounds = format!(
        "{} nodes, {} keys, {:?}, {} grants, {} releases, {} asks",
        cluster.nodes, cluster.keys, cluster.script, cluster.grants_max, cluster.releases_max, cluster.asks_max
    );
    let checker = cluster.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    checker.assert_no_discovery("no two nodes whose lease is open host the same actor");
    checker.assert_no_discovery("an epoch is one activation");
    checker.assert_no_discovery("a moved actor goes on from its last state");
    checker.assert_no_discovery("a state that left is somewhere while nobody died");
    checker.assert_no_discovery("what is held is not given up for another actor's end");
    if checker.model().moves_max > 0 {
        checker.assert_any_discovery("an actor arrives elsewhere");
    }
    if checker.model().releases_max > 0 {
        checker.assert_any_discovery("a released actor is activated again");
    }
    if !checker.model().script.is_empty() {
        checker.assert_any_discovery("all changes are seen and an actor is placed after them");
    }
}

/// An actor moves, and moves again, while it comes and goes.
fn moves() -> Cluster {
    Cluster { grants_max: 2, releases_max: 1, moves_max: 2, ..nothing_changes(1) }
}

/// An actor moves while another of its range comes and goes.
fn moves_beside_another() -> Cluster {
    Cluster { grants_max: 2, releases_max: 1, moves_max: 1, ..nothing_changes(2) }
}

/// An actor moves while its range's owner dies: source, target or neither.
fn moves_while_the_owner_dies() -> Cluster {
    Cluster { grants_max: 1, releases_max: 0, moves_max: 1, asks_max: 0, ..owner_dies() }
}

/// An actor moves while the range is handed over by an owner that drains.
fn moves_while_the_owner_drains() -> Cluster {
    Cluster { script: vec![Change::Drain(1)], ..moves_while_the_owner_dies() }
}

/// An actor moves while a joiner takes its range over.
fn moves_while_a_joiner_takes_the_range() -> Cluster {
    Cluster {
        grants_max: 1,
        releases_max: 1,
        moves_max: 1,
        asks_max: 0,
        script: vec![Change::Join(3)],
        ..lost_and_regained()
    }
}

/// The owner drains, then leaves; the range goes to another and comes to a newcomer.
fn owner_drains() -> Cluster {
    Cluster { script: vec![Change::Drain(1), Change::Die(1)], ..owner_dies() }
}

/// The range goes to a joiner that drains at once, and back.
fn a_joiner_drains() -> Cluster {
    Cluster { script: vec![Change::Join(3), Change::Drain(3)], ..lost_and_regained() }
}

/// Asserts that without one check the property fails.
fn breaks(name: &str, cluster: Cluster, without: impl FnOnce(&mut Checks)) {
    let mut cluster = cluster;
    without(&mut cluster.checks);
    let begun = Instant::now();
    let checker = cluster
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let broken = [
        "no two nodes whose lease is open host the same actor",
        "a moved actor goes on from its last state",
        "a state that left is somewhere while nobody died",
        "what is held is not given up for another actor's end",
    ];
    let path = broken.iter().find_map(|property| checker.discovery(property));
    let path = path.unwrap_or_else(|| panic!("{name}: the model does not need this check"));
    println!(
        "{name}: broken after {} steps, {} distinct states in {:?}",
        path.into_actions().len(),
        checker.unique_state_count(),
        begun.elapsed()
    );
}

#[test]
fn one_host_while_the_owner_changes_and_changes_back() {
    exhaust("lost and regained", lost_and_regained());
    exhaust("lost and regained", Cluster { grants_max: 3, releases_max: 2, asks_max: 0, ..lost_and_regained() });
}

#[test]
fn one_host_while_the_owner_dies() {
    exhaust("owner dies", Cluster { grants_max: 3, ..owner_dies() });
    exhaust("owner dies", Cluster { keys: 2, ..owner_dies() });
    exhaust("two die", two_die());
}

#[test]
fn one_host_while_a_node_joins_and_the_old_owner_dies() {
    exhaust("owner dies while another joins", owner_dies_while_another_joins());
}

#[test]
fn one_host_while_actors_come_and_go() {
    exhaust("come and go", Cluster { grants_max: 5, releases_max: 4, ..nothing_changes(1) });
    exhaust("come and go", nothing_changes(2));
}

#[test]
fn one_host_while_an_actor_moves() {
    exhaust("moves", moves());
    exhaust("moves beside another", moves_beside_another());
}

#[test]
fn one_host_while_an_actor_moves_and_the_owner_dies() {
    exhaust("moves while the owner dies", moves_while_the_owner_dies());
}

#[test]
fn one_host_while_an_actor_moves_and_its_range_is_handed_over() {
    exhaust("moves while the owner drains", moves_while_the_owner_drains());
    exhaust("moves while a joiner takes the range", moves_while_a_joiner_takes_the_range());
}

#[test]
fn one_host_while_owners_drain() {
    exhaust("owner drains", owner_drains());
    exhaust("a joiner drains", a_joiner_drains());
}

#[test]
fn without_the_exact_move_a_late_wish_brings_an_old_state_back() {
    breaks("exact_move", moves(), |checks| checks.exact_move = false);
}

#[test]
fn without_waiting_for_reports_a_move_makes_two() {
    breaks("move_wait", moves_while_the_owner_dies(), |checks| checks.move_wait = false);
}

#[test]
fn without_the_floor_of_its_time_what_is_held_is_given_up_for_another_actors_end() {
    breaks("held_floor", moves_beside_another(), |checks| checks.held_floor = false);
}

#[test]
fn without_the_epoch_check_a_late_grant_activates_twice() {
    breaks("epoch_check", nothing_changes(1), |checks| checks.epoch_check = false);
}

#[test]
fn without_the_exact_release_a_late_release_removes_the_successor() {
    breaks("exact_release", nothing_changes(1), |checks| checks.exact_release = false);
}

#[test]
fn without_the_view_check_a_former_owner_activates() {
    breaks("view_check", lost_and_regained(), |checks| checks.view_check = false);
}

#[test]
fn without_counting_skipped_views_a_regained_range_forgets() {
    breaks("skipped_views", lost_and_regained(), |checks| checks.skipped_views = false);
}

#[test]
fn without_waiting_for_reports_a_new_owner_activates_twice() {
    breaks("report_wait", owner_dies(), |checks| checks.report_wait = false);
}

#[test]
fn without_waiting_for_the_lease_the_dead_and_the_living_both_host() {
    breaks("lease_wait", owner_dies(), |checks| checks.lease_wait = false);
}

#[test]
fn without_the_view_of_a_refusal_a_state_is_dropped_that_the_new_owner_has_given_back() {
    let joins = Cluster { releases_max: 0, ..moves_while_a_joiner_takes_the_range() };
    breaks("void_view", joins, |checks| checks.void_view = false);
}

#[test]
fn without_reports_of_what_is_carried_a_state_is_lost_that_its_source_has_dropped() {
    breaks("transit_report", moves_while_the_owner_drains(), |checks| checks.transit_report = false);
}
