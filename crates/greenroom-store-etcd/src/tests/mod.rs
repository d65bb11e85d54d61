mod conformance;
mod restarts;
mod settings;

use greenroom_engines::{Etcd, EtcdOptions, unless_missing};
use greenroom_store::{Commit, Journal};

use super::*;

const BY: Duration = Duration::from_secs(30);

/// A server for tests that are not about crashes.
fn fast() -> Option<Etcd> {
    unless_missing(Etcd::start_with(EtcdOptions { unsafe_no_fsync: true, ..EtcdOptions::default() }))
}

#[tokio::test]
async fn two_prefixes_are_two_stores() {
    let Some(etcd) = fast() else { return };
    let a = EtcdStore::open(&format!("{}/a", etcd.url())).await.unwrap();
    let b = EtcdStore::open(&format!("{}/b", etcd.url())).await.unwrap();
    a.create("key", "of a".into(), BY).await.unwrap();
    assert_eq!(b.read("key", BY).await.unwrap(), None);
    assert!(b.scan("", None, 10, BY).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_store_serves_runtimes_other_than_the_one_that_opened_it() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let elsewhere = |n: u32| {
        let store = store.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                for _ in 0..20 {
                    increment(&store, "shared").await;
                }
                store.create(&format!("own/{n}"), Bytes::new(), BY).await.unwrap();
            });
        })
    };
    let threads: Vec<_> = (0..3).map(elsewhere).collect();
    let joined = tokio::task::spawn_blocking(|| threads.into_iter().for_each(|thread| thread.join().unwrap()));
    joined.await.unwrap();
    assert_eq!(&store.read("shared", BY).await.unwrap().unwrap().value[..], b"60");
}

#[tokio::test]
async fn the_largest_value_fits_under_the_longest_key_and_one_byte_more_is_refused() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let (key, most) = ("k".repeat(key::KEY_BYTES_MAX), store.value_bytes_max());
    let version = store.create(&key, vec![7; most].into(), BY).await.unwrap();
    let error = store.replace(&key, vec![7; most + 1].into(), &version, BY).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { bytes_max, .. } if bytes_max == most), "{error}");
    assert_eq!(store.read(&key, BY).await.unwrap().unwrap().value.len(), most);
}

#[tokio::test]
async fn pages_of_large_values_stay_near_their_size() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    for n in 0..30 {
        store.create(&format!("large/{n:02}"), vec![7; 1 << 20].into(), BY).await.unwrap();
    }
    let (mut after, mut keys) = (None::<String>, Vec::new());
    loop {
        let page = store.scan("large/", after.as_deref(), 1000, BY).await.unwrap();
        assert!(page.items.len() <= 5, "{} MiB in one page", page.items.len());
        keys.extend(page.items.into_iter().map(|item| item.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(keys, (0..30).map(|n| format!("large/{n:02}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_commit_is_all_or_nothing_and_entries_get_their_positions() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let fence = store.create("fence", "1".into(), BY).await.unwrap();
    let commit = || Commit::new().hold("fence", &fence).put("a", "x".into()).append("log", "e".into());
    let committed = store.commit(commit().append("log", "f".into()).remove("none"), BY).await.unwrap();
    assert_eq!(committed.positions, [1, 2]);
    assert_eq!(store.read("a", BY).await.unwrap().unwrap().version, committed.versions[1].clone().unwrap());
    store.replace("fence", "2".into(), &fence, BY).await.unwrap();
    assert!(store.commit(commit(), BY).await.unwrap_err().is_conflict());
    assert_eq!(store.end("log", BY).await.unwrap(), 3);
    store.trim("log", 1, BY).await.unwrap();
    store.trim("log", 1, BY).await.unwrap();
    let entries = store.entries("log", 1, 10, BY).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), [2]);
    store.trim("log", u64::MAX, BY).await.unwrap();
    assert_eq!(store.commit(Commit::new().append("log", "g".into()), BY).await.unwrap().positions, [3]);
}

#[tokio::test]
async fn appends_of_two_openings_to_one_log_leave_no_gap() {
    let Some(etcd) = fast() else { return };
    let (a, b) = (EtcdStore::open(&etcd.url()).await.unwrap(), EtcdStore::open(&etcd.url()).await.unwrap());
    let appends = (0..40).map(|n| {
        let store = if n % 2 == 0 { &a } else { &b };
        store.commit(Commit::new().append("log", n.to_string().into()), BY)
    });
    let committed = futures_util::future::try_join_all(appends).await.unwrap();
    let mut positions: Vec<u64> = committed.into_iter().flat_map(|committed| committed.positions).collect();
    positions.sort_unstable();
    assert_eq!(positions, (1..=40).collect::<Vec<_>>());
    assert_eq!(a.entries("log", 1, 100, BY).await.unwrap().len(), 40);
}

#[tokio::test]
async fn a_commit_of_as_many_operations_as_the_limits_say_is_taken() {
    let Some(etcd) = fast() else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let most = store.limits().operations_max;
    let appends = |count| (0..count).fold(Commit::new(), |commit, n| commit.append(format!("log/{n}"), "x".into()));
    store.commit(appends(most), BY).await.unwrap();
    let error = store.commit(appends(most + 1), BY).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidCommit { .. }), "{error}");
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
