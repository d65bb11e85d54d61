//! Operators' acts on what is parked, and outputs that their outlet will not have.

use super::*;

/// As [`forward`], but 20 cannot bear 4.
fn poison(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if (message.to, message.body) == (20, 4) { Outcome::Failed("4".to_owned()) } else { forward(message, seen, birth) }
}

/// A world in which 4 is parked, and turns wait to be ended.
fn parked(checks: impl FnOnce(&mut Checks)) -> World {
    let mut world = world(checks, poison);
    for body in [2, 4, 6] {
        world.call(0, 10, body, poison);
    }
    world.run(4, poison);
    assert_eq!(world.disks[1].parked.len(), 1);
    world.quick = false;
    world
}

/// Ends what runs in partition 1, turn after turn.
fn end_all(world: &mut World) {
    loop {
        world.settle(forward);
        let owner = world.owner(1);
        let Some(turn) = world.owners[owner].running.keys().next().copied() else { return };
        world.end(owner, turn, forward);
    }
}

#[test]
fn a_parked_message_that_is_retried_twice_at_once_runs_once() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = parked(checks);
        world.wish(1, false);
        world.wish(1, false);
        let owner = world.owner(1);
        world.grant(owner, forward);
        world.grant(owner, forward);
        end_all(&mut world);
        assert!(world.disks[1].parked.is_empty());
        world.processed(1, 20) == [2, 6, 4]
    };
    needs(trace, |checks| checks.parked_once = false);
}

#[test]
fn a_retry_that_was_wished_before_another_one_was_done_does_nothing_after_it() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = parked(checks);
        world.wish(1, false);
        world.wish(1, false);
        let owner = world.owner(1);
        world.grant(owner, forward);
        end_all(&mut world);
        world.grant(owner, forward);
        end_all(&mut world);
        world.processed(1, 20) == [2, 6, 4]
    };
    needs(trace, |checks| checks.parked_once = false);
}

#[test]
fn of_a_retry_and_a_drop_at_once_the_first_is_done() {
    for drops_first in [false, true] {
        let trace = |checks: fn(&mut Checks)| {
            let mut world = parked(checks);
            world.wish(1, drops_first);
            world.wish(1, !drops_first);
            let owner = world.owner(1);
            world.grant(owner, forward);
            world.grant(owner, forward);
            end_all(&mut world);
            assert!(world.disks[1].parked.is_empty());
            let (processed, dead) = (world.processed(1, 20), world.dead.clone());
            if drops_first {
                processed == [2, 6] && dead == [(20, 4)]
            } else {
                processed == [2, 6, 4] && dead.is_empty()
            }
        };
        needs(trace, |checks| checks.parked_once = false);
    }
}

#[test]
fn a_retried_message_that_fails_again_lies_where_it_lay_and_may_be_retried_once_more() {
    let mut world = parked(|_| {});
    world.quick = true;
    let slot = *world.disks[1].parked.keys().next().expect("it is parked");
    world.wish(1, false);
    let owner = world.owner(1);
    world.grant(owner, poison);
    world.run(1, poison);
    assert_eq!(world.disks[1].parked.keys().collect::<Vec<_>>(), [&slot]);
    assert!(world.owners[owner].machine.is_parked(slot));
    world.wish(1, false);
    world.grant(owner, forward);
    world.run(1, forward);
    assert_eq!((world.processed(1, 20), world.disks[1].parked.len()), (vec![2, 6, 4], 0));
}

#[test]
fn a_retried_message_that_cannot_be_parked_again_lies_where_it_lay() {
    let mut world = parked(|_| {});
    world.quick = true;
    world.unparkable.insert(4);
    world.wish(1, false);
    let owner = world.owner(1);
    world.grant(owner, poison);
    world.run(1, poison);
    let slot = *world.disks[1].parked.keys().next().expect("it is parked");
    assert!(world.owners[owner].machine.is_parked(slot));
    assert_eq!((world.owners[owner].machine.queued(), world.owners[owner].machine.held()), (0, 0));
}

