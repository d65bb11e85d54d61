mod conformance;
mod restarts;

use std::sync::Arc;
use std::time::Instant;

use greenroom_engines::{Minio, free_port, unless_missing};

use super::*;

const BY: Duration = Duration::from_secs(30);

#[tokio::test]
async fn long_keys_of_one_beginning_are_scanned_in_order_page_by_page() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = ObjectStore::open(&minio.url()).await.unwrap();
    let long = "é".repeat(200);
    let mut keys: Vec<String> = (0..7).map(|n| format!("long/{long}{}{n}", "ü".repeat(n % 3))).collect();
    keys.extend(["long/a", "long/z", "long/é"].map(str::to_owned));
    keys.extend(["", "a", "~"].map(|end| format!("long/{}{end}", "é".repeat(126))));
    for key in &keys {
        store.create(key, key.clone().into(), BY).await.unwrap();
    }
    keys.sort();
    for limit in [1, 3, 100] {
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = store.scan("long/", after.as_deref(), limit, BY).await.unwrap();
            found.extend(page.items.into_iter().map(|item| item.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, keys, "with pages of {limit}");
    }
    let beginning = format!("long/{long}ü");
    let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(&beginning)).cloned().collect();
    let page = store.scan(&beginning, None, 100, BY).await.unwrap();
    assert_eq!(page.items.into_iter().map(|item| item.key).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn tombstones_are_passed_over_and_go_when_they_are_told_to() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = ObjectStore::open(&minio.url()).await.unwrap();
    for n in 0..5 {
        let version = store.create(&format!("dead/{n}"), "x".into(), BY).await.unwrap();
        store.delete(&format!("dead/{n}"), &version, BY).await.unwrap();
    }
    let last = store.create("dead/9", "alive".into(), BY).await.unwrap();
    let page = store.scan("dead/", None, 2, BY).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    assert_eq!(store.remove_tombstones("dead/", BY).await.unwrap(), 5);
    assert_eq!(store.remove_tombstones("dead/", BY).await.unwrap(), 0);
    assert_eq!(store.read("dead/9", BY).await.unwrap().unwrap().version, last);
    store.create("dead/0", "again".into(), BY).await.unwrap();
}

#[tokio::test]
async fn a_store_serves_runtimes_other_than_the_one_that_opened_it() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = ObjectStore::open(&minio.url()).await.unwrap();
    let elsewhere = |n: u32| {
        let store = store.clone();
        std::thread::spawn(move || {
            // Not even a timer is there.
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for _ in 0..5 {
                    increment(&store, "shared").await;
                }
                store.create(&format!("own/{n}"), Bytes::new(), BY).await.unwrap();
            });
        })
    };
    let threads: Vec<_> = (0..3).map(elsewhere).collect();
    let joined = tokio::task::spawn_blocking(|| threads.into_iter().for_each(|thread| thread.join().unwrap()));
    joined.await.unwrap();
    assert_eq!(&store.read("shared", BY).await.unwrap().unwrap().value[..], b"15");
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let store = ObjectStore::open(&minio.url()).await.unwrap();
    let error = store.create("large", vec![7; VALUE_BYTES_MAX + 1].into(), BY).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { bytes_max: VALUE_BYTES_MAX, .. }), "{error}");
    store.create("large", vec![7; VALUE_BYTES_MAX].into(), BY).await.unwrap();
    assert_eq!(store.read("large", BY).await.unwrap().unwrap().value.len(), VALUE_BYTES_MAX);
}

#[tokio::test]
async fn what_is_wrong_with_a_url_is_answered_with_the_remedy() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let endpoint = format!("endpoint=http://127.0.0.1:{}", minio.port());
    type Expected = fn(&StoreError) -> bool;
    let is_denied: Expected = |error| matches!(error, StoreError::Denied { .. });
    let is_bad: Expected = |error| matches!(error, StoreError::Configuration { .. });
    let is_down: Expected = |error| matches!(error, StoreError::Unavailable { .. });
    let cases: [(String, Expected, &str); 7] = [
        (format!("s3://minio:wrong@greenroom?{endpoint}"), is_denied, "see to the keys"),
        (format!("s3://nobody:minio12345@greenroom?{endpoint}"), is_denied, "see to the keys"),
        (format!("s3://minio:minio12345@nowhere?{endpoint}"), is_bad, "no such bucket"),
        (format!("s3://minio@greenroom?{endpoint}"), is_bad, "password_file"),
        (format!("s3://minio:minio12345@greenroom?{endpoint}&zone=1"), is_bad, "there are: endpoint, region"),
        ("etcd://127.0.0.1".to_owned(), is_bad, "it is no bucket"),
        (format!("s3://a:b@greenroom?endpoint=http://127.0.0.1:{}", free_port()), is_down, "whether it runs"),
    ];
    for (url, expected, part) in cases {
        let error = ObjectStore::open(&url).await.unwrap_err();
        assert!(expected(&error) && error.to_string().contains(part), "{url}: {error}");
        assert!(!error.to_string().contains("wrong") && !error.to_string().contains("minio12345"), "{error}");
    }
}

#[tokio::test]
async fn two_prefixes_are_two_stores_and_other_objects_are_no_keys() {
    let Some(minio) = unless_missing(Minio::start()) else { return };
    let a = ObjectStore::open(&minio.url_of("a/b")).await.unwrap();
    let b = ObjectStore::open(&minio.url_of("b")).await.unwrap();
    a.create("key", "of a".into(), BY).await.unwrap();
    assert_eq!(b.read("key", BY).await.unwrap(), None);
    assert!(b.scan("", None, 10, BY).await.unwrap().items.is_empty());
    use object_store::ObjectStoreExt as _;
    b.bucket.s3.put(&object::path("b/k/foreign"), "no name of a key".into()).await.unwrap();
    b.bucket.s3.put(&object::path("b/k/foreign!"), "no object of a key's".into()).await.unwrap();
    let error = b.read("foreign", BY).await.unwrap_err();
    assert!(matches!(error, StoreError::Format { .. }) && error.to_string().contains("prefix of its own"), "{error}");
}

/// Adds one to the number under `key`.
async fn increment(store: &dyn Store, key: &str) {
    loop {
        let written = match store.read(key, BY).await.unwrap() {
            None => store.create(key, "1".into(), BY).await,
            Some(found) => {
                let next = str::from_utf8(&found.value).unwrap().parse::<u64>().unwrap() + 1;
                store.replace(key, next.to_string().into(), &found.version, BY).await
            }
        };
        match written {
            Ok(_) => return,
            Err(error) => assert!(error.is_conflict(), "{error}"),
        }
    }
}
