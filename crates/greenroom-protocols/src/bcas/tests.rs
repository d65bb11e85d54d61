use std::collections::BTreeMap;

use super::*;
use crate::gsi::ClusterId;
use crate::time::Timestamp;

/// Numbers added; a negative one is rejected.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Sum(i64);

impl Versioned for Sum {
    type Update = i64;
    type Output = i64;
    type Error = &'static str;

    fn apply(&mut self, update: &i64) -> Result<i64, &'static str> {
        self.0 += update;
        if *update < 0 { Err("negative") } else { Ok(self.0) }
    }
}

const fn session(cluster: u16, epoch: u64) -> Session {
    Session { cluster: ClusterId(cluster), epoch }
}

fn worker(cluster: u16, epoch: u64) -> Worker<Sum> {
    Worker::new(session(cluster, epoch), Config::default())
}

fn handle(worker: &mut Worker<Sum>, event: Event<Sum>) -> Vec<Action<Sum>> {
    let mut out = Vec::new();
    worker.handle(Timestamp::default(), event, &mut out);
    out
}

fn add(worker: &mut Worker<Sum>, n: i64) -> Vec<Action<Sum>> {
    handle(worker, Event::Enqueue(Change::Update(n)))
}

fn written(out: &[Action<Sum>]) -> Record<Sum> {
    let record = out.iter().find_map(|action| match action {
        Action::Write { record, .. } => Some(record.clone()),
        _ => None,
    });
    record.unwrap_or_else(|| panic!("no write in {out:?}"))
}

fn etag(name: &str) -> Etag {
    Etag(name.to_owned())
}

/// A worker that has read an empty store.
fn ready(cluster: u16, epoch: u64) -> Worker<Sum> {
    let mut worker = worker(cluster, epoch);
    assert_eq!(handle(&mut worker, Event::Refresh(Waiter(0))), [Action::Read]);
    assert_eq!(handle(&mut worker, Event::Read(None)), [Action::Done(Waiter(0))]);
    worker
}

#[test]
fn a_delayed_write_that_lands_after_it_was_judged_failed_is_not_applied_again() {
    let mut a = ready(1, 1);
    let first = written(&add(&mut a, 1));
    add(&mut a, 2);
    assert_eq!(handle(&mut a, Event::Written(Written::Unknown)), [Action::Read]);
    let grown = written(&handle(&mut a, Event::Read(None)));
    assert_eq!(grown.state, Sum(3), "the retry carries what waited");
    assert_eq!(handle(&mut a, Event::Written(Written::Conflict)), [Action::Read], "the first write landed before");
    let out = handle(&mut a, Event::Read(Some((first, etag("1")))));
    assert_eq!(out[0], Action::Outcome(1, Applied::Output(1)), "B1");
    assert_eq!(written(&out).state, Sum(3));
}

#[test]
fn two_activations_in_one_cluster_do_not_take_each_others_updates_for_their_own() {
    let (mut a, mut b) = (ready(1, 1), ready(1, 2));
    let by_a = written(&add(&mut a, 1));
    add(&mut b, 10);
    assert_eq!(handle(&mut b, Event::Written(Written::Conflict)), [Action::Read]);
    let out = handle(&mut b, Event::Read(Some((by_a, etag("a")))));
    assert_eq!(written(&out).state, Sum(11), "B2: {out:?}");
}

#[test]
fn a_successor_does_not_take_its_predecessors_late_write_for_its_own() {
    let mut old = ready(1, 1);
    let late = written(&add(&mut old, 1));
    let mut successor = ready(1, 2);
    add(&mut successor, 10);
    handle(&mut successor, Event::Written(Written::Unknown));
    let out = handle(&mut successor, Event::Read(Some((late, etag("late")))));
    assert_eq!(written(&out).state, Sum(11), "B3: {out:?}");
}

