//! Delivery in long random runs: loss, repetition, reordering, crashes and changes of owner at any point; what the journal and
//! outlets refuse, and what operators do about it.

use std::collections::BTreeSet;

use greenroom_protocols::delivery::*;
use greenroom_protocols::reminders::Wall;
use proptest::prelude::*;

use super::delivery_world::*;

/// Forwards what comes to actor 10, in partition 0, to actors of partition 1; those record it.
fn forward(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(if message.to == 10 { vec![send(1, 10, 20 + message.body % 2, message.body)] } else { Vec::new() })
}

/// As [`forward`], but 20 and 21 fail at each seventh number, and defer each fifth until the next sixth.
fn moody(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let body = message.body;
    match message.to {
        20 | 21 if body % 7 == 6 => Outcome::Failed("a seventh".to_owned()),
        20 | 21 if body % 5 == 4 && !seen.iter().any(|other| other % 6 == 5 && *other > body) => Outcome::Deferred,
        20 | 21 => Outcome::Done(Effects { reconsider: body % 6 == 5, ..Effects::default() }.into()),
        _ => forward(message, seen, birth),
    }
}

/// As [`moody`], but each third message is sent by a timer, some of which take another one's place, and each tenth goes to the
/// outside.
fn stormy(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let body = message.body;
    if message.to != 10 {
        return moody(message, seen, birth);
    }
    let outgoing = send(1, 10, 20 + body % 2, body);
    match body {
        _ if is_output(body) => done(vec![Outgoing { to: Destination::Outside(0), ..send(1, 10, 0, body) }]),
        _ if body % 3 == 1 => {
            let name = (body.is_multiple_of(4)).then(|| "alarm".to_owned());
            let timer = Timer { due: Wall(10 * u64::from(body)), slot: Slot::default(), outgoing, name };
            Outcome::Done(Effects { timers: vec![timer], ..Effects::default() }.into())
        }
        _ => done(vec![outgoing]),
    }
}

fn is_output(body: Payload) -> bool {
    body % 10 == 3
}

/// Actor 10 defers all until it has seen a sixth, and halts at each seventh.
fn impatient(message: &Message, seen: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match message.body {
        body if body % 7 == 6 => Outcome::Done(Effects { halts: true, ..Effects::default() }.into()),
        body if body % 6 == 5 => Outcome::Done(Effects { reconsider: true, ..Effects::default() }.into()),
        _ if seen.iter().any(|other| other % 6 == 5) => done(Vec::new()),
        _ => Outcome::Deferred,
    }
}

/// One step of trouble.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Call,
    Repeat(usize),
    Apply(usize),
    Hear(usize),
    Recall(usize),
    End(usize),
    Deliver(usize),
    DeliverToOld(usize),
    Duplicate(usize),
    Lose(usize),
    Tick(u32),
    TakeOver(u32, bool),
    Refuse(usize),
    HandOver(usize),
    Wish(u32, bool),
    Grant(usize),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let choice = any::<usize>();
    prop_oneof![
        6 => Just(Trouble::Call),
        2 => choice.prop_map(Trouble::Repeat),
        8 => choice.prop_map(Trouble::Apply),
        8 => choice.prop_map(Trouble::Hear),
        2 => choice.prop_map(Trouble::Recall),
        12 => choice.prop_map(Trouble::End),
        12 => choice.prop_map(Trouble::Deliver),
        2 => choice.prop_map(Trouble::DeliverToOld),
        3 => choice.prop_map(Trouble::Duplicate),
        3 => choice.prop_map(Trouble::Lose),
        3 => (0u32..2).prop_map(Trouble::Tick),
        1 => (0u32..2, any::<bool>()).prop_map(|(partition, crash)| Trouble::TakeOver(partition, crash)),
    ]
}

/// As [`trouble`], with a journal that refuses commits now and then, outlets, and operators.
fn more_trouble() -> impl Strategy<Value = Trouble> {
    let choice = any::<usize>();
    prop_oneof![
        20 => trouble(),
        1 => choice.prop_map(Trouble::Refuse),
        4 => choice.prop_map(Trouble::HandOver),
        1 => (0u32..2, any::<bool>()).prop_map(|(partition, drops)| Trouble::Wish(partition, drops)),
        3 => choice.prop_map(Trouble::Grant),
    ]
}

