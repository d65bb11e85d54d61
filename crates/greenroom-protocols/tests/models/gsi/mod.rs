//! Exhausts GSI (Geo §3.1-3.3) on three clusters: Props. 3.1 and 3.2, and no operation run twice.
//!
//! Time passes only when a cluster forgets; all delays are zero, so whatever waits may go on at any moment. A message
//! that is not delivered is lost or slow. Where nothing is lost, an entry waits until no message of its cluster is
//! under way.

mod saves;
mod world;

use std::time::{Duration, Instant};

use greenroom_protocols::gsi::{Change, Checks, ClusterId, Home, Mode};
use stateright::{Checker, HasDiscoveries, Model};

use world::{HANDED, INSTANCE, ONCE, OWNED, Says, TOLD, World};

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
        yields_max: 0,
        crashes_max: 0,
        recoveries_max: 0,
        twice_max: 0,
        resends_max: 0,
        losses_max: 0,
        short: false,
        home: None,
        says: Says::Truth,
        switches: false,
        forgets_rounds: false,
        hears_lost: true,
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
        "{} clusters, {:?}, calls at {:?}, {} rounds, {} releases, {} crashes, {} recoveries, {} duplicates, {} sent again, {} unreachable, {:?}",
        world.clusters,
        world.mode,
        world.calls,
        world.rounds_max,
        world.releases_max,
        world.crashes_max,
        world.recoveries_max,
        world.twice_max,
        world.resends_max,
        world.losses_max,
        world.script
    );
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{name}: {bounds}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    for property in [OWNED, INSTANCE, ONCE, TOLD, HANDED] {
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
    exhaust("two, lossy", World { releases_max: 1, ..two() });
    exhaust("two, lossy, twice", World { twice_max: 1, releases_max: 1, rounds_max: 2, ..two() });
    exhaust("three, one unreachable", World { losses_max: 1, rounds_max: 1, ..lossy() });
    exhaust("unreachable", World { losses_max: 2, releases_max: 1, rounds_max: 2, ..two() });
}

#[test]
fn one_instance_while_nothing_is_lost() {
    exhaust("three, timely", World { lossy: false, calls: vec![1, 2, 3], ..lossy() });
    exhaust("two, timely", World { lossy: false, releases_max: 2, calls: vec![1, 2, 1], ..two() });
}

#[test]
fn one_owner_while_instances_give_way_to_other_clusters() {
    exhaust("three, lossy, yields", World { yields_max: 1, rounds_max: 1, ..lossy() });
    exhaust("two, lossy, yields", World { yields_max: 2, calls: vec![1, 2, 1], rounds_max: 2, ..two() });
    exhaust("two, timely, yields", World { lossy: false, yields_max: 2, calls: vec![1, 2, 1], ..two() });
    exhaust("yields, recovery", World { yields_max: 1, recoveries_max: 1, rounds_max: 2, ..two() });
}

#[test]
fn one_owner_while_clusters_crash_and_ranges_recover() {
    for mode in [Mode::Optimistic, Mode::Pessimistic] {
        let timely = World { mode, lossy: false, rounds_max: 3, ..lossy() };
        exhaust("three, timely, crash", World { crashes_max: 1, ..timely.clone() });
        exhaust("three, timely, recovery", World { recoveries_max: 1, ..timely });
    }
    let once = World { rounds_max: 1, ..lossy() };
    exhaust("three, crash", World { crashes_max: 1, ..once.clone() });
    exhaust("three, recovery", World { recoveries_max: 1, ..once });
    exhaust("three, crash, one", World { crashes_max: 1, calls: vec![1], ..lossy() });
    exhaust("three, recovery, one", World { recoveries_max: 1, calls: vec![1], ..lossy() });
    exhaust("crash", World { crashes_max: 1, releases_max: 1, rounds_max: 2, ..two() });
    exhaust("recovery", World { recoveries_max: 1, rounds_max: 2, ..two() });
}

/// The only instance of a pessimistic actor is reported to be in doubt, as its host was not told better.
fn in_doubt() -> World {
    World { mode: Mode::Pessimistic, says: Says::Doubt, recoveries_max: 1, rounds_max: 2, ..two() }
}

