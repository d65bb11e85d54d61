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
    };
    handle(&mut far, Event::Read(Some((busy(2, 7), etag("2")))));
    let out = handle(&mut far, Event::Written(Written::Conflict));
    assert!(matches!(&out[..], [Action::Delegate(batch)] if batch.first == 2), "B6: {out:?}");
}

#[test]
fn a_copy_of_a_delegated_batch_is_written_once() {
    let batch = Batch { session: session(2, 1), first: 1, changes: vec![Change::Update(5)] };
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
    let batch = Batch { session: session(2, 1), first: 1, changes: vec![Change::Update(5)] };
    handle(&mut c, Event::Delegated(batch));
    let late = Timestamp::default() + Config::default().delegate_timeout * 11;
    let mut out = Vec::new();
    c.handle(late, Event::Written(Written::Unknown), &mut out);
    c.handle(late, Event::Read(None), &mut out);
    assert_eq!(written(&out).state, Sum(1), "the store was away");
}