/// Does `troubles` to a world, in which `called` calls were made.
fn suffer(world: &mut World, troubles: &[Trouble], called: &mut Payload, program: Program) {
    for trouble in troubles {
        match *trouble {
            Trouble::Call if *called < 200 => {
                *called += 1;
                world.call(0, 10, *called, program);
            }
            Trouble::Repeat(i) if *called > 0 => world.call(0, 10, 1 + (i % usize::from(*called)) as Payload, program),
            Trouble::Apply(i) if !world.pending.is_empty() => world.apply(i % world.pending.len()),
            Trouble::Hear(i) => {
                let index = i % world.owners.len();
                if !world.owners[index].outcomes.is_empty() {
                    world.hear(index, program);
                }
            }
            Trouble::Recall(i) => {
                let index = i % world.owners.len();
                if !world.owners[index].recalls.is_empty() {
                    world.recall(index, program);
                }
            }
            Trouble::End(i) => {
                let index = i % world.owners.len();
                let turn = world.owners[index].running.keys().next().copied();
                if let Some(turn) = turn {
                    world.end(index, turn, program);
                }
            }
            Trouble::Deliver(i) if !world.network.is_empty() => world.deliver(i % world.network.len(), program),
            Trouble::DeliverToOld(i) if !world.network.is_empty() => {
                let (to, wire) = world.network.remove(i % world.network.len());
                let owner = world.owners.iter().position(|owner| owner.at.partition == to).expect("an owner");
                world.handle(owner, Event::Arrived(wire), program);
            }
            Trouble::Duplicate(i) if !world.network.is_empty() => {
                let again = world.network[i % world.network.len()].clone();
                world.network.push(again);
            }
            Trouble::Lose(i) if !world.network.is_empty() => {
                world.network.swap_remove(i % world.network.len());
            }
            Trouble::Tick(partition) => {
                world.now += 50;
                world.handle(world.owner(partition), Event::Tick, program);
            }
            Trouble::TakeOver(partition, crash) => world.take_over(partition, crash, program),
            Trouble::Refuse(i) if !world.pending.is_empty() => world.refuse(i % world.pending.len()),
            Trouble::HandOver(i) => world.hand_over(i % world.owners.len(), program),
            Trouble::Wish(partition, drops) => world.wish(partition, drops),
            Trouble::Grant(i) => {
                let index = i % world.owners.len();
                if !world.owners[index].wishes.is_empty() {
                    world.grant(index, program);
                }
            }
            _ => {}
        }
    }
}

