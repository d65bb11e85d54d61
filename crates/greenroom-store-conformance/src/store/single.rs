//! One caller after another on single keys.

use std::time::{Duration, Instant};

use greenroom_store::{Applied, Store, StoreError, Version};

use crate::BY;
use crate::plain::{assert_conflict, create, read};

/// What is created is read with the version that its creation answered, and only there.
pub async fn a_created_value_is_read_back_with_its_version(store: &dyn Store) {
    assert_eq!(read(store, "basic/a").await, None, "the store must be empty at first");
    let version = create(store, "basic/a", "one").await;
    assert_eq!(read(store, "basic/a").await, Some(("one".into(), version)));
    assert_eq!(read(store, "basic/b").await, None);
}

/// A key exists once; the refused creation changes nothing and says what is there.
pub async fn creating_twice_conflicts(store: &dyn Store) {
    let first = create(store, "twice/a", "one").await;
    assert_conflict(store.create("twice/a", "two".into(), BY).await, "twice/a", Some(&first));
    assert_eq!(read(store, "twice/a").await, Some(("one".into(), first)));
}

/// Only the newest version can be replaced.
pub async fn a_replace_with_a_stale_version_conflicts_and_changes_nothing(store: &dyn Store) {
    let first = create(store, "stale/a", "one").await;
    let second = store.replace("stale/a", "two".into(), &first, BY).await.expect("the version is current");
    assert_ne!(first, second);
    assert_conflict(store.replace("stale/a", "three".into(), &first, BY).await, "stale/a", Some(&second));
    assert_eq!(read(store, "stale/a").await, Some(("two".into(), second)));
}

/// What is not there has no version that could match.
pub async fn an_absent_key_is_neither_replaced_nor_deleted(store: &dyn Store) {
    let elsewhere = create(store, "absent/a", "one").await;
    assert_conflict(store.replace("absent/b", "two".into(), &elsewhere, BY).await, "absent/b", None);
    assert_conflict(store.delete("absent/b", &elsewhere, BY).await, "absent/b", None);
    assert_eq!(read(store, "absent/b").await, None);
}

/// Only the newest version can be deleted, once.
pub async fn a_delete_with_a_stale_version_is_refused(store: &dyn Store) {
    let first = create(store, "delete/a", "one").await;
    let second = store.replace("delete/a", "two".into(), &first, BY).await.expect("the version is current");
    assert_conflict(store.delete("delete/a", &first, BY).await, "delete/a", Some(&second));
    assert_eq!(read(store, "delete/a").await, Some(("two".into(), second.clone())));
    store.delete("delete/a", &second, BY).await.expect("the version is current");
    assert_eq!(read(store, "delete/a").await, None);
    assert_conflict(store.delete("delete/a", &second, BY).await, "delete/a", None);
}

/// A version from before a deletion never matches what was created after it.
pub async fn versions_are_not_reused_after_delete_and_create(store: &dyn Store) {
    let mut seen: Vec<Version> = Vec::new();
    for _ in 0..5 {
        let version = create(store, "reuse/a", "the same").await;
        for old in &seen {
            assert_conflict(store.replace("reuse/a", "stale".into(), old, BY).await, "reuse/a", Some(&version));
        }
        assert!(!seen.contains(&version), "version {version} was given twice");
        store.delete("reuse/a", &version, BY).await.expect("the version is current");
        seen.push(version);
    }
}

/// A version marks a write, not a content.
pub async fn equal_values_get_different_versions(store: &dyn Store) {
    let mut seen = vec![create(store, "equal/a", "same").await];
    for _ in 0..5 {
        let newest = seen.last().expect("it starts with one");
        let next = store.replace("equal/a", "same".into(), newest, BY).await.expect("the version is current");
        assert!(!seen.contains(&next), "version {next} was given twice");
        seen.push(next);
    }
}

/// A version that this store never gave matches nothing, and is no reason to fall over.
pub async fn a_foreign_version_conflicts(store: &dyn Store) {
    let version = create(store, "foreign/a", "x").await;
    for foreign in ["", "0", "-1", "no number", "999999999999999999999999", "W/\"etag\""] {
        assert_conflict(
            store.replace("foreign/a", "y".into(), &Version::new(foreign), BY).await,
            "foreign/a",
            Some(&version),
        );
        assert_conflict(store.delete("foreign/a", &Version::new(foreign), BY).await, "foreign/a", Some(&version));
    }
    assert_eq!(read(store, "foreign/a").await, Some(("x".into(), version)));
}

/// With a timeout that has passed before it began, or nearly so, a call still answers soon, and says the truth.
pub async fn without_time_left_a_call_answers_at_once_and_honestly(store: &dyn Store) {
    let begun = Instant::now();
    for (n, timeout) in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(100)].into_iter().enumerate() {
        let key = format!("hurry/{n}");
        // Whether a read is in time is a matter of luck.
        drop(store.read(&key, timeout).await);
        match store.create(&key, "x".into(), timeout).await {
            Ok(version) => assert_eq!(read(store, &key).await, Some(("x".into(), version))),
            Err(error) if error.applied() == Applied::No => assert_eq!(read(store, &key).await, None, "{error}"),
            Err(error) => assert!(matches!(error, StoreError::Unknown { .. }), "{error}"),
        }
    }
    assert!(begun.elapsed() < BY / 2, "calls without time have taken {:?}", begun.elapsed());
}