#[test]
fn adoption_by_notification_trims_what_it_says_is_applied() {
    let (mut a, mut b) = (ready(1, 1), worker(2, 1));
    let by_a = written(&add(&mut a, 1));
    handle(&mut b, Event::Refresh(Waiter(0)));
    handle(&mut b, Event::Read(Some((by_a, etag("a")))));
    let by_b = written(&add(&mut b, 10));
    handle(&mut a, Event::Notified(by_b, etag("b")));
    assert_eq!(a.pending(), 0, "B4: the answer to its own write is still under way");
    assert_eq!(a.tentative(), Sum(11));
    let out = handle(&mut a, Event::Written(Written::Applied(etag("a"))));
    assert!(!out.iter().any(|action| matches!(action, Action::Write { .. })), "{out:?}");
    assert_eq!(a.confirmed().0, &Sum(11), "an older own write does not go back in time");
}

#[test]
fn a_refused_write_is_believed_only_after_re_reading() {
    let mut a = ready(1, 1);
    let own = written(&add(&mut a, 1));
    assert_eq!(handle(&mut a, Event::Written(Written::Conflict)), [Action::Read]);
    let out = handle(&mut a, Event::Read(Some((own, etag("own")))));
    assert_eq!(out, [Action::Outcome(1, Applied::Output(1))], "B5: the store's client refused its own success");
}

#[test]
fn an_instance_far_from_the_store_that_loses_two_races_is_written_for_by_the_near_one() {
    let mut far: Worker<Sum> = Worker::new(session(2, 1), Config { far: true, ..Config::default() });
    let out = add(&mut far, 5);
    let [Action::Delegate(batch)] = &out[..] else { panic!("a first write is delegated: {out:?}") };
    let mut near = ready(1, 1);
    let record = written(&handle(&mut near, Event::Delegated(batch.clone())));
    let out = handle(&mut near, Event::Written(Written::Applied(etag("1"))));
    assert!(out.contains(&Action::Notify(record.clone(), etag("1"))));
    let out = handle(&mut far, Event::Notified(record, etag("1")));
    assert_eq!(out, [Action::Outcome(1, Applied::Confirmed)], "one round trip");

    add(&mut far, 6);
    assert_eq!(handle(&mut far, Event::Written(Written::Conflict)), [Action::Read]);
    let busy = |version, sum| Record {
        version: Version { incarnation: 0, number: version },
        state: Sum(sum),
        sessions: [(session(2, 1), 1)].into(),
        salt: (session(1, 1), version),
        floors: BTreeMap::new(),
    };
    handle(&mut far, Event::Read(Some((busy(2, 7), etag("2")))));
    let out = handle(&mut far, Event::Written(Written::Conflict));
    assert!(matches!(&out[..], [Action::Delegate(batch)] if batch.first == 2), "B6: {out:?}");
}

#[test]
fn a_copy_of_a_delegated_batch_is_written_once() {
    let batch = Batch { session: session(2, 1), first: 1, seen: Version::default(), changes: vec![Change::Update(5)] };
    let mut near = ready(1, 1);
    handle(&mut near, Event::Delegated(batch.clone()));
    handle(&mut near, Event::Written(Written::Applied(etag("1"))));
    let out = handle(&mut near, Event::Delegated(batch));
    assert!(matches!(&out[..], [Action::Notify(record, _)] if record.state == Sum(5)), "{out:?}");
}

#[test]
fn what_waits_during_an_access_goes_into_the_next_one() {
    let mut a = ready(1, 1);
    add(&mut a, 1);
    for n in 2..=100 {
        assert_eq!(add(&mut a, n), [], "one access at a time");
    }
    assert_eq!(handle(&mut a, Event::Confirm(Waiter(7))), []);
    let out = handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    assert_eq!(written(&out).version.number, 100);
    let out = handle(&mut a, Event::Written(Written::Applied(etag("2"))));
    assert!(out.contains(&Action::Done(Waiter(7))));
}

