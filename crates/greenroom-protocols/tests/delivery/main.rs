//! Delivery: the traces that the design numbers R1 to R7, most of them also shown to do harm without their check.

mod answers;
mod deaths;
#[path = "../delivery_world/mod.rs"]
mod delivery_world;
mod deposed;
mod lanes;
mod operators;
mod promises;
mod refusals;
mod timers;
mod trouble;

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery_world::*;
use greenroom_protocols::delivery::*;

/// Forwards what comes to actor 10, in partition 0, to actors of partition 1; those record it.
fn forward(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(if message.to == 10 { vec![send(1, 10, 20 + message.body % 2, message.body)] } else { Vec::new() })
}

fn world(checks: impl FnOnce(&mut Checks), program: Program) -> World {
    let mut config = Config { window: 8, first_credit: 8, batch_max: 4, ..Config::default() };
    checks(&mut config.checks);
    World::new(config, 2, program)
}

/// Hands over everything on the network that is for `partition`.
fn deliver_to(world: &mut World, partition: u32, program: Program) {
    while let Some(index) = world.network.iter().position(|(to, _)| to.0 == partition) {
        world.deliver(index, program);
    }
}

/// Runs `trace` with all checks and without one: the first holds, the second does not.
fn needs(trace: impl Fn(fn(&mut Checks)) -> bool, without: fn(&mut Checks)) {
    assert!(trace(|_| {}), "with all checks the trace is harmless");
    assert!(!trace(without), "without the check the trace does harm");
}

#[test]
fn r1_a_crash_before_the_commit_loses_nothing_that_was_acknowledged() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        deliver_to(&mut world, 1, forward);
        deliver_to(&mut world, 0, forward);
        world.pending.clear();
        world.take_over(1, true, forward);
        world.run(8, forward);
        world.fields(1, 20) == [2]
    };
    needs(trace, |checks| checks.acknowledge_after_commit = false);
}

#[test]
fn r1_a_number_above_the_expected_one_is_refused_and_sent_again() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        world.network.clear();
        world.call(0, 10, 4, forward);
        world.settle(forward);
        deliver_to(&mut world, 1, forward);
        let refused =
            |(_, wire): &(PartitionId, Wire<_, _>)| matches!(wire, Wire::Reply(r) if r.refused && r.expected == 1);
        let told = world.network.iter().any(refused);
        world.run(8, forward);
        told && world.fields(1, 20) == [2, 4]
    };
    needs(trace, |checks| checks.refuse_gaps = false);
}

#[test]
fn r1_a_slow_turn_does_not_stall_its_lane() {
    let mut world = world(|_| {}, forward);
    for body in [2, 3, 5, 7] {
        world.call(0, 10, body, forward);
        world.settle(forward);
    }
    world.quick = false;
    deliver_to(&mut world, 1, forward);
    let owner = world.owner(1);
    while let Some((turn, _)) = world.owners[owner].running.iter().find(|(_, message)| message.to == 21) {
        let turn = *turn;
        world.end(owner, turn, forward);
        world.settle(forward);
    }
    let receipts = &world.disks[1].receipts[&PartitionId(0)];
    assert_eq!((receipts.low, receipts.above.clone()), (0, BTreeSet::from([2, 3, 4])), "the odd ones passed");
    world.take_over(1, true, forward);
    world.quick = true;
    world.run(8, forward);
    assert_eq!((world.fields(1, 20), world.fields(1, 21)), (&[2][..], &[3, 5, 7][..]));
    assert_eq!(world.log(0, 1).before, 4, "all is acknowledged and trimmed");
}

#[test]
fn r2_a_repetition_that_arrives_before_the_commit_is_not_queued_again() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        world.network.extend(world.network.clone());
        deliver_to(&mut world, 1, forward);
        world.run(4, forward);
        world.fields(1, 20) == [2]
    };
    needs(trace, |checks| checks.high_water_mark = false);
}

#[test]
fn r2_a_crash_after_the_commit_does_not_process_again() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        deliver_to(&mut world, 1, forward);
        world.apply(0);
        world.take_over(1, true, forward);
        world.run(8, forward);
        world.fields(1, 20) == [2]
    };
    needs(trace, |checks| checks.receipt_in_commit = false);
}

