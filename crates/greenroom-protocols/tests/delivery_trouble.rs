//! Delivery in long random runs: loss, repetition, reordering, crashes and changes of owner at any point.

mod delivery_world;

use std::collections::BTreeSet;

use delivery_world::*;
use greenroom_protocols::delivery::*;
use proptest::prelude::*;

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
        20 | 21 => Outcome::Done(Effects { reconsider: body % 6 == 5, ..Effects::default() }),
        _ => forward(message, seen, birth),
    }
}

/// One step of trouble.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Call,
    Repeat(usize),
    Apply(usize),
    Hear(usize),
    End(usize),
    Deliver(usize),
    DeliverToOld(usize),
    Duplicate(usize),
    Lose(usize),
    Tick(u32),
    TakeOver(u32, bool),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let choice = any::<usize>();
    prop_oneof![
        6 => Just(Trouble::Call),
        1 => choice.prop_map(Trouble::Repeat),
        8 => choice.prop_map(Trouble::Apply),
        8 => choice.prop_map(Trouble::Hear),
        12 => choice.prop_map(Trouble::End),
        12 => choice.prop_map(Trouble::Deliver),
        2 => choice.prop_map(Trouble::DeliverToOld),
        3 => choice.prop_map(Trouble::Duplicate),
        3 => choice.prop_map(Trouble::Lose),
        3 => (0u32..2).prop_map(Trouble::Tick),
        1 => (0u32..2, any::<bool>()).prop_map(|(partition, crash)| Trouble::TakeOver(partition, crash)),
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
    ) {
        let config = Config {
            window, first_credit: window, batch_max: 3, queued_max, lane_memory_max, turns_max, trim_every: 2, ..Config::default()
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
}