#[test]
fn a_rejected_update_is_a_no_op_with_its_error_and_the_loop_goes_on() {
    let mut a = ready(1, 1);
    let out = add(&mut a, -1);
    let record = written(&out);
    assert_eq!((record.state, record.version.number), (Sum(0), 1));
    let out = handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    assert!(out.contains(&Action::Outcome(1, Applied::Rejected("negative"))));
    assert_eq!(written(&add(&mut a, 4)).state, Sum(4));
}

#[test]
fn a_cleared_state_is_later_than_all_before_it() {
    let mut a = ready(1, 1);
    let before = written(&add(&mut a, 1));
    handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    let cleared = written(&handle(&mut a, Event::Enqueue(Change::Clear)));
    handle(&mut a, Event::Written(Written::Applied(etag("2"))));
    assert!(cleared.version > before.version);
    handle(&mut a, Event::Notified(before, etag("1")));
    assert_eq!(a.confirmed().0, &Sum(0), "an old notification does not bring it back");
}

#[test]
fn a_refresh_does_not_wait_for_what_was_enqueued_after_it() {
    let mut a = ready(1, 1);
    add(&mut a, 1);
    add(&mut a, 2);
    handle(&mut a, Event::Refresh(Waiter(1)));
    handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    add(&mut a, 4);
    handle(&mut a, Event::Refresh(Waiter(2)));
    let out = handle(&mut a, Event::Written(Written::Applied(etag("2"))));
    assert!(out.contains(&Action::Done(Waiter(1))) && !out.contains(&Action::Done(Waiter(2))), "{out:?}");
    let out = handle(&mut a, Event::Written(Written::Applied(etag("3"))));
    assert!(out.contains(&Action::Done(Waiter(2))), "{out:?}");
}

#[test]
fn a_session_is_collected_once_it_is_fenced() {
    let mut a = ready(1, 1);
    let by_a = written(&add(&mut a, 1));
    let mut b = worker(2, 1);
    handle(&mut b, Event::Refresh(Waiter(0)));
    handle(&mut b, Event::Read(Some((by_a, etag("a")))));
    assert!(written(&add(&mut b, 1)).sessions.contains_key(&session(1, 1)));
    handle(&mut b, Event::Fenced(session(1, 1)));
    handle(&mut b, Event::Written(Written::Applied(etag("b"))));
    assert!(!written(&add(&mut b, 1)).sessions.contains_key(&session(1, 1)));
}

#[test]
fn a_refresh_is_not_served_by_an_access_that_began_before_it() {
    let mut a = ready(1, 1);
    add(&mut a, 1);
    handle(&mut a, Event::Refresh(Waiter(3)));
    let out = handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    assert!(!out.contains(&Action::Done(Waiter(3))));
    assert_eq!(out.last(), Some(&Action::Read));
    assert_eq!(handle(&mut a, Event::ReadFailed), []);
    assert_eq!(a.deadline(), Some(Timestamp::default() + Config::default().retry_after));
}

#[test]
fn who_delegated_hears_what_its_updates_came_to() {
    let far = Config { far: true, ..Config::default() };
    let mut n: Worker<Sum> = Worker::new(session(2, 1), far);
    let out = add(&mut n, -1);
    let Some(Action::Delegate(batch)) = out.first().cloned() else { panic!("{out:?}") };
    let mut c = ready(1, 1);
    handle(&mut c, Event::Delegated(batch));
    let out = handle(&mut c, Event::Written(Written::Applied(etag("1"))));
    let [Action::Tell(to, outcomes), Action::Notify(record, tag), ..] = &out[..] else { panic!("{out:?}") };
    assert_eq!((*to, &outcomes[..]), (session(2, 1), &[(1, Applied::Rejected("negative"))][..]));
    handle(&mut n, Event::Told(outcomes.clone()));
    let out = handle(&mut n, Event::Notified(record.clone(), tag.clone()));
    assert!(out.contains(&Action::Outcome(1, Applied::Rejected("negative"))), "{out:?}");
}

