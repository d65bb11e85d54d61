//! Timers: each fires once, whatever crashes or is refused, unless it is cancelled.

use greenroom_protocols::reminders::Wall;

use super::*;

/// Actor 10 lets 20 have the message later: 1 after 25 s, 2 after 45 s.
fn later(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let due = Wall(5_000 + 20_000 * u64::from(message.body));
    let timer = |outgoing| Timer { due, slot: Slot::default(), outgoing, name: None };
    match message.to {
        10 => {
            let timers = vec![timer(send(1, 10, 20, message.body))];
            Outcome::Done(Effects { timers, ..Effects::default() }.into())
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

fn timer(due: u64, name: Option<&str>, to: Actor, body: Payload) -> Timer<Actor, Payload> {
    let (slot, outgoing) = (Slot::default(), send(1, 10, to, body));
    Timer { due: Wall(due), slot, outgoing, name: name.map(str::to_owned) }
}

/// Actor 10 lets 20 have each message after 5 s; 250 goes on to 21 at once, as 249.
fn all_at_once(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match (message.to, message.body) {
        (10, 250) => done(vec![send(1, 10, 21, 249)]),
        (10, body) => {
            Outcome::Done(Effects { timers: vec![timer(5_000, None, 20, body)], ..Effects::default() }.into())
        }
        _ => done(Vec::new()),
    }
}

#[test]
fn due_timers_that_do_not_fit_into_one_commit_fire_all_the_same() {
    // Neither a journal that takes few writes, nor one that takes fewer than the partition has been told.
    for operations_max in [127, 1000] {
        let mut world = World::new(Config { operations_max, ..Config::default() }, 2, all_at_once);
        world.writes_max = 127;
        for body in 1..=100 {
            world.call(0, 10, body, all_at_once);
            world.settle(all_at_once);
        }
        assert_eq!(world.disks[0].timers.len(), 100);
        world.run(2, all_at_once);
        let all: Vec<Payload> = (1..=100).collect();
        assert_eq!((world.disks[0].timers.len(), world.processed(1, 20)), (0, all));
        assert!(world.disks[0].parked.is_empty());
    }
}

#[test]
fn a_timer_whose_message_the_journal_refuses_is_parked_and_the_others_fire() {
    let mut world = World::new(Config::default(), 2, all_at_once);
    for body in 1..=9 {
        world.call(0, 10, body, all_at_once);
    }
    world.settle(all_at_once);
    world.unsendable.insert(4);
    world.run(2, all_at_once);
    assert_eq!(world.processed(1, 20), [1, 2, 3, 5, 6, 7, 8, 9]);
    assert!(world.disks[0].timers.is_empty());
    let parked = world.disks[0].parked.values().next().expect("it is parked");
    assert_eq!((parked.envelope.body, parked.error.as_str()), (4, "too large"));
    world.take_over(0, true, all_at_once);
    world.wish(0, false);
    world.grant(world.owner(0), all_at_once);
    world.run(1, all_at_once);
    assert_eq!(world.disks[0].parked.len(), 1, "it is refused once more, and stays");
    world.unsendable.clear();
    world.wish(0, false);
    world.grant(world.owner(0), all_at_once);
    world.run(1, all_at_once);
    assert_eq!((world.processed(1, 20).last(), world.disks[0].parked.len()), (Some(&4), 0));
}

#[test]
fn a_timer_that_the_journal_will_neither_send_nor_park_waits_and_fires_when_it_may() {
    let mut world = World::new(Config::default(), 2, all_at_once);
    for body in 1..=3 {
        world.call(0, 10, body, all_at_once);
    }
    world.settle(all_at_once);
    world.unsendable.insert(2);
    world.unparkable.insert(2);
    world.run(6, all_at_once);
    assert_eq!(world.processed(1, 20), [1, 3]);
    assert_eq!(world.disks[0].timers.len(), 1, "nothing of it is lost");
    let owner = world.owner(0);
    let deadline = world.owners[owner].machine.deadline().expect("it is to be tried again");
    assert!(deadline > world.time(), "after a pause");
    world.unsendable.clear();
    world.run(4, all_at_once);
    assert_eq!(world.processed(1, 20), [1, 3, 2]);
}

#[test]
fn a_refused_commit_loses_none_of_the_timers_that_it_was_to_send() {
    let mut world = World::new(Config::default(), 2, all_at_once);
    for body in 1..=3 {
        world.call(0, 10, body, all_at_once);
    }
    world.settle(all_at_once);
    world.unsendable.insert(249);
    world.now = 6_000;
    // The turn that is to blame and what is due are in one commit: it waits for one that is under way.
    let owner = world.owner(0);
    world.call(0, 11, 5, |_, _, _| done(Vec::new()));
    world.call(0, 10, 250, all_at_once);
    world.handle(owner, Event::Tick, all_at_once);
    world.run(2, all_at_once);
    assert_eq!((world.processed(1, 20), world.disks[0].timers.len()), (vec![1, 2, 3], 0));
    assert!(world.answers.contains(&("250".to_owned(), Answer::Failed("too large".to_owned()))));
}

/// Actor 10 arms `bell` for its message at the tenfold second, cancels it by 100, by 101 and arms anew within the turn; 11 has
/// a timer of the same name.
fn bells(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let due = 10_000 * u64::from(message.body % 100);
    let bell = || timer(due, Some("bell"), 20, message.body);
    let cancels = || vec!["bell".to_owned()];
    let mut other = bell();
    Arc::make_mut(&mut other.outgoing.envelope).from = Some(11);
    let effects = match (message.to, message.body) {
        (10, 100) => Effects { cancels: cancels(), ..Effects::default() },
        (10, 101) => Effects { cancels: cancels(), timers: vec![bell()], ..Effects::default() },
        (10, _) => Effects { timers: vec![bell()], ..Effects::default() },
        (11, _) => Effects { timers: vec![other], ..Effects::default() },
        _ => Effects::default(),
    };
    Outcome::Done(effects.into())
}

#[test]
fn a_timer_that_is_cancelled_never_fires_and_another_actors_of_its_name_does() {
    // In a commit of its own, in one with the turn that armed it, and by the next owner.
    for (together, crash) in [(false, false), (true, false), (false, true)] {
        let mut world = World::new(Config::default(), 2, bells);
        world.call(0, 11, 3, bells);
        world.call(0, 10, 2, bells);
        if !together {
            world.settle(bells);
            assert_eq!(world.disks[0].timers.len(), 2);
        }
        if crash {
            world.take_over(0, true, bells);
        }
        world.call(0, 10, 100, bells);
        world.settle(bells);
        assert_eq!(world.disks[0].timers.len(), 1);
        world.run(8, bells);
        assert_eq!(world.processed(1, 20), [3]);
        assert!(world.disks[0].timers.is_empty());
    }
}

#[test]
fn a_timer_takes_the_place_of_the_one_of_its_name() {
    let mut world = World::new(Config::default(), 2, bells);
    for body in [2, 4, 101] {
        world.call(0, 10, body, bells);
    }
    world.settle(bells);
    assert_eq!(world.disks[0].timers.len(), 1, "the last word counts");
    world.run(6, bells);
    assert_eq!(world.processed(1, 20), [101]);
    world.call(0, 10, 100, bells);
    let writes = &world.pending[0].commit.2;
    assert!(!writes.iter().any(|write| matches!(write, Write::Disarm { .. })), "its name is forgotten");
    world.run(1, bells);
    assert_eq!(world.processed(1, 20), [101], "what has fired is not cancelled, and nothing else is");
}

#[test]
fn a_timer_that_is_due_when_it_is_cancelled_fires_or_is_cancelled_and_never_both() {
    let mut world = World::new(Config::default(), 2, bells);
    world.call(0, 10, 1, bells);
    world.settle(bells);
    world.call(0, 11, 9, bells);
    // A commit is under way: the cancelling turn and what is due share the next one.
    world.now = 20_000;
    world.call(0, 10, 100, bells);
    world.handle(world.owner(0), Event::Tick, bells);
    world.run(2, bells);
    assert_eq!(world.processed(1, 20), []);
    assert!(world.disks[0].timers.values().all(|timer| timer.outgoing.envelope.from == Some(11)));
}
