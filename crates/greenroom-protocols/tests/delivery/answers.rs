//! What delivery promises of idempotency keys: one run and its answer for a time, and never less than that.

use greenroom_protocols::reminders::Wall;

use super::*;

const DAY: u64 = 24 * 3600 * 1000;

fn answered(world: &mut World, body: Payload) -> Vec<Answer<Payload>> {
    world.answers.clear();
    world.call(0, 10, body, forward);
    world.settle(forward);
    world.answers.iter().map(|(_, answer)| answer.clone()).collect()
}

/// Makes each call of `bodies`, and lets an owner of partition 0 do what its clock wants.
fn call_all(world: &mut World, bodies: impl IntoIterator<Item = Payload>) {
    for body in bodies {
        assert_eq!(answered(world, body), [Answer::Done(None)]);
    }
}

fn tick(world: &mut World) {
    for _ in 0..100 {
        world.handle(world.owner(0), Event::Tick, forward);
        world.settle(forward);
    }
}

fn small(config: impl FnOnce(&mut Config)) -> World {
    let mut own = Config { bundle_len_max: 4, ..Config::default() };
    config(&mut own);
    World::new(own, 2, forward)
}

#[test]
fn a_key_is_known_for_its_time_however_many_come_after_it() {
    let mut world = small(|_| {});
    call_all(&mut world, 1..=100);
    for again in 0..2 {
        for body in [1, 50, 97, 98, 99, 100] {
            call_all(&mut world, [body]);
        }
        assert_eq!(world.fields(0, 10).len(), 100, "no second run, owner {again}");
        assert_eq!(world.disks[0].answers.bundles.len(), 25, "all are found by bundles");
        world.take_over(0, true, forward);
    }
}

#[test]
fn an_answer_goes_when_its_time_is_over_and_not_before() {
    let mut world = small(|_| {});
    call_all(&mut world, 1..=6);
    world.now = DAY / 16;
    call_all(&mut world, 7..=9);
    for now in [DAY - 1, DAY + 1] {
        world.now = now;
        world.take_over(0, true, forward);
        tick(&mut world);
        let (count, _) = world.owners[world.owner(0)].machine.kept();
        assert_eq!(count, world.disks[0].answers.log.len(), "what is kept is counted");
        assert_eq!(count, if now < DAY { 9 } else { 5 }, "bundles of four: the second one waits for its last");
    }
    call_all(&mut world, [5, 9]);
    assert_eq!(world.fields(0, 10).len(), 9, "5 shares a bundle with 8");
    call_all(&mut world, [1]);
    assert_eq!(world.fields(0, 10).len(), 10, "the time of 1 is over: it is a new call");
    world.now = 4 * DAY;
    tick(&mut world);
    let Answers { log, bundles, .. } = &world.disks[0].answers;
    assert!(log.is_empty() && bundles.is_empty(), "a partition that is not called forgets too: {log:?} {bundles:?}");
    assert_eq!(world.owners[world.owner(0)].machine.kept(), (0, 0));
}

#[test]
fn when_the_size_is_reached_new_keys_are_refused_and_old_ones_are_answered() {
    let mut world = small(|config| config.answers_bytes_max = 1000);
    // Each by another, so that only the room of all is what they meet.
    let call = |world: &mut World, body: Payload| {
        world.answers.clear();
        world.call_under(&kept_under(("10", "a"), Some(&body.to_string()), "a"), 0, 10, body, forward);
        world.settle(forward);
        world.answers.iter().map(|(_, answer)| answer.clone()).collect::<Vec<_>>()
    };
    let bodies: Vec<Payload> = (1..=20).take_while(|body| call(&mut world, *body) == [Answer::Done(None)]).collect();
    let full = bodies.len();
    assert!((4..12).contains(&full), "{full} answers of about 130 bytes");
    assert_eq!(call(&mut world, 21), [Answer::Full]);
    for again in 0..2 {
        for body in &bodies {
            assert_eq!(call(&mut world, *body), [Answer::Done(None)], "owner {again}");
        }
        world.take_over(0, true, forward);
    }
    assert_eq!(world.fields(0, 10).len(), full, "each once");
    let plain = Call { key: "a name for this call alone".to_owned(), request: 0, as_written: None, recorded: false };
    let envelope =
        Message::new(Envelope { from: None, to: 10, birth: None, creates: false, call: Some(plain), body: 22 });
    world.handle(world.owner(0), Event::Called(envelope), forward);
    world.settle(forward);
    assert_eq!(world.fields(0, 10).last(), Some(&22), "calls without a key are not concerned");
    world.now = 2 * DAY;
    tick(&mut world);
    call_all(&mut world, [21]);
}