#[test]
fn a_batch_that_waits_for_too_long_is_left_to_its_sender() {
    let mut c = ready(1, 1);
    add(&mut c, 1);
    let batch = Batch { session: session(2, 1), first: 1, seen: Version::default(), changes: vec![Change::Update(5)] };
    handle(&mut c, Event::Delegated(batch));
    let late = Timestamp::default() + Config::default().delegate_timeout * 11;
    let mut out = Vec::new();
    c.handle(late, Event::Written(Written::Unknown), &mut out);
    c.handle(late, Event::Read(None), &mut out);
    assert_eq!(written(&out).state, Sum(1), "the store was away");
}

/// A worker that has written `changes`, one after the other, and the first record.
fn wrote(changes: &[i64]) -> (Worker<Sum>, Record<Sum>) {
    let (mut a, mut first) = (ready(1, 1), None);
    for (at, n) in (1..).zip(changes) {
        let record = written(&add(&mut a, *n));
        handle(&mut a, Event::Written(Written::Applied(etag(&at.to_string()))));
        first.get_or_insert(record);
    }
    (a, first.expect("something is written"))
}

#[test]
fn a_store_that_went_back_is_followed_after_a_pause_as_a_new_incarnation() {
    let (mut a, first) = wrote(&[1, 2]);
    add(&mut a, 4);
    handle(&mut a, Event::Written(Written::Conflict));
    let out = handle(&mut a, Event::Read(Some((first.clone(), etag("restored")))));
    let trouble = Trouble::WentBack { before: Version { incarnation: 0, number: 2 }, found: Some(first.version) };
    assert_eq!(out, [Action::Trouble(trouble)], "and a pause");
    let again = a.deadline().expect("it is tried again");
    let mut out = Vec::new();
    a.handle(again, Event::Tick, &mut out);
    let [Action::Write { expect, record, .. }] = &out[..] else { panic!("{out:?}") };
    assert_eq!(expect, &Some(etag("restored")));
    assert_eq!((&record.state, record.version), (&Sum(5), Version { incarnation: 1, number: 2 }));
    let out = handle(&mut a, Event::Written(Written::Applied(etag("3"))));
    assert!(out.contains(&Action::Outcome(3, Applied::Output(5))), "{out:?}");
}

#[test]
fn who_notices_that_the_store_went_back_writes_so_at_once() {
    let (mut a, first) = wrote(&[1, 2]);
    assert_eq!(handle(&mut a, Event::Refresh(Waiter(9))), [Action::Read]);
    let out = handle(&mut a, Event::Read(Some((first.clone(), etag("restored")))));
    assert!(out.contains(&Action::Done(Waiter(9))), "what is there is the latest: {out:?}");
    assert_eq!(a.confirmed(), (&Sum(1), Version { incarnation: 1, number: 1 }));
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    assert_eq!(written(&out).version, Version { incarnation: 1, number: 1 });
    handle(&mut a, Event::Written(Written::Unknown));
    assert_eq!(a.confirmed().1, Version { incarnation: 1, number: 1 });
    let mut out = Vec::new();
    a.handle(Timestamp::default(), Event::Read(Some((first, etag("restored")))), &mut out);
    assert_eq!(written(&out).version, Version { incarnation: 1, number: 1 }, "it did not go back twice");
}

#[test]
fn a_record_that_was_deleted_stays_so() {
    let (mut a, _) = wrote(&[1, 2]);
    add(&mut a, 4);
    handle(&mut a, Event::Written(Written::Conflict));
    let out = handle(&mut a, Event::Read(None));
    let trouble = Trouble::WentBack { before: Version { incarnation: 0, number: 2 }, found: None };
    assert_eq!(out, [Action::Trouble(trouble)]);
    assert_eq!(a.confirmed(), (&Sum(0), Version { incarnation: 1, number: 0 }));
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    let [Action::Write { expect: None, record, .. }] = &out[..] else { panic!("{out:?}") };
    assert_eq!((&record.state, record.version), (&Sum(4), Version { incarnation: 1, number: 1 }));
}