#[test]
fn a_deposed_owners_late_commit_is_refused() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        world.network.extend(world.network.clone());
        world.deliver(0, forward);
        world.take_over(1, false, forward);
        deliver_to(&mut world, 1, forward);
        world.run(8, forward);
        world.fields(1, 20) == [2]
    };
    needs(trace, |checks| checks.fence = false);
}

#[test]
fn a_deposed_owners_late_reply_gives_no_credit() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.settle(forward);
        deliver_to(&mut world, 1, forward);
        world.settle(forward);
        let late = world.network.iter().find_map(|(_, wire)| match wire {
            Wire::Reply(reply) => Some(Reply { limit: 100, expected: 100, ..reply.clone() }),
            _ => None,
        });
        world.network.clear();
        world.take_over(1, true, forward);
        world.run(4, forward);
        world.quick = false;
        world.handle(world.owner(0), Event::Arrived(Wire::Reply(late.expect("the commit was acknowledged"))), forward);
        world.quick = true;
        for body in 3..40 {
            world.call(0, 10, body, forward);
        }
        world.settle(forward);
        highest_sent(&world) <= 9
    };
    needs(trace, |checks| checks.reply_epoch = false);
}

fn highest_sent(world: &World) -> u64 {
    let numbers = world.network.iter().filter_map(|(_, wire)| match wire {
        Wire::Batch(batch) => batch.messages.last().map(|(number, _)| *number),
        _ => None,
    });
    numbers.max().unwrap_or_default()
}

#[test]
fn r3_a_silent_destination_stalls_only_its_own_lane() {
    fn both(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
        done(if message.to == 10 { vec![send(1, 10, 20, message.body), send(2, 10, 30, message.body)] } else { vec![] })
    }
    let trace = |checks: fn(&mut Checks)| {
        let mut config = Config::default();
        checks(&mut config.checks);
        let mut world = World::new(config, 3, both);
        for body in 1..=5 {
            world.call(0, 10, body, both);
            world.settle(both);
            world.network.retain(|(to, _)| to.0 != 1);
            deliver_to(&mut world, 2, both);
            world.settle(both);
        }
        let others = world.fields(2, 30) == [1, 2, 3, 4, 5];
        let answered = (1..=5).all(|body| world.has_answer(body));
        world.run(8, both);
        assert_eq!(world.fields(1, 20), [1, 2, 3, 4, 5], "nothing is lost by the wait");
        others && answered
    };
    needs(trace, |checks| checks.commit_closes = false);
}

/// Actor 10 creates actor 20 by 1 and halts it by 2; all else it forwards to that incarnation.
fn create(message: &Message, _: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let mut outgoing = send(1, 10, 20, message.body);
    match (message.to, message.body) {
        (10, 1) => {
            Arc::make_mut(&mut outgoing.envelope).birth = Some(birth());
            Arc::make_mut(&mut outgoing.envelope).creates = true;
        }
        (10, _) => Arc::make_mut(&mut outgoing.envelope).birth = Some(BIRTH),
        (_, body) => return Outcome::Done(Effects { halts: body == 2, ..Effects::default() }.into()),
    }
    done(vec![outgoing])
}

/// What the first creation of partition 0's first owner gives.
const BIRTH: Birth = Birth { by: PartitionId(0), life: Life(1), epoch: Epoch(1), serial: 1 };

#[test]
fn r4_a_repeated_creation_does_not_bring_a_halted_actor_back() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, create);
        world.call(0, 10, 1, create);
        world.settle(create);
        let creation = world.network.clone();
        world.run(2, create);
        world.call(0, 10, 2, create);
        world.run(2, create);
        world.take_over(1, true, create);
        world.network.extend(creation);
        world.run(4, create);
        let once = world.disks[1].history == [(20, 1), (20, 2)];
        assert!(!once || world.disks[1].presences.is_empty(), "its lane has passed the creation: no tombstone");
        once
    };
    needs(trace, |checks| checks.counted_creation = false);
}

