//! The claims that every provider keeps: run [`all`] from a provider's own tests, against an empty store.
//!
//! Each function is one claim and panics, naming what it saw, when the claim does not hold. A claim uses keys under a
//! prefix of its own, so that claims may also run one by one or side by side on one store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::key::KEY_BYTES_MAX;
use crate::{Applied, Found, Store, StoreError, Version};

/// Runs every claim, one after another.
pub async fn all(store: Arc<dyn Store>) {
    let store = &*store;
    a_created_value_is_read_back_with_its_version(store).await;
    creating_twice_conflicts(store).await;
    a_replace_with_a_stale_version_conflicts_and_changes_nothing(store).await;
    an_absent_key_is_neither_replaced_nor_deleted(store).await;
    a_delete_with_a_stale_version_is_refused(store).await;
    versions_are_not_reused_after_delete_and_create(store).await;
    equal_values_get_different_versions(store).await;
    scans_page_in_key_order(store).await;
    a_scan_goes_on_after_a_key_that_is_gone(store).await;
    odd_keys_are_kept_apart(store).await;
    impossible_keys_are_refused_by_name(store).await;
    large_and_empty_values_come_back_whole(store).await;
    a_foreign_version_conflicts(store).await;
    concurrent_increments_lose_none(store).await;
    of_concurrent_creates_one_wins(store).await;
}

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
    assert_conflict(store.create("twice/a", "two".into(), BY).await, Some(&first));
    assert_eq!(read(store, "twice/a").await, Some(("one".into(), first)));
}

/// Only the newest version can be replaced.
pub async fn a_replace_with_a_stale_version_conflicts_and_changes_nothing(store: &dyn Store) {
    let first = create(store, "stale/a", "one").await;
    let second = store.replace("stale/a", "two".into(), &first, BY).await.expect("the version is current");
    assert_ne!(first, second);
    assert_conflict(store.replace("stale/a", "three".into(), &first, BY).await, Some(&second));
    assert_eq!(read(store, "stale/a").await, Some(("two".into(), second)));
}

/// What is not there has no version that could match.
pub async fn an_absent_key_is_neither_replaced_nor_deleted(store: &dyn Store) {
    let elsewhere = create(store, "absent/a", "one").await;
    assert_conflict(store.replace("absent/b", "two".into(), &elsewhere, BY).await, None);
    assert_conflict(store.delete("absent/b", &elsewhere, BY).await, None);
    assert_eq!(read(store, "absent/b").await, None);
}

/// Only the newest version can be deleted, once.
pub async fn a_delete_with_a_stale_version_is_refused(store: &dyn Store) {
    let first = create(store, "delete/a", "one").await;
    let second = store.replace("delete/a", "two".into(), &first, BY).await.expect("the version is current");
    assert_conflict(store.delete("delete/a", &first, BY).await, Some(&second));
    assert_eq!(read(store, "delete/a").await, Some(("two".into(), second.clone())));
    store.delete("delete/a", &second, BY).await.expect("the version is current");
    assert_eq!(read(store, "delete/a").await, None);
    assert_conflict(store.delete("delete/a", &second, BY).await, None);
}