#[test]
fn without_updates_a_deleted_record_is_not_written_anew() {
    let (mut a, _) = wrote(&[1]);
    handle(&mut a, Event::Refresh(Waiter(9)));
    handle(&mut a, Event::Read(None));
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    assert_eq!(out, []);
}

#[test]
fn another_record_of_the_same_version_is_one_that_went_back_and_on() {
    let (mut a, _) = wrote(&[1, 2]);
    let other = Record {
        version: Version { incarnation: 0, number: 2 },
        state: Sum(70),
        sessions: [(session(1, 1), 1), (session(2, 1), 1)].into(),
        salt: (session(2, 1), 1),
        floors: BTreeMap::new(),
    };
    handle(&mut a, Event::Refresh(Waiter(9)));
    handle(&mut a, Event::Read(Some((other, etag("other")))));
    assert_eq!(a.confirmed(), (&Sum(70), Version { incarnation: 1, number: 2 }));
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    handle(&mut a, Event::Written(Written::Applied(etag("3"))));
    assert_eq!(written(&add(&mut a, 4)).state, Sum(74), "its next update comes next, though one is lost");
}

#[test]
fn what_comes_next_is_written_though_the_store_went_back_and_on_beyond() {
    let (mut a, _) = wrote(&[1, 2]);
    let beyond = Record {
        version: Version { incarnation: 0, number: 9 },
        state: Sum(70),
        sessions: [(session(2, 1), 9)].into(),
        salt: (session(2, 1), 1),
        floors: BTreeMap::new(),
    };
    let out = handle(&mut a, Event::Notified(beyond, etag("beyond")));
    assert!(matches!(&out[..], [Action::Trouble(Trouble::WentBack { .. })]), "two of its updates are lost: {out:?}");
    assert_eq!(written(&add(&mut a, 4)).state, Sum(74));
    handle(&mut a, Event::Written(Written::Applied(etag("4"))));
    assert_eq!(a.pending(), 0);
}

#[test]
fn a_read_that_a_notification_has_overtaken_changes_nothing() {
    let (mut a, first) = wrote(&[1]);
    handle(&mut a, Event::Refresh(Waiter(9)));
    let mut later = first.clone();
    (later.version.number, later.state, later.salt) = (2, Sum(8), (session(2, 1), 1));
    handle(&mut a, Event::Notified(later, etag("2")));
    handle(&mut a, Event::Read(Some((first, etag("1")))));
    assert_eq!(a.confirmed(), (&Sum(8), Version { incarnation: 0, number: 2 }));

    let mut cold = worker(2, 1);
    handle(&mut cold, Event::Refresh(Waiter(9)));
    let (b, _) = wrote(&[1]);
    let (record, tag) = b.record().unwrap();
    handle(&mut cold, Event::Notified(record.clone(), tag.clone()));
    handle(&mut cold, Event::Read(None));
    assert_eq!(cold.record(), b.record(), "there was none when it was read");
}

#[test]
fn a_write_that_is_refused_without_a_reason_is_tried_again_after_a_pause() {
    let (mut a, first) = wrote(&[1]);
    add(&mut a, 2);
    handle(&mut a, Event::Written(Written::Conflict));
    let out = handle(&mut a, Event::Read(Some((first, etag("1")))));
    assert_eq!(out, [Action::Trouble(Trouble::Refused)]);
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    assert_eq!(written(&out).state, Sum(3));

    let mut a = ready(1, 1);
    add(&mut a, 2);
    handle(&mut a, Event::Written(Written::Conflict));
    assert_eq!(handle(&mut a, Event::Read(None)), [Action::Trouble(Trouble::Refused)], "nor is there another record");
    assert!(a.deadline().is_some());
}