#[test]
fn a_drop_takes_the_message_and_asks_nothing_of_its_actor() {
    let mut world = parked(|_| {});
    world.take_over(1, true, forward);
    world.wish(1, true);
    world.grant(world.owner(1), forward);
    world.settle(forward);
    assert!(world.disks[1].parked.is_empty());
    assert_eq!((world.dead.clone(), world.processed(1, 20)), (vec![(20, 4)], vec![2, 6]));
    let owner = world.owner(1);
    assert!(!world.owners[owner].machine.forget(&20), "it is not read for that");
}

#[test]
fn a_drop_whose_commit_is_refused_may_be_wished_again() {
    let mut world = parked(|_| {});
    let owner = world.owner(1);
    world.wish(1, true);
    world.grant(owner, forward);
    world.refuse(0);
    world.settle(forward);
    assert_eq!(world.disks[1].parked.len(), 1);
    world.wish(1, true);
    world.grant(owner, forward);
    world.settle(forward);
    assert_eq!((world.disks[1].parked.len(), world.dead.clone()), (0, vec![(20, 4)]));
}

/// Every message becomes an output.
fn outputs(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(vec![Outgoing { to: Destination::Outside(0), ..send(1, message.to, 0, message.body) }])
}

/// What the outlet has got, in order.
fn got(world: &World) -> Vec<Payload> {
    world.outputs.iter().map(|(_, _, body)| *body).collect()
}

const OUTLET: Lane = Lane::Outside(0);

#[test]
fn an_output_that_its_outlet_has_not_taken_yet_keeps_only_its_own_actors_waiting() {
    let config = Config { first_credit: 16, lane_memory_max: 32, ..Config::default() };
    let mut world = World::new(config, 1, outputs);
    world.outlets = false;
    for body in 1..=60 {
        world.call(0, if body <= 3 { 10 } else { 11 }, body, outputs);
        world.settle(outputs);
    }
    let owner = world.owner(0);
    while let Some(index) = world.owners[owner].handed.iter().position(|(_, _, message)| message.from == Some(11)) {
        let handed = world.owners[owner].handed.remove(index);
        world.owners[owner].handed.push(handed);
        world.hand_over(owner, outputs);
    }
    assert_eq!(got(&world), (4..=60).collect::<Vec<_>>(), "all of the other actor's, in order");
    let waits: Vec<Payload> = world.owners[owner].handed.iter().map(|(_, _, message)| message.body).collect();
    assert_eq!(waits, [1], "one of an actor's at a time");
    assert_eq!(world.disks[0].logs[&OUTLET].before, 0);
    world.outlets = true;
    world.hand_over(owner, outputs);
    assert_eq!(got(&world)[57..], [1, 2, 3]);
    world.run(1, outputs);
    assert_eq!(world.disks[0].logs[&OUTLET].before, 60);
}

#[test]
fn an_output_that_is_refused_is_parked_and_what_comes_behind_it_leaves() {
    let mut world = World::new(Config::default(), 1, outputs);
    world.unwanted.extend([2, 3]);
    for body in 1..=5 {
        world.call(0, 10, body, outputs);
    }
    world.run(2, outputs);
    assert_eq!(got(&world), [1, 4, 5]);
    assert_eq!(world.disks[0].logs[&OUTLET].before, 5);
    let parked: Vec<_> = world.disks[0].parked.values().map(|parked| (parked.envelope.body, &*parked.error)).collect();
    assert_eq!(parked, [(2, "unwanted"), (3, "unwanted")]);
    world.take_over(0, true, outputs);
    world.run(2, outputs);
    assert_eq!(got(&world), [1, 4, 5], "what is parked is not handed over by the next owner");

    world.wish(0, false);
    world.wish(0, true);
    world.unwanted.remove(&2);
    let owner = world.owner(0);
    for _ in 0..4 {
        world.grant(owner, outputs);
    }
    world.run(1, outputs);
    assert_eq!(world.outputs.last(), Some(&(OUTLET, 2, 2)), "under its number, by which its receiver knows it");
    assert_eq!(world.disks[0].parked.len(), 1, "one is wanted now, the other one is not");
    assert_eq!(world.dead, [], "the drop came too late");
    world.wish(0, true);
    world.grant(owner, outputs);
    world.settle(outputs);
    assert_eq!((world.dead.clone(), world.disks[0].parked.len()), (vec![(0, 3)], 0));
}

