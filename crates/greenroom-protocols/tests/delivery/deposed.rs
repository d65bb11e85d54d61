//! An owner that is deposed and does not know it tells nobody what its lanes hold, and lets no recorded answer go.

use std::sync::Mutex;

use super::*;

/// The incarnation that 10 has created last. One at a time runs in a test.
static BIRTH: Mutex<Option<Birth>> = Mutex::new(None);

/// 10 creates 20 in partition 1 by the message 1, and sends 30 in partition 2 the reference; 30 sends 20 the message 3 by that reference.
fn introduce(message: &Message, _: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let mut last = BIRTH.lock().unwrap();
    match message.to {
        10 => {
            let born = *last.insert(birth());
            let mut creation = send(1, 10, 20, 1);
            let envelope = Arc::make_mut(&mut creation.envelope);
            (envelope.creates, envelope.birth) = (true, Some(born));
            done(vec![creation, send(2, 10, 30, 2)])
        }
        30 => {
            let mut out = send(1, 30, 20, 3);
            Arc::make_mut(&mut out.envelope).birth = *last;
            done(vec![out])
        }
        _ => done(Vec::new()),
    }
}

#[test]
fn r4_a_deposed_owner_does_not_answer_whether_a_creation_may_come() {
    let trace = |checks: fn(&mut Checks)| {
        let mut config = Config::default();
        checks(&mut config.checks);
        let mut world = World::new(config, 3, introduce);
        world.take_over(0, false, introduce);
        world.call(0, 10, 9, introduce);
        world.settle(introduce);
        // The reference travels faster than the creation.
        deliver_to(&mut world, 2, introduce);
        world.settle(introduce);
        let of_the_reference =
            |wire: &Wire<Actor, Payload>| matches!(wire, Wire::Batch(batch) if batch.from == PartitionId(2));
        let index = world.network.iter().position(|(to, wire)| to.0 == 1 && of_the_reference(wire)).unwrap();
        world.deliver(index, introduce);
        let index = world.network.iter().position(|(_, wire)| matches!(wire, Wire::Ask { .. })).unwrap();
        let (_, question) = world.network.remove(index);
        let deposed = world.owners.iter().position(|owner| owner.at.partition.0 == 0 && owner.at.epoch.0 == 1).unwrap();
        world.handle(deposed, Event::Arrived(question), introduce);
        world.settle(introduce);
        while let Some(index) = world.network.iter().position(|(_, wire)| matches!(wire, Wire::Standing { .. })) {
            world.deliver(index, introduce);
        }
        world.settle(introduce);
        world.run(8, introduce);
        (world.processed(1, 20), world.dead.len()) == (vec![1, 3], 0)
    };
    needs(trace, |checks| checks.confirmed_by_commit = false);
}

#[test]
fn r4_a_deposed_owner_whose_clock_is_a_day_ahead_lets_no_answer_go() {
    let trace = |checks: fn(&mut Checks)| {
        let mut config = Config { bundle_len_max: 1, ..Config::default() };
        checks(&mut config.checks);
        let mut world = World::new(config, 1, forward);
        for body in [1, 2, 3] {
            world.call(0, 20, body, forward);
            world.settle(forward);
        }
        let deposed = world.owner(0);
        world.take_over(0, false, forward);
        let now = std::mem::replace(&mut world.now, 25 * 3_600 * 1_000);
        world.handle(deposed, Event::Tick, forward);
        world.settle(forward);
        world.now = now;
        world.take_over(0, true, forward);
        world.call(0, 20, 1, forward);
        world.settle(forward);
        world.processed(0, 20) == [1, 2, 3]
    };
    needs(trace, |checks| checks.confirmed_by_commit = false);
}

#[test]
fn an_answer_whose_time_is_over_goes_by_the_next_commit() {
    let mut world = World::new(Config { bundle_len_max: 1, ..Config::default() }, 1, forward);
    for body in [1, 2, 3] {
        world.call(0, 20, body, forward);
        world.settle(forward);
    }
    world.now += 25 * 3_600 * 1_000;
    for _ in 0..3 {
        world.handle(world.owner(0), Event::Tick, forward);
        world.settle(forward);
    }
    assert_eq!((world.disks[0].answers.log.len(), world.owners[world.owner(0)].machine.kept().0), (0, 0));
}