#[test]
fn each_write_has_a_salt_of_its_own() {
    let mut a = ready(1, 1);
    let first = written(&add(&mut a, 1));
    handle(&mut a, Event::Written(Written::Unknown));
    assert_ne!(written(&handle(&mut a, Event::Read(None))).salt, first.salt);
}

/// An instance far from the store that has delegated -1 in vain, and now writes it itself.
fn delegated_in_vain() -> Worker<Sum> {
    let config = Config { far: true, ..Config::default() };
    let mut far = Worker::new(session(2, 1), config);
    let out = add(&mut far, -1);
    assert!(matches!(out[..], [Action::Delegate(_)]));
    let (late, mut out) = (Timestamp::default() + config.delegate_timeout, Vec::new());
    far.handle(late, Event::Tick, &mut out);
    assert_eq!(out, [Action::Read], "it may have been written");
    far.handle(late, Event::Read(None), &mut out);
    written(&out);
    far
}

#[test]
fn what_its_own_write_gave_is_told_though_it_was_delegated_before() {
    let mut far = delegated_in_vain();
    let out = handle(&mut far, Event::Written(Written::Applied(etag("1"))));
    assert!(out.contains(&Action::Outcome(1, Applied::Rejected("negative"))), "{out:?}");
}

#[test]
fn what_its_own_write_would_have_given_is_not_told_if_another_has_written_it() {
    let mut far = delegated_in_vain();
    handle(&mut far, Event::Written(Written::Conflict));
    let other = Record {
        version: Version { incarnation: 0, number: 1 },
        state: Sum(9),
        sessions: [(session(2, 1), 1)].into(),
        salt: (session(1, 1), 1),
        floors: BTreeMap::new(),
    };
    let out = handle(&mut far, Event::Read(Some((other.clone(), etag("1")))));
    assert!(out.contains(&Action::Outcome(1, Applied::Confirmed)), "{out:?}");

    let mut told = delegated_in_vain();
    handle(&mut told, Event::Told(vec![(1, Applied::Output(9))]));
    handle(&mut told, Event::Written(Written::Unknown));
    let out = handle(&mut told, Event::Read(Some((other, etag("1")))));
    assert!(out.contains(&Action::Outcome(1, Applied::Output(9))), "who has written it knows: {out:?}");
}

#[test]
fn nothing_is_written_for_an_instance_that_is_fenced_or_whose_earlier_updates_are_missing() {
    let mut near = ready(1, 1);
    let batch =
        |first| Batch { session: session(2, 1), first, seen: Version::default(), changes: vec![Change::Update(5)] };
    assert_eq!(handle(&mut near, Event::Delegated(batch(3))), []);
    handle(&mut near, Event::Fenced(session(2, 1)));
    assert_eq!(handle(&mut near, Event::Delegated(batch(1))), []);
}

#[test]
fn a_batch_whose_numbers_do_not_end_is_not_taken_on() {
    let mut near = ready(1, 1);
    for first in [u64::MAX, u64::MAX - 1] {
        let changes = vec![Change::Update(5), Change::Update(6)];
        let batch = Batch { session: session(2, 1), first, seen: Version::default(), changes };
        assert_eq!(handle(&mut near, Event::Delegated(batch)), []);
    }
}

#[test]
fn a_session_that_is_fenced_is_known_until_the_next_write_lands() {
    let (mut a, first) = wrote(&[1]);
    let mut b = worker(2, 1);
    handle(&mut b, Event::Refresh(Waiter(0)));
    handle(&mut b, Event::Read(Some((first, etag("1")))));
    handle(&mut b, Event::Fenced(session(1, 1)));
    assert!(b.sessions().any(|known| known == session(1, 1)));
    handle(&mut a, Event::Fenced(session(1, 1)));
    assert!(written(&add(&mut a, 1)).sessions.contains_key(&session(1, 1)), "nobody collects itself");
}

