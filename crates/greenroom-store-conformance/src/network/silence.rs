//! Networks that say nothing: held requests, held answers, delays.

use std::time::{Duration, Instant};

use greenroom_store::{Applied, Commit, Journal, Store, StoreError};

use super::{LATE_MAX, PATIENCE, recover, settle};
use crate::journal::texts;
use crate::plain::{create, read};
use crate::{BY, Relay};

/// On a slow network everything works, and calls at the same time do not wait for one another.
pub async fn a_slow_network_changes_nothing_but_time(relay: &Relay, through: &dyn Store) {
    let version = create(through, "slow/a", "one").await;
    relay.delay(Duration::from_millis(25));
    let version = through.replace("slow/a", "two".into(), &version, BY).await.expect("the version is current");
    assert_eq!(read(through, "slow/a").await, Some(("two".into(), version)));
    let begun = Instant::now();
    let reads = (0..40).map(|_| read(through, "slow/a"));
    assert!(futures_util::future::join_all(reads).await.iter().all(Option::is_some));
    // One after another they would take 40 times 50 ms at least.
    assert!(
        begun.elapsed() < Duration::from_millis(1900),
        "40 reads have waited for one another: {:?}",
        begun.elapsed()
    );
    recover(relay, through).await;
}

/// Whatever the engine does, each call answers about when its timeout ends.
pub async fn a_silent_engine_is_given_up_in_time(relay: &Relay, through: &dyn Store) {
    let version = create(through, "silent/a", "x").await;
    for requests in [true, false] {
        if requests {
            relay.hold_requests()
        } else {
            relay.hold_answers()
        }
        let begun = Instant::now();
        let errors = [
            through.read("silent/a", PATIENCE).await.map(drop).expect_err("a read without an answer"),
            through.scan("silent/", None, 10, PATIENCE).await.map(drop).expect_err("a scan without an answer"),
            through.replace("silent/a", "y".into(), &version, PATIENCE).await.map(drop).expect_err("a write"),
            through.delete("silent/a", &version, PATIENCE).await.expect_err("a delete"),
        ];
        let took = begun.elapsed();
        assert!(took < 4 * PATIENCE + LATE_MAX, "four calls with timeouts of {PATIENCE:?} have taken {took:?}");
        for read in &errors[..2] {
            assert!(
                matches!(read, StoreError::Unavailable { .. } | StoreError::NotApplied { .. }),
                "of a read: {read}"
            );
        }
        relay.cut();
        recover(relay, through).await;
    }
}

/// A write whose answer, or which itself, was held up and then lost or delivered late: if the error says that it was not
/// applied, it never is; if nobody knows, the error says so.
pub async fn an_unanswered_write_is_unknown_or_was_not_applied(relay: &Relay, through: &dyn Store, direct: &dyn Store) {
    for (n, (requests, lost)) in [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate() {
        let (fresh, gone) = (format!("lost/{n}/new"), format!("lost/{n}/old"));
        let version = create(direct, &gone, "x").await;
        if requests {
            relay.hold_requests()
        } else {
            relay.hold_answers()
        }
        let written = through.create(&fresh, "x".into(), PATIENCE).await.map(drop);
        let deleted = through.delete(&gone, &version, PATIENCE).await;
        if lost {
            relay.cut();
        }
        recover(relay, through).await;
        settle(direct).await;
        for (key, outcome, unchanged) in [(&fresh, written, None), (&gone, deleted, Some(("x".into(), version)))] {
            let error = outcome.expect_err("nobody can have told");
            let kept = read(direct, key).await == unchanged;
            assert!(kept || error.applied() == Applied::Maybe, "{key} has changed after all: {error}");
            assert!(!error.is_conflict(), "{error}");
        }
    }
}

/// A conditional write that reaches the engine after its caller has given up finds the version gone.
pub async fn a_write_that_comes_late_never_replaces_its_successor(
    relay: &Relay,
    through: &dyn Store,
    direct: &dyn Store,
) {
    let version = create(direct, "late/a", "old").await;
    relay.hold_requests();
    let late = through.replace("late/a", "late".into(), &version, PATIENCE).await;
    late.expect_err("nobody can have told");
    let version = direct.replace("late/a", "new".into(), &version, BY).await.expect("nothing has arrived yet");
    recover(relay, through).await;
    settle(direct).await;
    assert_eq!(read(direct, "late/a").await, Some(("new".into(), version)));
}

/// As for a write: and if a commit has been applied, then all of it, once.
pub async fn an_unanswered_commit_is_applied_whole_or_not_at_all(
    relay: &Relay,
    through: &dyn Journal,
    direct: &dyn Journal,
) {
    for (n, (requests, lost)) in [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate() {
        let name = |part| format!("whole/{n}/{part}");
        // The connection is there before the fault, as it would be in use.
        read(through, &name("a")).await;
        if requests {
            relay.hold_requests()
        } else {
            relay.hold_answers()
        }
        let commit =
            Commit::new().put(name("a"), "x".into()).put(name("b"), "x".into()).append(name("log"), "x".into());
        let error = through.commit(commit, PATIENCE).await.expect_err("nobody can have told");
        if lost {
            relay.cut();
        }
        recover(relay, through).await;
        settle(direct).await;
        let found = [read(direct, &name("a")).await.is_some(), read(direct, &name("b")).await.is_some()];
        let entries = texts(direct, &name("log"), 1).await.len();
        assert!(
            found == [true; 2] && entries == 1 || found == [false; 2] && entries == 0,
            "{found:?}, {entries} entries"
        );
        assert!(error.applied() == Applied::Maybe || entries == 0, "it was applied after all: {error}");
    }
}