#[test]
fn a_parked_output_is_not_handed_over_by_the_next_owner_although_its_lane_is_not_trimmed() {
    let mut world = World::new(Config::default(), 1, outputs);
    world.outlets = false;
    world.unwanted.insert(2);
    world.call(0, 10, 1, outputs);
    world.call(0, 11, 2, outputs);
    world.settle(outputs);
    let owner = world.owner(0);
    world.hand_over(owner, outputs);
    world.settle(outputs);
    assert_eq!((world.disks[0].parked.len(), world.disks[0].logs[&OUTLET].before), (1, 0));
    world.take_over(0, true, outputs);
    let owner = world.owner(0);
    let handed: Vec<Payload> = world.owners[owner].handed.iter().map(|(_, _, message)| message.body).collect();
    assert_eq!(handed, [1]);
}

#[test]
fn a_parked_output_that_is_dropped_does_not_come_back_although_its_owner_crashed_before_it_was_trimmed() {
    let mut world = World::new(Config::default(), 1, outputs);
    world.unwanted.insert(1);
    world.call(0, 10, 1, outputs);
    world.apply(0);
    world.hear(world.owner(0), outputs);
    world.apply(0);
    assert_eq!((world.disks[0].parked.len(), world.disks[0].logs[&OUTLET].before), (1, 0), "nobody has heard of it");
    world.take_over(0, true, outputs);
    assert_eq!(world.disks[0].logs[&OUTLET].before, 1);
    world.wish(0, true);
    world.grant(world.owner(0), outputs);
    world.settle(outputs);
    world.unwanted.clear();
    world.take_over(0, true, outputs);
    world.run(1, outputs);
    assert_eq!((got(&world), world.disks[0].parked.len()), (vec![], 0));
}

#[test]
fn an_outlet_is_not_patient_with_the_output_behind_one_that_it_refused() {
    let mut world = World::new(Config::default(), 1, outputs);
    world.outlets = false;
    for body in 1..=3 {
        world.call(0, 10, body, outputs);
    }
    world.settle(outputs);
    let owner = world.owner(0);
    let now = world.time();
    let mut patience = Vec::new();
    for refused in [true, false, false] {
        let (lane, number, _) = world.owners[owner].handed.pop().expect("it is handed over");
        let error = "unwanted".to_owned();
        let event = if refused { Event::Refused { lane, number, error } } else { Event::Delivered { lane, number } };
        let mut out = Vec::new();
        world.owners[owner].machine.handle(now, event, &mut out);
        if let Some(Action::Commit(commit)) = out.first().cloned() {
            assert!(!out.iter().any(|action| matches!(action, Action::Output { .. })), "not before it is parked");
            world.owners[owner].machine.handle(now, Event::Committed(commit.id), &mut out);
        }
        for action in out {
            if let Action::Output { lane, number, envelope, patient, .. } = action {
                patience.push(patient);
                world.owners[owner].handed.push((lane, number, envelope));
            }
        }
    }
    assert_eq!(patience, [false, true]);
}

#[test]
fn an_output_that_cannot_be_parked_is_handed_over_again() {
    let mut world = World::new(Config::default(), 1, outputs);
    world.outlets = false;
    world.unwanted.insert(1);
    world.unparkable.insert(1);
    world.call(0, 10, 1, outputs);
    world.settle(outputs);
    let owner = world.owner(0);
    for _ in 0..3 {
        world.hand_over(owner, outputs);
        world.settle(outputs);
        assert_eq!(world.owners[owner].handed.len(), 1, "it is neither lost nor given up");
    }
    world.unwanted.clear();
    world.hand_over(owner, outputs);
    assert_eq!(got(&world), [1]);
}
