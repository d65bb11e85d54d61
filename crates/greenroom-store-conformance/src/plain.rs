//! Short forms of operations that must succeed.

use bytes::Bytes;
use greenroom_store::{Applied, Found, Result, Store, StoreError, Version};

use crate::BY;

pub(crate) async fn read(store: &dyn Store, key: &str) -> Option<(Bytes, Version)> {
    let found = store.read(key, BY).await.unwrap_or_else(|error| panic!("{key:?} is to be read: {error}"));
    found.map(|found| (found.value, found.version))
}

/// The decimal number under `key`; 0 if there is none.
pub(crate) async fn number(store: &dyn Store, key: &str) -> u64 {
    read(store, key).await.map_or(0, |(value, _)| parse(&value))
}

pub(crate) fn parse(value: &[u8]) -> u64 {
    str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value:?} is no number"))
}

pub(crate) async fn create(store: &dyn Store, key: &str, value: &str) -> Version {
    let created = store.create(key, Bytes::copy_from_slice(value.as_bytes()), BY).await;
    created.unwrap_or_else(|error| panic!("{key:?} is to be created: {error}"))
}

/// The keys of all pages.
pub(crate) async fn scan(store: &dyn Store, prefix: &str, limit: usize) -> Vec<String> {
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

pub(crate) fn assert_conflict<T: std::fmt::Debug>(result: Result<T>, key: &str, current: Option<&Version>) {
    let error = result.expect_err("the condition does not hold");
    assert_eq!(error.applied(), Applied::No, "{error}");
    let StoreError::Conflict { key: named, found } = &error else { panic!("a conflict, not: {error}") };
    let allowed = current.cloned().map_or(Found::Absent, Found::Version);
    assert!(named == key && (*found == allowed || *found == Found::Untold), "{error}; it is {key:?} at {allowed:?}");
}

/// Adds one to the decimal number under `key` by compare-and-swap, creating it with 1; for longer runs of one's own.
pub async fn increment(store: &dyn Store, key: &str) {
    loop {
        let written = match read(store, key).await {
            None => store.create(key, "1".into(), BY).await,
            Some((value, version)) => {
                let next = parse(&value) + 1;
                store.replace(key, next.to_string().into(), &version, BY).await
            }
        };
        match written {
            Ok(_) => return,
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
}
