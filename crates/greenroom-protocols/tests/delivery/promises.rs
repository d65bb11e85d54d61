//! What delivery promises beside the traces: deferred messages, recorded answers, looser deliveries.

use super::*;

/// 20 defers 4 until it has seen 6.
fn defer(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match (message.to, message.body) {
        (20, 4) if !seen.contains(&6) => Outcome::Deferred,
        (20, 6) => Outcome::Done(Effects { reconsider: true, ..Effects::default() }.into()),
        _ => forward(message, seen, birth),
    }
}

#[test]
fn a_deferred_message_is_acknowledged_and_handled_once_when_its_time_comes() {
    let mut world = world(|_| {}, defer);
    for body in [4, 2] {
        world.call(0, 10, body, defer);
    }
    world.run(4, defer);
    assert_eq!(world.log(0, 1).before, 2, "deferral is its receipt");
    assert_eq!((world.fields(1, 20), world.disks[1].queues.len()), (&[2][..], 1));
    world.take_over(1, true, defer);
    world.run(4, defer);
    assert_eq!(world.fields(1, 20), [2]);
    world.call(0, 10, 6, defer);
    world.run(1, defer);
    world.take_over(1, true, defer);
    world.run(4, defer);
    assert_eq!((world.fields(1, 20), world.disks[1].queues.len()), (&[2, 6, 4][..], 0));
}

#[test]
fn a_repeated_call_gets_the_recorded_answer_also_from_the_next_owner() {
    let mut world = world(|_| {}, forward);
    world.call(0, 10, 2, forward);
    world.settle(forward);
    world.take_over(0, true, forward);
    world.answers.clear();
    world.call(0, 10, 2, forward);
    world.run(4, forward);
    assert_eq!((world.fields(0, 10), world.has_answer(2)), (&[2][..], true));
    let call = Call { key: "2".to_owned(), request: 99, as_written: None, recorded: true };
    let other = Message::new(Envelope { from: None, to: 10, birth: None, creates: false, call: Some(call), body: 9 });
    world.handle(world.owner(0), Event::Called(other), forward);
    assert!(world.answers.contains(&("2".to_owned(), Answer::OtherRequest)));
}

/// 10 defers everything but 9, which halts it.
fn defer_then_halt(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match message.body {
        9 => Outcome::Done(Effects { halts: true, ..Effects::default() }.into()),
        _ => Outcome::Deferred,
    }
}

#[test]
fn a_keyed_call_that_is_deferred_when_its_actor_halts_is_answered_and_its_key_is_free_again() {
    let halted = |crash: bool, together: bool| {
        let mut world = world(|_| {}, defer_then_halt);
        world.call(0, 10, 1, defer_then_halt);
        if !together {
            world.settle(defer_then_halt);
            assert_eq!(world.disks[0].queues.len(), 1, "it waits");
        }
        if crash {
            world.take_over(0, true, defer_then_halt);
        }
        world.call(0, 10, 9, defer_then_halt);
        world.settle(defer_then_halt);
        assert!(world.answers.contains(&("1".to_owned(), Answer::NoActor)), "{:?}", world.answers);
        let kept: Vec<_> = world.disks[0].answers.log.values().map(|recorded| &*recorded.key).collect();
        assert_eq!(kept, ["9"], "nothing is kept of it");
        assert!(world.disks[0].queues.is_empty());
        world.call(0, 10, 1, forward);
        world.run(4, forward);
        assert!(world.has_answer(1), "a repeat runs: the first did not");
        world.take_over(0, true, forward);
        world.answers.clear();
        world.call(0, 10, 1, forward);
        assert!(world.has_answer(1), "and is answered from then on");
    };
    for crash in [false, true] {
        halted(crash, false);
    }
    halted(false, true);
}

