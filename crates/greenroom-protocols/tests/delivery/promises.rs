//! What delivery promises beside the traces: deferred messages, recorded answers, looser deliveries, timers.

use super::*;

/// 20 defers 4 until it has seen 6.
fn defer(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match (message.to, message.body) {
        (20, 4) if !seen.contains(&6) => Outcome::Deferred,
        (20, 6) => Outcome::Done(Effects { reconsider: true, ..Effects::default() }),
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
    let call = Call { key: "2".to_owned(), request: 99, recorded: true };
    let other = Envelope { from: None, to: 10, birth: None, creates: false, call: Some(call), body: 9 };
    world.handle(world.owner(0), Event::Called(other), forward);
    assert!(world.answers.contains(&("2".to_owned(), Answer::OtherRequest)));
}

#[test]
fn the_oldest_recorded_answers_are_forgotten() {
    let mut world = World::new(Config { answers_max: 3, ..Config::default() }, 2, forward);
    for body in 1..=5 {
        world.call(0, 10, body, forward);
        world.settle(forward);
    }
    assert_eq!(world.disks[0].answers.keys().collect::<Vec<_>>(), ["3", "4", "5"]);
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

/// Actor 10 lets 20 have the message later: 1 after 25 s, 2 after 45 s.
fn later(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let due = Wall(5_000 + 20_000 * u64::from(message.body));
    let timer = |outgoing| Timer { due, slot: Slot::default(), outgoing };
    match message.to {
        10 => {
            let timers = vec![timer(send(1, 10, 20, message.body))];
            Outcome::Done(Effects { timers, ..Effects::default() })
        }
        _ => done(Vec::new()),
    }
}

#[test]
fn a_timer_fires_once_when_it_is_due_also_under_the_next_owner() {
    let mut world = world(|_| (), later);
    world.call(0, 10, 1, later);
    world.call(0, 10, 2, later);
    world.settle(later);
    assert_eq!((world.disks[0].timers.len(), world.processed(1, 20)), (2, vec![]), "they wait in the journal");
    world.run(4, later);
    assert_eq!(world.processed(1, 20), [1]);
    world.take_over(0, true, later);
    world.run(2, later);
    assert_eq!((world.disks[0].timers.len(), world.processed(1, 20)), (0, vec![1, 2]));
    world.take_over(0, true, later);
    world.run(4, later);
    assert_eq!(world.processed(1, 20), [1, 2], "none fires twice");
}

#[test]
fn a_crash_before_the_commit_that_fires_a_timer_lets_the_next_owner_fire_it() {
    let mut world = world(|_| (), later);
    world.call(0, 10, 1, later);
    world.settle(later);
    world.now += 30_000;
    let owner = world.owner(0);
    world.handle(owner, Event::Tick, later);
    assert_eq!((world.pending.len(), world.network.len()), (1, 0), "nothing leaves before the commit");
    world.take_over(0, true, later);
    world.apply(0);
    assert_eq!(world.disks[0].timers.len(), 1, "the earlier owner's commit is refused");
    world.run(2, later);
    assert_eq!(world.processed(1, 20), [1]);
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
    assert_eq!(world.owners[owner].machine.deadline(), None, "there is nothing left to do");
}