/// A version from before a deletion never matches what was created after it.
pub async fn versions_are_not_reused_after_delete_and_create(store: &dyn Store) {
    let mut seen: Vec<Version> = Vec::new();
    for _ in 0..5 {
        let version = create(store, "reuse/a", "the same").await;
        for old in &seen {
            assert_conflict(store.replace("reuse/a", "stale".into(), old, BY).await, Some(&version));
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

/// Whatever the page size, the pages together are the items of the prefix, each once, in byte order.
pub async fn scans_page_in_key_order(store: &dyn Store) {
    let mut expected = Vec::new();
    for name in ["10", "9", "a", "B", "é", "a/b", "a b", "z", "\u{ffff}", "\u{10000}"] {
        let key = format!("scan/in/{name}");
        create(store, &key, name).await;
        expected.push(key);
    }
    for outside in ["scan/im", "scan/in", "scan/in0", "scan/io/a"] {
        create(store, outside, "outside").await;
    }
    expected.sort();
    for limit in [1, 3, expected.len(), usize::MAX] {
        assert_eq!(scan(store, "scan/in/", limit).await, expected, "with pages of {limit}");
    }
    assert_eq!(scan(store, "scan/in/a", 2).await, ["scan/in/a", "scan/in/a b", "scan/in/a/b"]);
    assert!(scan(store, "scan/none/", 5).await.is_empty());
    let all = store.scan("", None, usize::MAX, BY).await.expect("an empty prefix is every key");
    assert!(all.items.len() >= expected.len());
    let before = store.scan("scan/in/", Some("a"), 1, BY).await.expect("`after` may lie before the prefix");
    assert_eq!(before.items[0].key, expected[0]);
    let past = store.scan("scan/in/", Some("zzz"), 1, BY).await.expect("`after` may lie behind the prefix");
    assert_eq!((past.items.len(), past.next), (0, None));
}

/// The key that a page ended with need not exist when the next page is read.
pub async fn a_scan_goes_on_after_a_key_that_is_gone(store: &dyn Store) {
    let mut versions = Vec::new();
    for key in ["gone/a", "gone/b", "gone/c"] {
        versions.push(create(store, key, "x").await);
    }
    let first = store.scan("gone/", None, 2, BY).await.expect("a scan");
    assert_eq!(first.next.as_deref(), Some("gone/b"));
    store.delete("gone/b", &versions[1], BY).await.expect("the version is current");
    let second = store.scan("gone/", first.next.as_deref(), 2, BY).await.expect("a scan");
    let keys: Vec<_> = second.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!((keys, second.next), (vec!["gone/c"], None));
}

/// Every allowed key is itself and no other: case, escapes, wildcards and scripts included.
pub async fn odd_keys_are_kept_apart(store: &dyn Store) {
    let longest = format!("odd/{}", "k".repeat(KEY_BYTES_MAX - 4));
    let mut keys: Vec<String> = [
        "/", "//", ".", "..", "a/", "/a", "a//b", "a/../b", "%", "%25", "%2F", "_", "*", "?", "a%", "A", "a", " ",
        " a", "a ", "\t", "\n", "'", "\"", "\\", "é", "e\u{301}", "日本", "🎭", "a:b", "{a}", "[a]", "#", "+", "&",
        "\u{7f}",
    ]
    .map(|name| format!("odd/{name}"))
    .into();
    keys.push(longest);
    let mut versions = Vec::new();
    for key in &keys {
        versions.push(create(store, key, key).await);
    }
    for (key, version) in keys.iter().zip(versions) {
        assert_eq!(read(store, key).await, Some((key.clone().into(), version)), "under {key:?}");
    }
    keys.sort();
    assert_eq!(scan(store, "odd/", 7).await, keys);
    assert_eq!(scan(store, "odd/%", 7).await, ["odd/%", "odd/%25", "odd/%2F"]);
}

/// What not every engine can hold is refused by all, by reads too.
pub async fn impossible_keys_are_refused_by_name(store: &dyn Store) {
    let version = create(store, "impossible/a", "x").await;
    for key in ["", "impossible/\0", &"k".repeat(KEY_BYTES_MAX + 1)] {
        let errors = [
            store.read(key, BY).await.expect_err("a read"),
            store.create(key, "x".into(), BY).await.expect_err("a create"),
            store.replace(key, "x".into(), &version, BY).await.expect_err("a replace"),
            store.delete(key, &version, BY).await.expect_err("a delete"),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::InvalidKey { .. }), "for {key:?}: {error}");
            assert_eq!(error.applied(), Applied::No);
        }
    }
}

/// A value is bytes: none, any, or 1 MiB of them.
pub async fn large_and_empty_values_come_back_whole(store: &dyn Store) {
    let mut state = 1_u32;
    let large: Bytes = (0..1 << 20)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let not_text = Bytes::from_static(&[0, 0xff, 0, 0xfe, b'\'', b'\n']);
    for (key, value) in [("value/large", large), ("value/empty", Bytes::new()), ("value/raw", not_text)] {
        let version = store.create(key, value.clone(), BY).await.expect("it fits");
        assert!(read(store, key).await == Some((value.clone(), version.clone())), "{key} has changed");
        let version = store.replace(key, value.clone(), &version, BY).await.expect("the version is current");
        assert!(read(store, key).await == Some((value, version)), "{key} has changed");
    }
}

/// A version that this store never gave matches nothing, and is no reason to fall over.
pub async fn a_foreign_version_conflicts(store: &dyn Store) {
    let version = create(store, "foreign/a", "x").await;
    for foreign in ["", "0", "-1", "no number", "999999999999999999999999", "W/\"etag\""] {
        assert_conflict(store.replace("foreign/a", "y".into(), &Version::new(foreign), BY).await, Some(&version));
        assert_conflict(store.delete("foreign/a", &Version::new(foreign), BY).await, Some(&version));
    }
    assert_eq!(read(store, "foreign/a").await, Some(("x".into(), version)));
}

/// Read, add one, replace, again on conflict: no increment is lost and none is made twice.
pub async fn concurrent_increments_lose_none(store: &dyn Store) {
    const WRITERS: usize = 8;
    const INCREMENTS: usize = 10;
    join_all((0..WRITERS).map(|_| async move {
        for _ in 0..INCREMENTS {
            increment(store, "count/a").await;
        }
    }))
    .await;
    let (value, _) = read(store, "count/a").await.expect("it was created");
    assert_eq!(value, (WRITERS * INCREMENTS).to_string());
}

/// Of many who create one key, one is told that it did, and its value is there.
pub async fn of_concurrent_creates_one_wins(store: &dyn Store) {
    let creates = (0..8).map(|n| store.create("race/a", n.to_string().into(), BY));
    let winners: Vec<_> =
        join_all(creates).await.into_iter().enumerate().filter_map(|(n, created)| Some((n, created.ok()?))).collect();
    let [(winner, version)] = &winners[..] else { panic!("{} creations have won", winners.len()) };
    assert_eq!(read(store, "race/a").await, Some((winner.to_string().into(), version.clone())));
}

/// Adds one to the decimal number under `key` by compare-and-swap, creating it with 1; for longer runs of one's own.
pub async fn increment(store: &dyn Store, key: &str) {
    loop {
        let written = match read(store, key).await {
            None => store.create(key, "1".into(), BY).await,
            Some((value, version)) => {
                let text = str::from_utf8(&value).expect("it holds a number");
                let next = text.parse::<u64>().expect("it holds a number") + 1;
                store.replace(key, next.to_string().into(), &version, BY).await
            }
        };
        match written {
            Ok(_) => return,
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
}

async fn read(store: &dyn Store, key: &str) -> Option<(Bytes, Version)> {
    let found = store.read(key, BY).await.expect("a read of a good key succeeds");
    found.map(|found| (found.value, found.version))
}

async fn create(store: &dyn Store, key: &str, value: &str) -> Version {
    let created = store.create(key, Bytes::copy_from_slice(value.as_bytes()), BY).await;
    created.unwrap_or_else(|error| panic!("{key:?} is to be created: {error}"))
}

async fn scan(store: &dyn Store, prefix: &str, limit: usize) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = store.scan(prefix, after.as_deref(), limit, BY).await.expect("a scan of a good prefix succeeds");
        assert!(page.items.len() <= limit);
        keys.extend(page.items.into_iter().map(|item| item.key));
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

fn assert_conflict<T: std::fmt::Debug>(result: crate::Result<T>, current: Option<&Version>) {
    let error = result.expect_err("the condition does not hold");
    assert_eq!(error.applied(), Applied::No, "{error}");
    let StoreError::Conflict { found, .. } = &error else { panic!("a conflict, not: {error}") };
    let allowed = current.cloned().map_or(Found::Absent, Found::Version);
    assert!(*found == allowed || *found == Found::Untold, "{error}; it is {allowed:?}");
}

/// Generous, for slow disks: these are claims about outcomes, not about speed.
const BY: Duration = Duration::from_secs(30);
