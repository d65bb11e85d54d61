//! Lanes where numbers, rounds, credits and lives are unusual.

use super::*;

/// A batch from partition 0 to partition 1 with messages for 20, each with its number as its body.
fn batch(floor: u64, numbers: std::ops::RangeInclusive<u64>) -> Wire<Actor, Payload> {
    let envelope =
        |body| Message::new(Envelope { from: Some(10), to: 20, birth: None, creates: false, call: None, body });
    let (first, messages) = (*numbers.start(), numbers.map(|number| (number, envelope(number as Payload))).collect());
    let from = PartitionId(0);
    Wire::Batch(Batch {
        from,
        life: Life(1),
        epoch: Epoch(1),
        counted: true,
        round: 0,
        floor,
        first,
        messages,
        sent_before: Some(0),
    })
}

/// What an owner of partition 1 says to partition 0.
fn reply(epoch: u64, expected: u64, limit: u64) -> Wire<Actor, Payload> {
    Wire::Reply(Reply {
        from: PartitionId(1),
        life: Life(1),
        epoch: Epoch(epoch),
        to_life: Life(1),
        to_epoch: Epoch(1),
        counted: true,
        round: 0,
        low: 0,
        above: Vec::new(),
        expected,
        refused: false,
        limit,
    })
}

#[test]
fn what_the_sender_knows_to_be_acknowledged_is_not_waited_for() {
    let mut world = world(|_| {}, forward);
    let owner = world.owner(1);
    let nothing = std::ops::RangeInclusive::new(1, 0);
    world.handle(owner, Event::Arrived(batch(0, nothing)), forward);
    world.handle(owner, Event::Arrived(batch(3, 4..=4)), forward);
    world.settle(forward);
    assert_eq!(world.fields(1, 20), [4]);
}

#[test]
fn no_more_is_taken_than_the_window_holds() {
    let mut world = World::new(Config { window: 2, ..Config::default() }, 2, forward);
    world.quick = false;
    let owner = world.owner(1);
    world.handle(owner, Event::Arrived(batch(0, 1..=4)), forward);
    assert_eq!(world.owners[owner].machine.queued(), 2);
}

#[test]
fn who_was_refused_for_want_of_room_hears_when_there_is_room() {
    let mut world = World::new(Config { queued_max: 1, ..Config::default() }, 2, forward);
    world.quick = false;
    world.call(1, 21, 9, forward);
    let owner = world.owner(1);
    world.handle(owner, Event::Arrived(batch(0, 1..=1)), forward);
    world.network.clear();
    let turn = *world.owners[owner].running.keys().next().expect("the call runs");
    world.end(owner, turn, forward);
    world.settle(forward);
    let limits = world.network.iter().filter_map(|(to, wire)| match wire {
        Wire::Reply(reply) => Some((to.0, reply.limit)),
        _ => None,
    });
    assert_eq!(limits.collect::<Vec<_>>(), [(0, 1)]);
}

#[test]
fn what_a_receiver_had_above_its_mark_is_sent_again_when_it_has_lost_its_journal() {
    let mut world = World::new(Config { batch_max: 1, ..Config::default() }, 2, forward);
    for body in [2, 3] {
        world.call(0, 10, body, forward);
        world.settle(forward);
    }
    world.quick = false;
    deliver_to(&mut world, 1, forward);
    let owner = world.owner(1);
    let turn = *world.owners[owner].running.iter().find(|(_, message)| message.to == 21).expect("it runs").0;
    world.end(owner, turn, forward);
    world.settle(forward);
    deliver_to(&mut world, 0, forward);
    world.disks[1] = Disk { life: Life(2), epoch: world.disks[1].epoch, ..Disk::default() };
    world.quick = true;
    world.take_over(1, true, forward);
    world.run(6, forward);
    assert_eq!((world.fields(1, 20), world.fields(1, 21)), (&[2][..], &[3][..]));
}

#[test]
fn a_refusal_that_comes_twice_rewinds_once() {
    let mut world = world(|_| {}, forward);
    world.call(0, 10, 2, forward);
    world.settle(forward);
    world.network.clear();
    world.call(0, 10, 4, forward);
    world.settle(forward);
    deliver_to(&mut world, 1, forward);
    let (_, refusal) = world.network.pop().expect("the gap is refused");
    world.network.clear();
    let mut sent = Vec::new();
    for _ in 0..2 {
        world.handle(world.owner(0), Event::Arrived(refusal.clone()), forward);
        sent.push(world.network.drain(..).count());
    }
    assert_eq!(sent, [1, 0]);
}