#[test]
fn one_instance_though_its_host_does_not_know_that_it_is_the_only_one() {
    exhaust("in doubt", in_doubt());
    exhaust("in doubt, three", World { clusters: 3, first: vec![1, 2, 3], rounds_max: 1, lossy: false, ..in_doubt() });
}

#[test]
fn without_unknown_in_doubt_two_have_instances() {
    breaks(INSTANCE, in_doubt(), |checks| checks.doubt = false);
}

/// The kind of an actor becomes pessimistic while a doubtful instance lives.
fn switching() -> World {
    World { switches: true, recoveries_max: 1, rounds_max: 2, ..two() }
}

#[test]
fn one_owner_while_a_kind_becomes_pessimistic() {
    exhaust("becomes pessimistic", switching());
}

#[test]
fn without_the_word_of_the_host_a_doubtful_instance_is_taken_for_owned() {
    breaks(OWNED, World { says: Says::Owned, ..switching() }, |_| {});
}

/// Cluster 3 joins, and takes part.
fn joining() -> Vec<Change> {
    vec![Change::Add(ClusterId(3)), Change::Admit(ClusterId(3))]
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
            script: joining(),
            calls: vec![1, 3],
            ..leaving()
        },
    );
}

#[test]
fn one_owner_while_a_cluster_never_comes_and_another_is_lost() {
    let world = World { mode: Mode::Pessimistic, clusters: 3, first: vec![1, 2], rounds_max: 1, ..leaving() };
    let never = vec![Change::Add(ClusterId(3)), Change::Drop(ClusterId(3))];
    exhaust("never comes", World { script: never, calls: vec![1, 3], ..world.clone() });
    let lost = [Change::Lose(ClusterId(2)), Change::Drop(ClusterId(2))];
    let meanwhile = [&[Change::Add(ClusterId(3))], &lost[..], &[Change::Admit(ClusterId(3))]].concat();
    exhaust("lost while another joins", World { script: meanwhile, calls: vec![1, 3], lossy: false, ..world });
}

/// A cluster that lives, and may own the actor, is taken out as lost.
fn lost() -> World {
    World {
        script: vec![Change::Lose(ClusterId(2)), Change::Drop(ClusterId(2))],
        mode: Mode::Pessimistic,
        calls: vec![2, 1],
        rounds_max: 2,
        ..two()
    }
}

#[test]
fn one_owner_though_a_cluster_lives_that_is_taken_out_as_lost() {
    exhaust("lost", World { clusters: 3, first: vec![1, 2, 3], rounds_max: 1, ..lost() });
    exhaust("lost of two", lost());
    exhaust("lost, unheard", World { hears_lost: false, ..lost() });
    exhaust("lost, at home", at_home(World { hears_lost: false, ..lost() }));
}

#[test]
fn without_a_fence_who_is_taken_for_lost_and_another_own() {
    breaks(OWNED, lost(), |checks| checks.lost = false);
}