fn assert_exactly_once(world: &World) {
    let sent = world.fields(0, 10);
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "each call once: {sent:?}");
    for actor in [20, 21] {
        let of_it: Vec<Payload> = sent.iter().copied().filter(|body| 20 + body % 2 == actor).collect();
        assert!(of_it.starts_with(world.fields(1, actor)), "{of_it:?}, not {:?}", world.fields(1, actor));
    }
    assert!((1..=200).all(|body| !world.has_answer(body) || sent.contains(&body)), "answered, so committed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_committed_message_is_processed_once_and_in_order_whatever_happens(
        troubles in proptest::collection::vec(trouble(), 1..400),
        window in 1u64..6, queued_max in 2usize..8, lane_memory_max in 1usize..6, turns_max in 1usize..4,
        bundle_len_max in 1usize..4,
    ) {
        let config = Config {
            window, first_credit: window, batch_max: 3, queued_max, lane_memory_max, turns_max, trim_every: 2, bundle_len_max,
            ..Config::default()
        };
        let mut world = World::new(config, 2, forward);
        world.quick = false;
        let mut called = 0;
        for chunk in troubles.chunks(20) {
            suffer(&mut world, chunk, &mut called, forward);
            assert_exactly_once(&world);
        }
        world.quick = true;
        world.take_over(0, true, forward);
        world.take_over(1, false, forward);
        world.run(300, forward);
        assert_exactly_once(&world);
        let sent = world.fields(0, 10).len();
        prop_assert_eq!(world.fields(1, 20).len() + world.fields(1, 21).len(), sent, "everything arrives");
        prop_assert_eq!(world.log(0, 1).before, sent as u64, "and is acknowledged");
    }
    #[test]
    fn nothing_is_lost_or_repeated_where_messages_are_deferred_parked_and_refused_by_the_journal(
        troubles in proptest::collection::vec(trouble(), 1..400),
        window in 1u64..6, queued_max in 2usize..8, turns_max in 1usize..6,
    ) {
        let config = Config { window, first_credit: window, batch_max: 3, queued_max, turns_max, attempts_max: 2, ..Config::default() };
        let mut world = World::new(config, 2, moody);
        world.quick = false;
        world.refused.extend((1..=200).filter(|body| body % 9 == 8));
        let mut called = 0;
        suffer(&mut world, &troubles, &mut called, moody);
        world.quick = true;
        world.take_over(0, true, moody);
        world.take_over(1, false, moody);
        world.run(300, moody);
        let disk = &world.disks[1];
        let mut arrived: Vec<Payload> = disk.history.iter().map(|(_, body)| *body).collect();
        arrived.extend(disk.queues.values().chain(disk.parked.values().map(|parked| &parked.envelope)).map(|m| m.body));
        arrived.sort_unstable();
        let mut sent = world.fields(0, 10).to_vec();
        sent.sort_unstable();
        prop_assert_eq!(world.log(0, 1).before, sent.len() as u64);
        prop_assert_eq!(arrived, sent);
    }

    #[test]
    fn nothing_is_lost_or_repeated_where_operators_retry_and_drop_what_is_parked_and_timers_and_outputs_are_refused(
        troubles in proptest::collection::vec(more_trouble(), 1..400),
        window in 1u64..6, queued_max in 2usize..8, turns_max in 1usize..6, writes_max in 8usize..20, outputs in 1u64..4,
    ) {
        let config = Config {
            window, first_credit: window.max(outputs), batch_max: 3, queued_max, turns_max, attempts_max: 2, ..Config::default()
        };
        let mut world = World::new(config, 2, stormy);
        (world.quick, world.outlets, world.writes_max) = (false, false, writes_max);
        world.refused.extend((1..=200).filter(|body| body % 9 == 8));
        world.unsendable.extend((1..=200).filter(|body| body % 11 == 4));
        world.unwanted.extend((1..=200).filter(|body| body % 20 == 3));
        world.unparkable.extend((1..=200).filter(|body| body % 13 == 2));
        world.undeferrable.extend((1..=200).filter(|body| body % 25 == 4));
        let mut called = 0;
        suffer(&mut world, &troubles, &mut called, stormy);
        for refused in [&mut world.refused, &mut world.unsendable, &mut world.unparkable, &mut world.undeferrable] {
            refused.clear();
        }
        (world.quick, world.outlets) = (true, true);
        world.take_over(0, true, stormy);
        world.take_over(1, false, stormy);
        world.run(300, stormy);
        let [here, there] = &world.disks[..] else { panic!("there are two partitions") };
        let (outputs, sent): (Vec<Payload>, Vec<Payload>) = world.fields(0, 10).iter().partition(|body| is_output(**body));
        prop_assert!(here.timers.is_empty(), "all have fired");
        let mut arrived: Vec<Payload> = there.history.iter().map(|(_, body)| *body).collect();
        arrived.extend(there.queues.values().map(|message| message.body));
        let parked = || here.parked.values().chain(there.parked.values()).map(|parked| parked.envelope.body);
        arrived.extend(parked().filter(|body| !is_output(*body)));
        arrived.extend(there.dropped.iter().chain(here.dropped.iter().filter(|body| !is_output(**body))));
        arrived.sort_unstable();
        let mut sent: Vec<Payload> = sent.into_iter().filter(|body| !replaced(world.fields(0, 10), *body)).collect();
        let doubtful = |body: &Payload| body % 3 == 1 && body.is_multiple_of(4);
        // A timer that had fired before its place was taken has arrived all the same.
        let late: Vec<Payload> =
            arrived.iter().copied().filter(|body| doubtful(body) && !sent.contains(body)).collect();
        prop_assert!(late.iter().all(|body| world.fields(0, 10).contains(body)));
        sent.extend(late);
        sent.sort_unstable();
        prop_assert_eq!(arrived, sent);
        for body in outputs {
            let left: BTreeSet<(Lane, u64)> =
                world.outputs.iter().filter(|(.., other)| *other == body).map(|(lane, number, _)| (*lane, *number)).collect();
            prop_assert!(left.len() <= 1, "one number for all times");
            let parked = parked().filter(|other| *other == body).count();
            let dropped = here.dropped.iter().filter(|other| **other == body).count();
            prop_assert!(parked <= 1 && left.len() + parked + dropped > 0, "{} is neither there nor parked", body);
        }
    }

    #[test]
    fn calls_with_keys_run_once_and_are_answered_where_they_are_deferred_and_their_actor_halts(
        troubles in proptest::collection::vec(more_trouble(), 1..200), turns_max in 1usize..6,
    ) {
        let mut world = World::new(Config { turns_max, ..Config::default() }, 2, impatient);
        world.quick = false;
        world.undeferrable.extend((1..=200).filter(|body| body % 10 == 9));
        let mut called = 0;
        suffer(&mut world, &troubles, &mut called, impatient);
        world.quick = true;
        world.take_over(0, true, impatient);
        world.run(4, impatient);
        world.answers.clear();
        let waits: BTreeSet<Payload> = world.disks[0].queues.values().map(|message| message.body).collect();
        for body in 1..=called {
            world.call(0, 10, body, impatient);
            world.settle(impatient);
        }
        for body in 1..=called {
            let answered = world.answers.iter().any(|(key, _)| *key == body.to_string());
            let waits = waits.contains(&body) || world.disks[0].queues.values().any(|message| message.body == body);
            prop_assert!(answered || waits, "{} is neither answered nor does it wait", body);
            let ran = world.processed(0, 10).iter().filter(|other| **other == body).count();
            prop_assert!(ran <= 1, "{} ran {} times", body, ran);
        }
    }
}

/// Whether a timer's place was taken by a later one.
fn replaced(called: &[Payload], body: Payload) -> bool {
    let named = |body: &Payload| !is_output(*body) && body % 3 == 1 && body.is_multiple_of(4);
    let last = called.iter().rposition(named);
    named(&body) && last.is_some_and(|last| called[last] != body)
}