#[test]
fn one_who_calls_fills_half_of_the_room_and_the_next_half_of_the_rest() {
    const ROOM: u64 = 10_000;
    let mut world = small(|config| config.answers_bytes_max = ROOM);
    let call = |world: &mut World, by: Option<&str>, number: Payload| {
        world.answers.clear();
        world.call_under(&kept_under(("10", "a"), by, &number.to_string()), 0, 10, number, forward);
        world.settle(forward);
        world.answers.iter().next().map(|(_, answer)| answer.clone())
    };
    let bytes = |world: &World| world.owners[world.owner(0)].machine.kept().1;
    let mut first_refused = Vec::new();
    let mut left = ROOM;
    for by in [Some("ada"), None, Some("bob")] {
        let before = bytes(&world);
        let refused = (1..=Payload::MAX).find(|number| call(&mut world, by, *number) != Some(Answer::Done(None)));
        let refused = refused.expect("nobody fills all of it");
        let held = bytes(&world) - before;
        left -= held;
        let answer = call(&mut world, by, refused);
        assert_eq!(answer, Some(Answer::OverShare { held, left }), "{by:?}");
        assert!(held.abs_diff(left) < 300, "{by:?} holds {held}, and {left} are left");
        first_refused.push((by, refused));
    }
    // So it is with the next owner, and what was recorded is still known.
    world.take_over(0, true, forward);
    for (by, refused) in &first_refused {
        assert!(matches!(call(&mut world, *by, *refused), Some(Answer::OverShare { .. })), "{by:?}");
        assert_eq!(call(&mut world, *by, 1), Some(Answer::Done(None)), "{by:?}");
    }
    assert_eq!(call(&mut world, Some("eve"), 1), Some(Answer::Done(None)), "a newcomer has room");
    let run = first_refused.iter().map(|(_, refused)| usize::from(*refused) - 1).sum::<usize>() + 1;
    assert_eq!(world.fields(0, 10).len(), run, "each once, and none of the refused");
    world.now = 2 * DAY;
    tick(&mut world);
    for number in 1..first_refused[0].1 {
        let answer = call(&mut world, first_refused[0].0, number);
        assert_eq!(answer, Some(Answer::Done(None)), "what it held is gone, and it has its half again");
    }
}

#[test]
fn answers_of_bundles_that_do_not_say_whose_they_are_take_room_and_are_nobodys() {
    let mut world = small(|config| config.answers_bytes_max = 10_000);
    call_all(&mut world, 1..=20);
    for bundle in world.disks[0].answers.bundles.values_mut() {
        assert_eq!(bundle.holders.len(), 1, "all by one");
        bundle.holders.clear();
    }
    let before = world.owners[world.owner(0)].machine.kept().1;
    world.take_over(0, true, forward);
    assert_eq!(world.owners[world.owner(0)].machine.kept().1, before);
    let more = (21..).take_while(|body| answered(&mut world, *body) == [Answer::Done(None)]).count() as u64;
    let each = before / 20;
    assert!((more * each).abs_diff((10_000 - before) / 2) <= 2 * each, "half of what was left: {more} of {each}");
    world.now = 2 * DAY;
    tick(&mut world);
    assert_eq!(world.owners[world.owner(0)].machine.kept(), (0, 0));
    call_all(&mut world, [1]);
}

/// 10 defers 3, and fails at 4.
fn moody(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match message.body {
        3 if !seen.contains(&5) => Outcome::Deferred,
        4 => Outcome::Failed("4".to_owned()),
        5 => Outcome::Done(Effects { reconsider: true, ..Effects::default() }.into()),
        _ => forward(message, seen, birth),
    }
}

#[test]
fn a_call_that_waited_or_failed_takes_no_other_keys_place() {
    let mut world = World::new(Config { bundle_len_max: 2, ..Config::default() }, 2, moody);
    for body in [1, 3, 2, 4, 5] {
        world.call(0, 10, body, moody);
        world.settle(moody);
    }
    world.take_over(0, true, moody);
    for body in [1, 2, 3, 5] {
        world.answers.clear();
        world.call(0, 10, body, moody);
        world.settle(moody);
        assert!(world.has_answer(body), "{body}");
    }
    assert_eq!(world.fields(0, 10), [1, 2, 5, 3], "each once");
    let keys: Vec<_> = world.disks[0].answers.log.values().map(|recorded| recorded.key.as_str()).collect();
    assert_eq!(keys, ["1", "2", "5", "3"], "one answer each; what failed has none");
}

#[test]
fn a_call_that_waits_in_its_actors_queue_is_not_run_anew_by_the_next_owner() {
    let mut world = World::new(Config::default(), 2, moody);
    world.call(0, 10, 3, moody);
    world.settle(moody);
    world.take_over(0, true, moody);
    world.call(0, 10, 3, moody);
    world.settle(moody);
    assert_eq!((world.disks[0].queues.len(), world.answers.len()), (1, 0), "it waits, once");
    world.call(0, 10, 5, moody);
    world.settle(moody);
    world.take_over(0, true, moody);
    world.settle(moody);
    assert_eq!((world.fields(0, 10), world.has_answer(3)), (&[5, 3][..], true));
}