#[test]
fn one_owner_while_clusters_crash_and_the_list_changes() {
    // In one round each that must be won: a message may be slow for ever, and that a round ends in silence adds nothing.
    let three = World { mode: Mode::Pessimistic, lossy: false, rounds_max: 1, ..lossy() };
    let joins = World { first: vec![1, 2], script: joining(), calls: vec![1, 3], ..three.clone() };
    exhaust("joins, crash", World { crashes_max: 1, ..joins.clone() });
    exhaust("joins, recovery", World { recoveries_max: 1, ..joins });
    let leaves = World { script: leaving().script, calls: vec![2, 1], ..three };
    exhaust("three, one leaves, crash", World { crashes_max: 1, ..leaves.clone() });
    exhaust("three, one leaves, recovery", World { recoveries_max: 1, ..leaves });
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
    let world = World { clusters: 3, first: vec![1, 2], script: joining(), calls: vec![1, 3], ..leaving() };
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

/// The owner forgets while a question is on its way, which is sent again.
fn forgetful() -> World {
    World { lossy: false, resends_max: 1, calls: vec![2, 1], ..two() }
}

#[test]
fn no_operation_runs_twice_whatever_is_forgotten() {
    exhaust("forgets, recovery", World { recoveries_max: 1, rounds_max: 1, lossy: true, ..forgetful() });
    exhaust("forgets, crash", World { crashes_max: 1, rounds_max: 1, lossy: true, ..forgetful() });
    exhaust("forgets, three", an_owner_forgets());
}

#[test]
fn without_carrying_once_what_a_lost_node_declined_runs_at_its_successor() {
    let world = World { recoveries_max: 1, rounds_max: 2, ..forgetful() };
    breaks(ONCE, world, |checks| (checks.carried_once, checks.whole) = (false, false));
}

#[test]
fn without_doubt_in_a_young_memory_what_a_lost_node_ran_runs_again() {
    breaks(ONCE, World { crashes_max: 1, rounds_max: 1, ..forgetful() }, |checks| checks.memory = false);
}

/// A cluster that runs an operation crashes, while another asks it; the next owner receives that operation late.
fn an_owner_forgets() -> World {
    World { lossy: false, crashes_max: 1, calls: vec![1, 3, 2], rounds_max: 1, ..lossy() }
}

#[test]
fn without_declining_what_began_before_an_operation_runs_at_two_owners() {
    breaks(ONCE, an_owner_forgets(), |checks| checks.whole = false);
}

#[test]
fn calls_end_once_and_truly_though_their_callers_give_up() {
    exhaust("short", World { short: true, releases_max: 1, rounds_max: 2, ..two() });
    exhaust("short, three", World { short: true, rounds_max: 1, ..lossy() });
}

/// A cluster crashes, and with it all that it knows of its rounds; what it has said is still on its way.
fn reborn() -> World {
    World { crashes_max: 1, rounds_max: 1, calls: vec![1, 2, 1], ..two() }
}

#[test]
fn one_owner_while_clusters_forget_their_rounds() {
    exhaust("reborn", World { lossy: false, ..reborn() });
}

#[test]
fn without_a_new_floor_a_late_pass_makes_two_owners() {
    breaks(OWNED, World { forgets_rounds: true, ..reborn() }, |_| {});
}

/// Clusters of which the second is the actor's home.
fn at_home(world: World) -> World {
    World { home: Some(Home::At(ClusterId(2), 0)), ..world }
}

/// The actor is at home in cluster 3 as soon as that has joined, and before in another one.
fn moving_in() -> World {
    World {
        clusters: 3,
        first: vec![1, 2],
        script: joining(),
        calls: vec![1, 3],
        home: Some(Home::At(ClusterId(3), 0)),
        ..leaving()
    }
}

#[test]
fn one_owner_where_actors_have_homes() {
    exhaust("home of three, lossy", at_home(World { rounds_max: 1, ..lossy() }));
    exhaust("home of three, recovery", at_home(World { recoveries_max: 1, calls: vec![1], rounds_max: 1, ..lossy() }));
    exhaust("home of two, crash", at_home(World { crashes_max: 1, rounds_max: 1, ..two() }));
    exhaust("home of two, release", at_home(World { releases_max: 1, rounds_max: 2, ..two() }));
}

#[test]
fn one_instance_where_actors_have_homes_and_nothing_is_lost() {
    exhaust("home of three, timely", at_home(World { lossy: false, calls: vec![1, 2, 3], ..lossy() }));
}

#[test]
fn one_owner_while_homes_move() {
    exhaust("home joins", World { rounds_max: 1, lossy: false, ..moving_in() });
    exhaust("home joins, lossy", World { rounds_max: 1, calls: vec![1], mode: Mode::Pessimistic, ..moving_in() });
    exhaust("home leaves", at_home(World { mode: Mode::Pessimistic, ..leaving() }));
}

#[test]
fn without_the_rule_for_homes_two_own() {
    breaks(OWNED, at_home(two()), |checks| checks.home = false);
}

#[test]
fn without_waiting_for_the_lease_the_new_home_and_the_old_one_own() {
    breaks(OWNED, World { rounds_max: 1, ..moving_in() }, |checks| checks.lease = false);
}
