//! What the journal refuses: nothing is lost by it, nobody else waits, and nothing is tried without a pause.

use super::*;

/// As [`forward`], but 20 cannot bear 4.
fn poison(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if (message.to, message.body) == (20, 4) { Outcome::Failed("4".to_owned()) } else { forward(message, seen, birth) }
}

/// As [`World::settle`], for so many commits; whether it came to an end.
fn settles(world: &mut World, program: Program) -> bool {
    (0..200).any(|_| {
        if !world.pending.is_empty() {
            world.apply(0);
        }
        let told = world.owners.iter().position(|owner| !owner.outcomes.is_empty());
        told.into_iter().for_each(|index| world.hear(index, program));
        told.is_none() && world.pending.is_empty()
    })
}

#[test]
fn a_message_that_cannot_be_parked_waits_between_tries_and_only_its_actor_with_it() {
    let mut world = world(|_| {}, poison);
    world.unparkable.insert(4);
    for body in [4, 6, 3] {
        world.call(0, 10, body, poison);
    }
    world.settle(poison);
    deliver_to(&mut world, 1, poison);
    assert!(settles(&mut world, poison), "it is not tried without end");
    assert_eq!((world.processed(1, 20), world.processed(1, 21)), (vec![], vec![3]));
    let owner = world.owner(1);
    assert_eq!(world.owners[owner].machine.held(), 1, "an operator sees that something is wrong");
    let deadline = world.owners[owner].machine.deadline().expect("it is to be tried again");
    assert!(deadline > world.time(), "after a pause");
    world.now += 60_000;
    world.handle(owner, Event::Tick, poison);
    assert!(settles(&mut world, poison), "nor then");
    world.unparkable.clear();
    world.run(8, poison);
    assert_eq!((world.processed(1, 20), world.disks[1].parked.len()), (vec![6], 1));
    assert_eq!(world.owners[owner].machine.held(), 0);
}

/// 20 defers 4.
fn defers(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if message.to != 10 && message.body == 4 { Outcome::Deferred } else { forward(message, seen, birth) }
}

#[test]
fn a_message_that_cannot_be_deferred_is_parked_and_a_call_is_told() {
    let mut world = world(|_| {}, defers);
    world.undeferrable.insert(4);
    for body in [4, 6] {
        world.call(0, 10, body, defers);
    }
    world.settle(defers);
    deliver_to(&mut world, 1, defers);
    assert!(settles(&mut world, defers), "it is not tried without end");
    world.run(2, defers);
    assert_eq!((world.processed(1, 20), world.disks[1].parked.len()), (vec![6], 1));
    world.answers.clear();
    world.call(1, 21, 4, defers);
    assert!(settles(&mut world, defers), "nor is the call");
    assert!(world.answers.contains(&("4".to_owned(), Answer::Failed("too large".to_owned()))), "{:?}", world.answers);
}

#[test]
fn what_an_actor_did_after_a_refused_turn_is_undone_and_done_again() {
    let mut world = world(|_| {}, forward);
    world.unsendable.insert(2);
    // The first commit is under way, so the next turns share one; two of them are of one actor, and follow the one to blame.
    for (to, body) in [(11, 9), (10, 2), (10, 4), (10, 6), (12, 8)] {
        world.call(0, to, body, forward);
    }
    assert!(settles(&mut world, forward), "it comes to an end");
    world.run(4, forward);
    assert_eq!((world.processed(0, 10), world.processed(0, 12)), (vec![4, 6], vec![8]));
    assert_eq!(world.processed(1, 20), [4, 6]);
}

#[test]
fn turns_that_are_undone_are_suspected_no_longer_and_keep_no_timer_waiting() {
    use greenroom_protocols::reminders::Wall;

    /// 10 has 20 told of 2 later, and of all else at once.
    fn later(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
        let timer = |outgoing| Timer { due: Wall(5_000), slot: Slot::default(), outgoing, name: None };
        match (message.to, message.body) {
            (10, 2) => Outcome::Done(Effects { timers: vec![timer(send(1, 10, 20, 2))], ..Effects::default() }.into()),
            _ => forward(message, seen, birth),
        }
    }
    let mut world = world(|_| {}, later);
    world.call(0, 10, 2, later);
    world.settle(later);
    // The commit of 9 is under way, so 4 and 8 share one; that is refused, and 4 alone again, which undoes 8.
    for (to, body) in [(11, 9), (10, 4), (10, 8)] {
        world.call(0, to, body, later);
    }
    let owner = world.owner(0);
    world.apply(0);
    world.hear(owner, later);
    world.quick = false;
    for _ in 0..2 {
        world.refuse(0);
        world.hear(owner, later);
    }
    assert_eq!((world.pending.len(), world.owners[owner].running.len()), (0, 1), "4 runs again");
    world.now = 6_000;
    world.handle(owner, Event::Tick, later);
    let sent = world.pending.iter().flat_map(|pending| &pending.commit.2);
    assert!(sent.into_iter().any(|write| matches!(write, Write::Disarm { .. })), "the timer does not wait for it");
}