#[test]
fn r4_a_tombstone_stays_until_the_lane_has_passed_the_creation() {
    let mut world = world(|_| {}, create);
    world.quick = false;
    let envelope = |to, birth: Option<Birth>, body| {
        Message::new(Envelope { from: Some(10), to, birth, creates: body == 1, call: None, body })
    };
    let messages = vec![
        (1, envelope(21, None, 9)),
        (2, envelope(20, Some(BIRTH), 1)),
        (3, envelope(20, Some(BIRTH), 2)),
        (4, envelope(20, Some(BIRTH), 3)),
    ];
    let batch = Batch {
        from: PartitionId(0),
        life: Life(1),
        epoch: Epoch(1),
        counted: true,
        round: 0,
        floor: 0,
        first: 1,
        messages,
        sent_before: Some(0),
    };
    world.handle(world.owner(1), Event::Arrived(Wire::Batch(batch)), create);
    for _ in 0..2 {
        let owner = world.owner(1);
        let turn = *world.owners[owner].running.iter().find(|(_, message)| message.to == 20).expect("a turn of 20").0;
        world.end(owner, turn, create);
        world.settle(create);
    }
    assert!(world.disks[1].presences[&20].halted, "the first number has not passed");
    assert_eq!(world.dead, [(20, 3)], "what comes later to that incarnation is a dead letter");
    let owner = world.owner(1);
    let turn = *world.owners[owner].running.keys().next().expect("the slow turn");
    world.end(owner, turn, create);
    world.settle(create);
    assert!(world.disks[1].presences.is_empty(), "passed: the receive record says it all");
}

#[test]
fn r4_a_message_that_overtakes_the_creation_waits_for_it() {
    let mut world = world(|_| {}, create);
    world.call(0, 10, 1, create);
    world.settle(create);
    world.network.clear();
    let early =
        Message::new(Envelope { from: Some(30), to: 20, birth: Some(BIRTH), creates: false, call: None, body: 7 });
    world.handle(world.owner(1), Event::Arrived(Wire::Single(early.clone())), create);
    assert!(world.fields(1, 20).is_empty() && world.dead.is_empty());
    world.run(4, create);
    assert_eq!(world.fields(1, 20), [1, 7], "creation first");
    world.call(0, 10, 2, create);
    world.run(2, create);
    world.take_over(1, true, create);
    world.handle(world.owner(1), Event::Arrived(Wire::Single(early)), create);
    world.run(4, create);
    assert_eq!(world.dead, [(20, 7)], "after the end it is a dead letter, though nothing is stored of the actor");
}

#[test]
fn r5_a_message_for_one_incarnation_is_not_given_to_the_next() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, create);
        world.call(0, 10, 1, create);
        world.run(2, create);
        world.call(0, 10, 2, create);
        world.run(2, create);
        let again = Birth { serial: 9, ..BIRTH };
        let creation =
            Message::new(Envelope { from: Some(10), to: 20, birth: Some(again), creates: true, call: None, body: 1 });
        world.handle(world.owner(1), Event::Arrived(Wire::Single(creation)), create);
        world.run(2, create);
        let late =
            Message::new(Envelope { from: Some(30), to: 20, birth: Some(BIRTH), creates: false, call: None, body: 7 });
        world.handle(world.owner(1), Event::Arrived(Wire::Single(late)), create);
        world.run(4, create);
        world.fields(1, 20) == [1]
    };
    needs(trace, |checks| checks.incarnation = false);
}

#[test]
fn r5_numbers_that_begin_again_after_a_lost_journal_are_not_taken_for_repetitions() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        world.call(0, 10, 2, forward);
        world.run(2, forward);
        world.disks[0] = Disk { life: Life(2), epoch: world.disks[0].epoch, ..Disk::default() };
        world.take_over(0, true, forward);
        world.call(0, 10, 4, forward);
        world.run(4, forward);
        world.fields(1, 20) == [2, 4]
    };
    needs(trace, |checks| checks.life = false);
}

#[test]
fn a_receiver_that_lost_its_journal_goes_on_where_the_sender_stands() {
    let mut world = world(|_| {}, forward);
    world.call(0, 10, 2, forward);
    world.run(2, forward);
    world.disks[1] = Disk { life: Life(2), epoch: world.disks[1].epoch, ..Disk::default() };
    world.take_over(1, true, forward);
    world.call(0, 10, 4, forward);
    world.run(4, forward);
    assert_eq!(world.fields(1, 20), [4]);
}