#[test]
fn a_deferred_call_is_known_to_wait_so_that_a_repeat_after_a_crash_does_not_run_beside_it() {
    let mut world = world(|_| {}, defer_then_halt);
    world.call(0, 10, 1, defer_then_halt);
    world.settle(defer_then_halt);
    world.take_over(0, true, defer_then_halt);
    world.call(0, 10, 1, forward);
    world.run(2, forward);
    assert_eq!(world.processed(0, 10), [], "the one that waits is the call");
    assert_eq!(world.disks[0].queues.len(), 1);
    world.take_over(0, true, forward);
    world.run(2, forward);
    assert_eq!((world.processed(0, 10), world.has_answer(1)), (vec![1], true));
}

/// Sends at least once to 20, at best once to 21, and to the outside.
fn loosely(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let loose = Outgoing { delivery: Delivery::AtLeastOnce, ..send(1, 10, 20, message.body) };
    let best = Outgoing { delivery: Delivery::BestEffort, ..send(1, 10, 21, message.body) };
    let outside = Outgoing { to: Destination::Outside(0), ..send(1, 10, 0, message.body) };
    done(if message.to == 10 { vec![loose, best, outside] } else { Vec::new() })
}

#[test]
fn looser_deliveries_promise_less_and_write_less() {
    let mut world = world(|_| {}, loosely);
    world.call(0, 10, 2, loosely);
    world.settle(loosely);
    assert_eq!(world.outputs, [(Lane::Outside(0), 1, 2)]);
    world.network.clear();
    world.run(4, loosely);
    assert!(world.fields(1, 20).contains(&2), "at least once");
    assert!(world.fields(1, 21).is_empty(), "lost at best effort");
    assert!(world.disks[1].receipts.is_empty(), "no receive record");
    let log = &world.disks[0].logs[&Lane::Loose(PartitionId(1))];
    assert_eq!((log.before, log.entries.len()), (1, 0));
}

#[test]
fn acknowledged_messages_are_trimmed_together_and_not_one_by_one() {
    let mut world = world(|_| {}, forward);
    for body in [2, 4, 6] {
        world.call(0, 10, body, forward);
        world.settle(forward);
        while !world.network.is_empty() {
            world.deliver(0, forward);
            world.settle(forward);
        }
    }
    assert_eq!(world.fields(1, 20), &[2, 4, 6][..]);
    assert_eq!(world.log(0, 1).before, 0, "all of them are acknowledged, and nothing is written for that yet");
    let owner = world.owner(0);
    assert!(world.owners[owner].machine.deadline().is_some(), "a trim is to come");
    world.now += 10_000;
    world.handle(owner, Event::Tick, forward);
    world.settle(forward);
    assert_eq!(world.log(0, 1).before, 3);
    let hour = world.time() + std::time::Duration::from_secs(3600);
    assert!(
        world.owners[owner].machine.deadline() > Some(hour),
        "there is nothing left to do but to forget the answers"
    );
}

#[test]
fn an_answered_question_is_not_asked_again_while_a_message_still_waits_for_its_turn() {
    let mut world = world(|_| {}, forward);
    world.quick = false;
    let arrives = |world: &mut World, to, birth, body| {
        let message = Message::new(Envelope { from: Some(30), to, birth, creates: false, call: None, body });
        world.handle(world.owner(1), Event::Arrived(Wire::Single(message)), forward);
    };
    for to in [20, 21] {
        arrives(&mut world, to, Some(BIRTH), 7);
    }
    arrives(&mut world, 21, None, 9);
    assert!(
        matches!(world.network[..], [(PartitionId(0), Wire::Ask { .. })]),
        "both ask the same: {:?}",
        world.network
    );
    for _ in ["question", "answer"] {
        world.deliver(0, forward);
        world.settle(forward);
    }
    assert_eq!(world.dead, [(20, 7)], "nothing was ever created, and 21 is busy");
    let owner = world.owner(1);
    let turn = *world.owners[owner].running.keys().next().expect("the turn of 9");
    world.end(owner, turn, forward);
    world.settle(forward);
    assert_eq!((&world.dead[..], &world.network[..]), (&[(20, 7), (21, 7)][..], &[][..]));
}
