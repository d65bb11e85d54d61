//! Deaths of hosts and owners during turns, and operators who drop messages that wait.

use super::*;

/// As [`forward`], but the host that runs the turn of 4 dies.
fn kills_its_host(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if (message.to, message.body) == (20, 4) { Outcome::Died } else { forward(message, seen, birth) }
}

/// A world in which 2, 4 and 6 are sent to actor 20, and turns wait to be ended.
fn sent(checks: impl FnOnce(&mut Checks)) -> World {
    let mut world = world(checks, forward);
    world.deaths = true;
    for body in [2, 4, 6] {
        world.call(0, 10, body, forward);
        world.settle(forward);
    }
    world.quick = false;
    world
}

fn waiting(world: &World) -> Vec<(Payload, u32, bool)> {
    let waiting = world.owners[world.owner(1)].machine.waiting(None);
    waiting.iter().map(|waiting| (waiting.envelope.body, waiting.deaths, waiting.is_running)).collect()
}

fn drop_waiting(world: &mut World, body: Payload) {
    let owner = world.owner(1);
    let waiting = world.owners[owner].machine.waiting(Some(&20));
    let found = waiting.into_iter().find(|waiting| waiting.envelope.body == body).expect("it waits");
    let place = found.place.expect("it has a place");
    assert!(world.owners[owner].machine.waits_at(&20, &place));
    world.handle(owner, Event::DropWaiting { actor: 20, place, stored: None }, forward);
}

#[test]
fn a_message_that_kills_its_host_is_parked_after_three_deaths_and_each_attempt_after_the_first_is_recorded() {
    let mut world = sent(|_| {});
    deliver_to(&mut world, 1, kills_its_host);
    let (mut deaths, mut recorded) = (0, Vec::new());
    for _ in 0..20 {
        world.settle(kills_its_host);
        let owner = world.owner(1);
        let Some((turn, message)) = world.owners[owner].running.iter().next().map(|(turn, m)| (*turn, m.clone()))
        else {
            break;
        };
        if message.body == 4 {
            deaths += 1;
            recorded.extend(world.disks[1].attempts.values().map(|attempt| attempt.deaths));
        }
        world.end(owner, turn, kills_its_host);
    }
    assert_eq!((deaths, recorded), (3, vec![1, 2]), "what came first pays for no record");
    assert_eq!(world.processed(1, 20), [2, 6], "those behind it are done");
    let parked: Vec<_> = world.disks[1].parked.values().map(|parked| parked.envelope.body).collect();
    assert_eq!(parked, [4]);
    assert!(world.disks[1].attempts.is_empty(), "no attempt is left");
}

#[test]
fn a_message_that_is_dropped_while_its_turn_hangs_lets_the_next_one_run() {
    let mut world = sent(|_| {});
    deliver_to(&mut world, 1, forward);
    assert_eq!(waiting(&world), [(2, 0, true), (4, 0, false), (6, 0, false)]);
    drop_waiting(&mut world, 2);
    world.settle(forward);
    assert_eq!(waiting(&world), [(4, 0, true), (6, 0, false)]);
    world.quick = true;
    let owner = world.owner(1);
    let turn = *world.owners[owner].running.keys().next().expect("the next one runs");
    world.end(owner, turn, forward);
    world.settle(forward);
    world.run(4, forward);
    assert_eq!(world.processed(1, 20), [4, 6]);
    assert_eq!(world.log(0, 1).before, 3, "what was dropped is acknowledged");
}

#[test]
fn a_message_that_is_dropped_before_its_turn_never_runs() {
    let mut world = sent(|_| {});
    deliver_to(&mut world, 1, forward);
    drop_waiting(&mut world, 4);
    world.settle(forward);
    assert_eq!(waiting(&world), [(2, 0, true), (6, 0, false)], "the turn that runs goes on");
    world.quick = true;
    let owner = world.owner(1);
    let turn = *world.owners[owner].running.keys().next().expect("the first one runs");
    world.end(owner, turn, forward);
    world.run(4, forward);
    assert_eq!(world.processed(1, 20), [2, 6]);
    assert_eq!(world.dead, [(20, 4)], "it is a dead letter");
}

#[test]
fn a_hand_over_keeps_the_deaths_of_an_attempt_and_adds_none() {
    let mut world = sent(|_| {});
    deliver_to(&mut world, 1, forward);
    world.take_over(1, true, forward);
    world.now += 10_000;
    world.handle(world.owner(0), Event::Tick, forward);
    deliver_to(&mut world, 1, forward);
    assert_eq!(waiting(&world)[0], (2, 1, true), "the owner before may have died of it");
    world.settle(forward);
    assert_eq!(world.disks[1].attempts.len(), 1, "its attempt is recorded before it runs");
    let handed = world.owners[world.owner(1)].machine.handed_over();
    world.disks[1].attempts = handed.into_iter().map(|attempt| (attempt.place.clone(), attempt)).collect();
    world.disks[1].is_left = true;
    world.take_over(1, true, forward);
    world.now += 10_000;
    world.handle(world.owner(0), Event::Tick, forward);
    deliver_to(&mut world, 1, forward);
    assert_eq!(waiting(&world), [(2, 1, true), (4, 0, false), (6, 0, false)]);
}