/// As [`forward`], but 20 cannot bear 4.
fn poison(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if (message.to, message.body) == (20, 4) { Outcome::Failed("4".to_owned()) } else { forward(message, seen, birth) }
}

#[test]
fn r6_a_poison_message_is_parked_and_acknowledged_and_may_be_retried() {
    let mut world = world(|_| {}, poison);
    for body in [2, 4, 6] {
        world.call(0, 10, body, poison);
    }
    world.run(4, poison);
    assert_eq!(world.fields(1, 20), [2, 6]);
    assert_eq!(world.log(0, 1).before, 3, "it is acknowledged");
    let parked = world.disks[1].parked.values().next().expect("it is parked").clone();
    assert_eq!((parked.envelope.body, parked.error.as_str()), (4, "4"));
    world.take_over(1, true, forward);
    world.handle(world.owner(1), Event::Retry(parked), forward);
    world.run(2, forward);
    assert_eq!(world.fields(1, 20), [2, 6, 4]);
    assert!(world.disks[1].parked.is_empty());
}

#[test]
fn r6_a_poison_message_does_not_stall_its_actor() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, poison);
        for body in [2, 4, 6] {
            world.call(0, 10, body, poison);
        }
        world.settle(poison);
        world.quick = false;
        for _ in 0..20 {
            deliver_to(&mut world, 1, poison);
            let owner = world.owner(1);
            if let Some((turn, _)) = world.owners[owner].running.first_key_value() {
                let turn = *turn;
                world.end(owner, turn, poison);
            }
            world.settle(poison);
        }
        world.fields(1, 20) == [2, 6]
    };
    needs(trace, |checks| checks.parking = false);
}

#[test]
fn r6_a_commit_that_the_journal_refuses_is_bisected() {
    let mut world = world(|_| {}, forward);
    world.refused.insert(6);
    for body in [2, 4, 6, 8, 3, 5, 10] {
        world.call(0, 10, body, forward);
    }
    world.settle(forward);
    world.run(6, forward);
    assert_eq!((world.fields(1, 20), world.fields(1, 21)), (&[2, 4, 8, 10][..], &[3, 5][..]));
    assert_eq!(world.disks[1].parked.values().map(|parked| parked.envelope.body).collect::<Vec<_>>(), [6]);
    assert_eq!(world.log(0, 1).before, 7);
}

#[test]
fn r7_a_sender_keeps_to_the_receivers_limit() {
    let trace = |checks: fn(&mut Checks)| {
        let mut world = world(checks, forward);
        (1..=100).for_each(|body| world.call(0, 10, body, forward));
        world.settle(forward);
        let within = highest_sent(&world) <= 8;
        world.run(20, forward);
        within && world.fields(1, 20).len() + world.fields(1, 21).len() == 100
    };
    needs(trace, |checks| checks.credit = false);
}

#[test]
fn r7_memory_is_bounded_while_the_outbox_grows_on_disk() {
    let config =
        Config { lane_memory_max: 4, queued_max: 6, window: 8, first_credit: 8, batch_max: 4, ..Config::default() };
    let mut world = World::new(config, 2, forward);
    for body in 1..=200 {
        world.call(0, 10, body, forward);
        world.settle(forward);
        world.network.clear();
    }
    let sender = world.owners[world.owner(0)].machine.sender();
    let lane = Lane::Counted(PartitionId(1));
    let backlog: Vec<_> = sender.backlog().filter(|(other, ..)| *other == lane).collect();
    assert_eq!(backlog, [(lane, 200, 4)]);
    world.take_over(0, true, forward);
    for _ in 0..400 {
        world.run(1, forward);
        assert!(world.owners[world.owner(1)].machine.queued() <= 6);
    }
    let even: Vec<Payload> = (1..=100).map(|half| half * 2).collect();
    assert_eq!(world.fields(1, 20), even);
    assert_eq!(world.log(0, 1).before, 200);
}