#[test]
fn two_that_ask_at_once_for_a_key_that_is_kept_are_answered_and_nothing_runs() {
    let mut world = small(|_| {});
    call_all(&mut world, [1, 2]);
    world.quick = false;
    world.answers.clear();
    world.call(0, 10, 1, forward);
    world.call(0, 10, 1, forward);
    let owner = world.owner(0);
    assert_eq!(world.owners[owner].recalls.len(), 1, "the journal is asked once");
    let call = Call { key: "1".to_owned(), request: 99, as_written: None, recorded: true };
    let other = Message::new(Envelope { from: None, to: 10, birth: None, creates: false, call: Some(call), body: 9 });
    world.handle(owner, Event::Called(other.clone()), forward);
    assert_eq!(world.answers.iter().next(), Some(&("1".to_owned(), Answer::OtherRequest)));
    world.settle(forward);
    assert!(world.has_answer(1));
    world.answers.clear();
    world.handle(owner, Event::Called(other), forward);
    world.settle(forward);
    assert_eq!(world.answers.iter().next(), Some(&("1".to_owned(), Answer::OtherRequest)), "the journal says so too");
    assert_eq!((world.fields(0, 10).len(), world.owners[owner].machine.queued()), (2, 0));
}

#[test]
fn an_answer_that_cannot_be_read_is_said_and_nothing_runs() {
    let mut world = small(|_| {});
    call_all(&mut world, [1]);
    world.quick = false;
    world.answers.clear();
    world.call(0, 10, 1, forward);
    let owner = world.owner(0);
    let (key, numbers) = world.owners[owner].recalls.remove(0);
    let found = Err("a damaged page".to_owned());
    world.handle(owner, Event::Recalled { key, numbers, found }, forward);
    assert_eq!(world.answers.iter().next(), Some(&("1".to_owned(), Answer::Unread("a damaged page".to_owned()))));
    world.call(0, 10, 1, forward);
    world.settle(forward);
    assert_eq!((world.has_answer(1), world.fields(0, 10).len()), (true, 1));
}

#[test]
fn what_an_earlier_program_has_recorded_counts_for_as_long_after_the_upgrade() {
    let mut world = small(|_| {});
    let since = Wall(1000);
    let earlier = (1..=200_u8).map(|body| Recorded {
        key: body.to_string(),
        request: u64::from(body),
        at: Wall::default(),
        answer: Some(body),
    });
    world.disks[0].answers.earlier = earlier.map(|recorded| (recorded.key.clone(), recorded)).collect();
    world.disks[0].answers.earlier_since = since;
    for now in [1000, DAY / 2, DAY + 999] {
        world.now = now;
        world.take_over(0, true, forward);
        tick(&mut world);
        for body in [1, 200] {
            assert_eq!(answered(&mut world, body), [Answer::Done(Some(body))]);
        }
    }
    assert_eq!(world.fields(0, 10), []);
    assert_eq!(world.disks[0].answers.earlier.len(), 200);
    world.now = DAY + 1000;
    world.call(0, 10, 1, forward);
    assert!(world.pending[0].commit.2.len() < 100, "old records go in small steps");
    world.settle(forward);
    tick(&mut world);
    assert_eq!((world.fields(0, 10).len(), world.disks[0].answers.earlier.len()), (1, 0));
}

#[test]
fn a_bundle_that_the_journal_refuses_is_written_later_and_blames_no_turn() {
    let mut world = small(|_| {});
    call_all(&mut world, 1..=3);
    world.call(0, 10, 4, forward);
    let owner = world.owner(0);
    world.apply(0);
    world.hear(owner, forward);
    let Pending { commit, .. } = world.pending.pop().expect("a bundle of four is committed by itself");
    world.handle(owner, Event::Aborted { id: commit.0, error: "refused".to_owned() }, forward);
    assert!(world.pending.is_empty(), "not again at once");
    assert!(world.owners[owner].machine.deadline() > Some(world.time()), "nothing is done over and over");
    call_all(&mut world, [5]);
    assert_eq!((world.disks[0].answers.bundles.len(), world.fields(0, 10).len()), (0, 5));
    world.now += 1000;
    tick(&mut world);
    assert_eq!(world.disks[0].answers.bundles.values().next().map(|bundle| bundle.marks.len()), Some(5));
}

#[test]
fn a_turn_is_not_blamed_for_the_bundle_that_its_commit_was_to_write() {
    let mut world = small(|_| {});
    call_all(&mut world, 1..=3);
    for body in [4, 5] {
        world.call(0, 10, body, forward);
    }
    let owner = world.owner(0);
    world.apply(0);
    world.hear(owner, forward);
    let Pending { commit: CommitOf(id, turns, writes), .. } = world.pending.pop().expect("the turn of 5 is committed");
    assert!(turns.len() == 1 && writes.iter().any(|write| matches!(write, Write::Tie { .. })), "{writes:?}");
    world.handle(owner, Event::Aborted { id, error: "refused".to_owned() }, forward);
    world.settle(forward);
    assert_eq!((world.fields(0, 10), world.disks[0].parked.len()), (&[1, 2, 3, 4, 5][..], 0));
}
