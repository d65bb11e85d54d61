mod formats;
mod full;
mod killed;
mod lock;
mod odd_files;
mod together;

use std::path::Path;

use greenroom_store_conformance::{Harness, journal, store};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

const BY: Duration = Duration::from_secs(30);

fn fresh() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

#[tokio::test]
async fn sqlite_keeps_every_claim_about_stores() {
    let (_directory, path) = fresh();
    let (one, other) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    store::all(&Harness::new(Arc::new(one)).also(Arc::new(other)).value_bytes_max(VALUE_BYTES_MAX)).await;
}

#[tokio::test]
async fn sqlite_keeps_every_claim_about_journals() {
    let (_directory, path) = fresh();
    let (one, other) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    journal::all(&[Arc::new(one), Arc::new(other)]).await;
}

#[tokio::test]
async fn without_syncs_every_claim_holds_too() {
    let (_directory, path) = fresh();
    let options = Options { durability: Durability::Normal, ..Options::default() };
    let opened = Arc::new(SqliteStore::open_with(path, &options).unwrap());
    store::all(&Harness::new(opened.clone())).await;
    journal::all(&[opened]).await;
}

#[tokio::test]
async fn a_write_acknowledged_to_one_opener_is_seen_by_another_at_once() {
    let (_directory, path) = fresh();
    let (a, b) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    let mut version = a.create("key", "0".into(), BY).await.unwrap();
    for n in 1..50 {
        let (writer, reader) = if n % 2 == 0 { (&a, &b) } else { (&b, &a) };
        version = writer.replace("key", n.to_string().into(), &version, BY).await.unwrap();
        assert_eq!(reader.read("key", BY).await.unwrap().unwrap().version, version);
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening_and_versions_go_on() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let first = store.create("key", "one".into(), BY).await.unwrap();
    store.delete("key", &first, BY).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    let second = store.create("key", "two".into(), BY).await.unwrap();
    assert_ne!(first, second);
    drop(store);
    let found = SqliteStore::open(&path).unwrap().read("key", BY).await.unwrap().unwrap();
    assert_eq!((&found.value[..], found.version), (&b"two"[..], second));
}

#[tokio::test]
async fn dropping_the_last_clone_closes_the_file_and_tidies_it() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let clone = store.clone();
    drop(store);
    clone.create("key", "one".into(), BY).await.unwrap();
    let log = path.with_extension("db-wal");
    assert!(log.exists());
    drop(clone);
    assert!(!log.exists(), "the log is left, so a connection is open");
}

#[tokio::test]
async fn many_openers_at_once_create_one_store() {
    let (_directory, path) = fresh();
    let open = |n: usize| {
        let path = path.clone();
        std::thread::spawn(move || {
            let store = SqliteStore::open(path).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                store::increment(&store, "shared").await;
                store.create(&format!("own/{n}"), Bytes::new(), BY).await.unwrap();
            });
        })
    };
    let threads: Vec<_> = (0..12).map(open).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(&store.read("shared", BY).await.unwrap().unwrap().value[..], b"12");
    assert_eq!(store.scan("own/", None, 100, BY).await.unwrap().items.len(), 12);
}
