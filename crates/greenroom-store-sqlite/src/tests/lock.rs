//! What happens while another process holds the file's write lock.

use std::time::Instant;

use futures_util::future::join_all;
use greenroom_store::Applied;

use super::*;

#[tokio::test]
async fn a_write_that_meets_a_held_lock_is_refused_in_time_and_never_applied() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.create("late", "x".into(), Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(error.applied(), Applied::No);
    assert!(error.to_string().contains("another process holds the file's lock"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    store.create("next", "x".into(), BY).await.unwrap();
    assert_eq!(store.read("late", BY).await.unwrap(), None);
}

#[tokio::test]
async fn reads_do_not_wait_behind_a_held_write_lock() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let version = store.create("key", "x".into(), BY).await.unwrap();
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = store.replace("key", "y".into(), &version, Duration::from_secs(1));
    let write = async { (write.await, Instant::now()) };
    let read = async { (store.read("key", BY).await.unwrap().unwrap().version, Instant::now()) };
    let ((written, given_up), (read, answered)) = futures_util::future::join(write, read).await;
    assert!(written.is_err() && read == version && answered < given_up);
}

#[tokio::test]
async fn a_short_timeout_does_not_take_the_patient_ones_with_it() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let short = store.create("short", "x".into(), Duration::from_millis(50));
    let long = store.create("long", "x".into(), BY);
    let release = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (short, long, ()) = futures_util::future::join3(short, long, release).await;
    assert_eq!(short.unwrap_err().applied(), Applied::No);
    assert!(long.is_ok());
    assert_eq!(store.read("short", BY).await.unwrap(), None);
}

#[tokio::test]
async fn writes_that_wait_together_are_committed_together() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let other = raw(&path);
    other
        .execute_batch(
            "CREATE TABLE commits (n);
             CREATE TRIGGER counting AFTER UPDATE ON greenroom_meta BEGIN INSERT INTO commits VALUES (1); END;
             BEGIN IMMEDIATE",
        )
        .unwrap();
    let keys: Vec<_> = (0..100).map(|n| format!("key/{n}")).collect();
    let writes = join_all(keys.iter().map(|key| store.create(key, "x".into(), BY)));
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (written, ()) = futures_util::future::join(writes, release).await;
    assert!(written.iter().all(Result::is_ok));
    let commits: i64 = other.query_row("SELECT count(*) FROM commits", [], |row| row.get(0)).unwrap();
    assert_eq!(commits, 1);
}

#[tokio::test]
async fn what_does_not_fit_the_queue_is_refused_and_the_rest_is_served() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let keys: Vec<_> = (0..6000).map(|n| format!("key/{n}")).collect();
    let writes = join_all(keys.iter().map(|key| store.create(key, "x".into(), BY)));
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (written, ()) = futures_util::future::join(writes, release).await;
    let errors: Vec<_> = written.iter().filter_map(|written| written.as_ref().err()).collect();
    assert!(!errors.is_empty(), "the queue has no bound");
    for error in &errors {
        assert!(error.applied() == Applied::No && error.to_string().contains("are waiting already"), "{error}");
    }
    let mut stored = 0;
    let mut after = None;
    loop {
        let page = store.scan("key/", after.as_deref(), 1000, BY).await.unwrap();
        stored += page.items.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(stored, keys.len() - errors.len());
}