#[test]
fn a_deferred_message_that_fails_each_time_is_parked() {
    fn program(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
        match (message.to, message.body) {
            (20, 4) if seen.contains(&6) => Outcome::Failed("4".to_owned()),
            (20, 4) => Outcome::Deferred,
            (20, 6 | 8) => Outcome::Done(Effects { reconsider: true, ..Effects::default() }.into()),
            _ => forward(message, seen, birth),
        }
    }
    let mut world = world(|_| {}, program);
    for body in [4, 6, 8] {
        world.call(0, 10, body, program);
        world.run(2, program);
    }
    assert_eq!((world.processed(1, 20), world.disks[1].parked.len()), (vec![6, 8], 1));
    assert!(world.disks[1].queues.is_empty());
}

#[test]
fn what_the_receiver_has_taken_is_asked_after_and_not_sent_again() {
    let mut world = world(|_| {}, forward);
    world.call(0, 10, 2, forward);
    world.settle(forward);
    world.network.extend(world.network.clone());
    world.quick = false;
    deliver_to(&mut world, 1, forward);
    deliver_to(&mut world, 0, forward);
    world.now += 10_000;
    world.handle(world.owner(0), Event::Tick, forward);
    let asked = world.network.iter().filter_map(|(_, wire)| match wire {
        Wire::Batch(batch) => Some(batch.messages.len()),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [0]);
}

#[test]
fn a_creation_under_the_key_of_an_actor_that_lives_is_a_dead_letter() {
    let mut world = world(|_| {}, create);
    world.call(0, 10, 1, create);
    world.run(2, create);
    let lives = world.disks[1].presences[&20];
    let again = Birth { serial: 9, ..BIRTH };
    let creation =
        Message::new(Envelope { from: Some(30), to: 20, birth: Some(again), creates: true, call: None, body: 1 });
    world.handle(world.owner(1), Event::Arrived(Wire::Single(creation)), create);
    world.run(2, create);
    assert_eq!((world.dead.clone(), world.disks[1].presences[&20]), (vec![(20, 1)], lives));
    assert_eq!(world.processed(1, 20), [1]);
}

#[test]
fn a_best_effort_message_that_finds_no_room_is_a_dead_letter() {
    let mut world = World::new(Config { queued_max: 1, ..Config::default() }, 2, forward);
    world.quick = false;
    for body in [2, 4] {
        let single = Message::new(Envelope { from: Some(10), to: 20, birth: None, creates: false, call: None, body });
        world.handle(world.owner(1), Event::Arrived(Wire::Single(single)), forward);
    }
    assert_eq!(world.dead, [(20, 4)]);
}

#[test]
fn a_new_owners_limit_counts_and_not_the_one_before() {
    let mut world = world(|_| {}, forward);
    world.call(0, 10, 2, forward);
    world.settle(forward);
    for said in [reply(1, 1, 100), reply(2, 1, 5)] {
        world.handle(world.owner(0), Event::Arrived(said), forward);
    }
    for body in 3..40 {
        world.call(0, 10, body, forward);
    }
    world.settle(forward);
    assert!(highest_sent(&world) <= 8, "{}", highest_sent(&world));
}

#[test]
fn what_a_later_owner_has_trimmed_is_not_read_again_at_once() {
    let trace = |checks: fn(&mut Checks)| {
        let mut config = Config { lane_memory_max: 2, ..Config::default() };
        checks(&mut config.checks);
        let mut world = World::new(config, 2, forward);
        (1..=5).for_each(|body| world.call(0, 10, body, forward));
        world.settle(forward);
        let owner = world.owner(0);
        let (now, retransmit) = (world.time(), world.config.retransmit);
        let mut tell = |now, event| {
            let mut out = Vec::new();
            world.owners[owner].machine.handle(now, event, &mut out);
            out.into_iter().filter(|action| matches!(action, Action::Page { .. })).collect::<Vec<_>>()
        };
        let low = |low| match reply(1, 6, 8) {
            Wire::Reply(reply) => Event::Arrived(Wire::Reply(Reply { low, ..reply })),
            wire => Event::Arrived(wire),
        };
        let lane = Lane::Counted(PartitionId(1));
        let page = |from, limit| vec![Action::Page { lane, from, limit }];
        let nothing = || Event::Paged { lane, entries: Vec::new() };
        assert_eq!(tell(now, low(2)), page(3, 2));
        let rests = tell(now, nothing()).is_empty();
        if rests {
            // What is acknowledged meanwhile need not be read, and what is behind it may be there.
            assert_eq!(tell(now, low(3)), page(4, 2));
            assert_eq!(tell(now, nothing()), []);
            assert_eq!(tell(now + retransmit, Event::Tick), page(4, 2));
        }
        rests
    };
    needs(trace, |checks| checks.pages_rest = false);
}