/// A worker that has read `record` and writes what a batch of this session brings.
fn serves(record: Option<(Record<Sum>, Etag)>, batch: Batch<i64>) -> (Worker<Sum>, Vec<Action<Sum>>) {
    let mut near: Worker<Sum> = Worker::new(session(1, 99), Config { delegates: true, ..Config::default() });
    handle(&mut near, Event::Refresh(Waiter(0)));
    handle(&mut near, Event::Read(record));
    let out = handle(&mut near, Event::Delegated(batch));
    (near, out)
}

#[test]
fn sessions_of_short_lived_activations_are_collected_and_their_late_batches_refused() {
    let mut record: Option<(Record<Sum>, Etag)> = None;
    let batch = |epoch, seen| Batch { session: session(2, epoch), first: 1, seen, changes: vec![Change::Update(1)] };
    let mut all = Vec::new();
    for epoch in 1..=100 {
        let seen = record.as_ref().map(|(record, _)| record.version).unwrap_or_default();
        all.push(batch(epoch, seen));
        // Each finds another activation near the store, and tells it whom it has seen there.
        let (mut near, out) = serves(record.clone(), batch(epoch, seen));
        let first = written(&out);
        let tag = etag(&epoch.to_string());
        handle(&mut near, Event::Written(Written::Applied(tag.clone())));
        let seen: Vec<Session> = first.sessions.keys().copied().filter(|other| other.epoch != epoch).collect();
        for ended in seen {
            handle(&mut near, Event::Fenced(ended));
        }
        assert!(first.sessions.len() <= 3, "those of two others and of who is near: {:?}", first.sessions);
        let last = written(&add(&mut near, 0));
        record = Some((last, etag(&format!("{epoch}, collected"))));
    }
    let (record, tag) = record.unwrap();
    assert_eq!((&record.state, record.floors.len()), (&Sum(100), 1));
    for batch in all {
        let (_, out) = serves(Some((record.clone(), tag.clone())), batch);
        assert_eq!(out, [Action::Notify(record.clone(), tag.clone())], "it was written");
    }
    let (_, out) = serves(Some((record.clone(), tag.clone())), batch(101, Version::default()));
    assert_eq!(out, [Action::Notify(record.clone(), tag.clone())], "it might be one of those that are collected");
    let (_, out) = serves(Some((record.clone(), tag)), batch(101, record.version));
    assert_eq!(written(&out).state, Sum(101), "it has seen that it is not");
}

#[test]
fn who_may_have_been_collected_writes_by_itself_as_soon_as_it_hears_so() {
    let config = Config { far: true, delegates: true, ..Config::default() };
    let mut far: Worker<Sum> = Worker::new(session(2, 7), config);
    let out = add(&mut far, 5);
    assert!(matches!(&out[..], [Action::Delegate(_)]), "{out:?}");
    let version = Version { incarnation: 0, number: 9 };
    let (sessions, floors) = ([(session(2, 6), 1)].into(), [(ClusterId(2), version)].into());
    let record = Record { version, state: Sum(9), sessions, salt: (session(1, 1), 9), floors };
    let out = handle(&mut far, Event::Notified(record, etag("9")));
    assert_eq!(written(&out).state, Sum(14), "it does not wait for the one that has refused its batch");
}

#[test]
fn a_refresh_is_done_only_when_what_was_enqueued_before_it_is_confirmed() {
    let mut a = worker(1, 1);
    add(&mut a, 5);
    handle(&mut a, Event::Refresh(Waiter(7)));
    handle(&mut a, Event::ReadFailed);
    let mut out = Vec::new();
    a.handle(a.deadline().unwrap(), Event::Tick, &mut out);
    assert_eq!(out, [Action::Read]);
    let out = handle(&mut a, Event::Read(None));
    assert!(!out.contains(&Action::Done(Waiter(7))), "{out:?}");
    let out = handle(&mut a, Event::Written(Written::Applied(etag("1"))));
    assert!(out.contains(&Action::Done(Waiter(7))), "{out:?}");
}
