//! Newcomers that have the name of a node in the table, and why nodes are dead.

use super::*;
use crate::node::End;

/// Node 1 of two lives on while another process of its name starts; both after a while.
fn a_second_process(config: &Config) -> World {
    let mut world = World::settled(2, config);
    world.start("b", config);
    world.run(6_000);
    world
}

#[test]
fn a_second_process_with_a_living_nodes_name_is_refused_and_the_living_one_stays() {
    let world = a_second_process(&Config::default());
    assert_eq!(world.nodes[2].stopped, Some(StopReason::NameTaken(world.id(1))));
    assert_eq!(world.nodes[2].machine.me(), None, "it has no row");
    assert_eq!((world.status(1), world.nodes[1].stopped), (Some(Status::Active), None));
    let world = a_second_process(&without(|checks| checks.name_wait = false));
    assert_eq!(world.nodes[1].stopped, Some(StopReason::DeclaredDead), "without the wait it is evicted");
}

#[test]
fn of_two_newcomers_with_one_name_the_first_is_admitted_and_the_second_refused() {
    let mut world = World::settled(1, &Config::default());
    world.start("b", &Config::default());
    world.start("b", &Config::default());
    world.run(8_000);
    let [first, second] = [1, 2].map(|i| (world.nodes[i].machine.me(), world.nodes[i].stopped));
    assert!(matches!(first, (Some(_), None)), "{first:?}");
    assert_eq!(second, (None, first.0.map(StopReason::NameTaken)));
}

#[test]
fn a_dead_nodes_restart_comes_in_once_its_old_lease_has_run_out() {
    let mut world = World::settled(2, &Config::default());
    world.nodes[1].paused = true;
    let restarted = world.start("b", &Config::default());
    world.run(3_500);
    assert_eq!(world.status(1), Some(Status::Active), "it may still live");
    assert_eq!((world.nodes[restarted].machine.me(), world.nodes[restarted].stopped), (None, None));
    world.run(2_500);
    assert_eq!((world.status(1), world.status(restarted)), (Some(Status::Dead), Some(Status::Active)));
    assert!(world.id(1) < world.id(restarted), "it is a new incarnation");
    world.nodes[1].paused = false;
    world.run(500);
    assert_eq!(world.nodes[1].stopped, Some(StopReason::LeaseRanOut), "the old one was only asleep");
}

#[test]
fn a_restart_comes_in_at_once_where_its_old_row_is_dead() {
    let mut world = World::settled(3, &Config::default());
    world.nodes[2].paused = true;
    world.suspect(0, 2);
    world.suspect(1, 2);
    assert_eq!(world.status(2), Some(Status::Dead));
    let restarted = world.start("c", &Config::default());
    world.run(1_500);
    assert_eq!(world.status(restarted), Some(Status::Active));
}

#[test]
fn a_renewal_that_lands_after_its_node_died_keeps_no_restart_out() {
    let mut world = World::settled(2, &Config::default());
    let renewal = loop {
        world.now += 50;
        world.event(1, Event::Tick);
        let pending = std::mem::take(&mut world.nodes[1].pending);
        if let Some(renewal) = pending.iter().find(|action| matches!(action, Action::RenewLease { .. })) {
            break renewal.clone();
        }
        world.nodes[1].pending = pending;
        world.settle(1);
    };
    world.nodes[1].paused = true;
    let restarted = world.start("b", &Config::default());
    world.run(2_000);
    world.perform(1, &renewal);
    world.run(8_000);
    assert_eq!(world.nodes[restarted].stopped, None);
    assert_eq!(world.status(restarted), Some(Status::Active));
}

#[test]
fn a_row_whose_answer_was_lost_keeps_its_own_node_out_for_a_lease_only() {
    let mut world = World::settled(1, &Config::default());
    let late = world.start("b", &Config::default());
    world.event(late, Event::Tick);
    while world.table.as_ref().is_some_and(|(table, _)| table.called("b").next().is_none()) {
        let action = world.nodes[late].pending.remove(0);
        let answer = world.perform(late, &action).expect("the store answers");
        let lost = match action {
            Action::WriteTable { op, .. } => Event::StoreFailed { op },
            _ => answer,
        };
        world.event(late, lost);
    }
    assert_eq!(world.nodes[late].machine.me(), None);
    world.run(8_000);
    assert_eq!(world.status(late), Some(Status::Active));
}

/// Why the others think that node `i` is dead.
fn end(world: &World, i: usize) -> Option<End> {
    let view = world.nodes[0].view.as_ref()?;
    view.ends.get(&world.id(i)).copied()
}

#[test]
fn a_dead_node_is_told_apart_by_why_it_is_dead() {
    let mut world = World::settled(3, &Config::default());
    world.event(2, Event::Leave);
    world.run(1_500);
    assert_eq!(end(&world, 2), Some(End::Left));
    assert_eq!(end(&world, 1), None, "it lives");

    let mut world = World::settled(3, &Config::default());
    world.suspect(0, 2);
    world.suspect(1, 2);
    world.run(1_500);
    assert_eq!(end(&world, 2), Some(End::Silent));

    let mut world = World::settled(2, &Config::default());
    world.nodes[1].paused = true;
    world.run(5_000);
    world.suspect(0, 1);
    assert_eq!(end(&world, 1), Some(End::LeaseRanOut));

    let mut world = World::settled(2, &Config::default());
    world.nodes[1].paused = true;
    world.start("b", &Config::default());
    world.run(8_000);
    assert_eq!(end(&world, 1), Some(End::StartedAnew));
}

#[test]
fn an_end_in_words_of_a_later_program_is_read_as_unsaid() {
    assert_eq!(End::from("it was retired".to_owned()), End::Unsaid);
    assert_eq!(End::from(String::from(End::Silent)), End::Silent);
}
