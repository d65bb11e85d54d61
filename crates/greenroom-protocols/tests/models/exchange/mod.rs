//! The exchange, checked exhaustively on small instances, and shown to break without its rules.
//!
//! The machines of three nodes run with all that a network may do to their messages: each may come at any time, in any order,
//! twice, or never. Time passes in units, of which an answer may take one and sending two. An order waits for its actor's turn
//! for as long as it likes; an actor that has left comes within the unit. A node may crash, and an actor may end and be
//! activated elsewhere.

mod world;

use std::time::{Duration, Instant};

use greenroom_protocols::exchange::Checks;
use stateright::{Checker, HasDiscoveries, Model};

use world::*;

/// Two nodes whose actors want to be near each other, and a third that wants one of them.
fn mixed() -> World {
    World {
        actors: vec![(1, 1), (2, 2), (3, 3), (100, 1), (101, 2)],
        edges: vec![(1, 2, 10), (1, 3, 9), (1, 100, 1), (3, 101, 5)],
        offers_max: 2,
        time_max: 3,
        repeats_max: 0,
        crashes_max: 0,
        elsewhere_max: 0,
        delta: 2,
        credit: 1,
        declines: true,
        // Balance may put what talks apart: without it each move is for locality.
        checks: Checks { newcomers: false, ..Checks::default() },
    }
}

fn exhaust(name: &str, world: World) {
    let begun = Instant::now();
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    for property in [ALONE, BETWEEN, LOWER, LOCKS, BALANCE, REST] {
        checker.assert_no_discovery(property);
    }
    checker.assert_any_discovery(MOVED);
}

/// Asserts that without one rule the property fails.
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
    let states = checker.unique_state_count();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("the model does not need this rule ({states})"));
    println!("{property}: broken after {} steps, {states} states", path.into_actions().len());
}

/// Everybody wishes to be on node 2, which has room for a few.
fn crowd() -> World {
    World {
        actors: [(100, 2)]
            .into_iter()
            .chain((1..=3).map(|hash| (hash, 1)))
            .chain((4..=6).map(|hash| (hash, 3)))
            .chain((101..=103).map(|hash| (hash, 1)))
            .chain((105..=107).map(|hash| (hash, 3)))
            .collect(),
        edges: vec![(1, 100, 6), (2, 100, 5), (3, 100, 4), (4, 100, 6), (5, 100, 5), (6, 100, 4)],
        delta: 1,
        ..mixed()
    }
}

/// Three on each side would change places.
fn swap() -> World {
    World {
        actors: vec![(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (100, 1), (101, 2)],
        edges: vec![(1, 101, 7), (2, 101, 6), (3, 101, 5), (4, 100, 4), (5, 100, 3), (6, 100, 2)],
        offers_max: 1,
        ..mixed()
    }
}

#[test]
fn the_rules_hold_whatever_is_late_or_lost() {
    exhaust("mixed", World { time_max: 5, ..mixed() });
    exhaust("crowd", crowd());
    exhaust("swap", World { time_max: 5, ..swap() });
}

#[test]
fn the_rules_hold_when_messages_come_twice() {
    exhaust("mixed, doubled", World { repeats_max: 1, time_max: 2, ..mixed() });
    exhaust("crowd, doubled", World { repeats_max: 1, declines: false, time_max: 2, ..crowd() });
    exhaust("swap, doubled", World { repeats_max: 2, time_max: 5, ..swap() });
}

#[test]
fn the_rules_hold_when_a_node_crashes() {
    exhaust("mixed, crash", World { crashes_max: 1, ..mixed() });
    exhaust("swap, crash", World { crashes_max: 1, time_max: 5, ..swap() });
}

#[test]
fn the_rules_hold_when_an_actor_is_activated_elsewhere() {
    exhaust("swap, elsewhere", World { elsewhere_max: 1, ..swap() });
}

#[test]
fn the_rules_hold_while_an_empty_node_is_filled() {
    let fills = |world| World { checks: Checks::default(), ..world };
    exhaust("swap, filled", fills(World { time_max: 4, ..swap() }));
    exhaust("swap, filled, doubled", fills(World { repeats_max: 1, time_max: 3, ..swap() }));
    exhaust("crowd, filled", fills(World { time_max: 2, ..crowd() }));
}

#[test]
fn the_rules_hold_with_more_credit() {
    exhaust("swap, credit", World { credit: 2, time_max: 5, ..swap() });
    exhaust("crowd, credit", World { credit: 2, delta: 2, time_max: 2, ..crowd() });
}

#[test]
fn o1_who_proposes_and_grants_promises_an_actor_to_two() {
    breaks(ALONE, mixed(), |checks| checks.one_at_a_time = false);
}

#[test]
fn o2_without_changed_scores_two_pass_each_other() {
    breaks(LOWER, mixed(), |checks| checks.scores_change = false);
}

#[test]
fn o3_what_is_given_before_confirm_follows_who_has_gone() {
    breaks(LOWER, World { time_max: 4, ..mixed() }, |checks| checks.confirm = false);
}

#[test]
fn o4_an_answer_to_what_was_given_up_promises_an_actor_to_two() {
    let world = World { edges: vec![(1, 2, 10), (1, 3, 9), (2, 101, 2)], ..mixed() };
    breaks(ALONE, world, |checks| checks.in_hand = false);
}

#[test]
fn o6_without_locks_for_promises_a_node_is_filled_by_two() {
    breaks(REST, World { time_max: 1, ..crowd() }, |checks| checks.promises = false);
}

#[test]
fn o7_a_stale_candidate_moves_to_where_nobody_is() {
    breaks(LOWER, mixed(), |checks| checks.stale = false);
}

#[test]
fn o9_without_credit_one_side_gets_ahead() {
    breaks(BALANCE, swap(), |checks| checks.credit = false);
}

#[test]
fn o10_without_an_end_a_lock_stays() {
    breaks(LOCKS, World { time_max: 5, ..swap() }, |checks| checks.locks_end = false);
}

#[test]
fn o11_a_lock_that_ends_early_lets_two_fill_a_node() {
    let world = World { declines: false, ..crowd() };
    breaks(REST, world, |checks| checks.locks_outlive = false);
}

#[test]
fn o12_an_order_by_name_moves_what_is_elsewhere() {
    breaks(BETWEEN, World { elsewhere_max: 1, ..swap() }, |checks| checks.epochs = false);
}

#[test]
fn o13_an_offer_that_is_granted_twice_fills_a_node() {
    let world = World {
        actors: vec![(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (100, 1), (101, 2)],
        edges: vec![(1, 101, 3), (2, 100, 7), (3, 100, 7), (4, 100, 7), (5, 100, 7), (6, 100, 7)],
        offers_max: 1,
        repeats_max: 2,
        declines: false,
        delta: 1,
        ..mixed()
    };
    breaks(REST, world, |checks| checks.numbers = false);
}

#[test]
fn o14_an_order_without_a_deadline_meets_a_later_promise() {
    breaks(ALONE, World { time_max: 6, ..mixed() }, |checks| checks.deadlines = false);
}

#[test]
fn what_breaks_the_balance_does() {
    breaks(REST, World { time_max: 1, ..crowd() }, |checks| checks.balance = false);
}
