//! Disks without room.

use std::process::Command;

use futures_util::future::join_all;
use greenroom_store::{Applied, StoreError};
use greenroom_store_conformance::crash::{self, Acknowledged};

use super::*;

/// A store whose file may not grow past `pages` pages of 4 KiB.
fn confined(path: &Path, pages: i64) -> SqliteStore {
    let (file, writer) = schema::open(path, &Options::default()).unwrap();
    writer.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    SqliteStore::start(file, writer).unwrap()
}

#[tokio::test]
async fn without_room_a_write_is_refused_and_what_was_there_stays_usable() {
    let (_directory, path) = fresh();
    let store = confined(&path, 40);
    let version = store.create("small", "x".into(), BY).await.unwrap();
    let error = store.create("large", vec![1; 1 << 20].into(), BY).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }) && error.to_string().contains("free or add space"), "{error}");
    assert_eq!(store.read("large", BY).await.unwrap(), None);
    store.replace("small", "y".into(), &version, BY).await.unwrap();
}

#[tokio::test]
async fn a_write_without_room_does_not_spoil_those_committed_with_it() {
    let (_directory, path) = fresh();
    let store = confined(&path, 40);
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = store.create("before", "x".into(), BY);
    let large = store.create("large", vec![1; 1 << 20].into(), BY);
    let after = store.create("after", "x".into(), BY);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (before, large, after, ()) = futures_util::future::join4(before, large, after, release).await;
    assert!(matches!(large, Err(StoreError::Full { .. })));
    assert_ne!(before.unwrap(), after.unwrap());
}

#[tokio::test]
async fn a_journal_without_room_loses_nothing_acknowledged_and_goes_on_once_it_is_trimmed() {
    let (_directory, path) = fresh();
    let store = confined(&path, 200);
    fill_and_free(&store).await;
}

/// Appends until there is no room, checks what is there, trims, and appends again.
async fn fill_and_free(store: &SqliteStore) {
    let entry = Bytes::from(vec![7; 10_000]);
    let append = || Commit::new().append("log", entry.clone()).put("state", entry.clone());
    let mut acknowledged = 0;
    let error = loop {
        let results = join_all((0..4).map(|_| store.commit(append(), BY))).await;
        acknowledged += results.iter().filter(|result| result.is_ok()).count() as u64;
        if let Some(error) = results.into_iter().find_map(Result::err) {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Full { .. }) && error.applied() == Applied::No, "{error}");
    assert!(error.to_string().contains("free or add space, then write again"), "{error}");
    assert!(acknowledged >= 8, "{acknowledged} commits found room");
    assert_eq!(store.end("log", BY).await, Ok(acknowledged + 1));
    store.trim("log", acknowledged, BY).await.unwrap();
    for _ in 0..4 {
        acknowledged += 1;
        assert_eq!(store.commit(append(), BY).await.unwrap().positions, [acknowledged]);
    }
}

/// Not a claim: what runs on a tiny file system of its own, mounted on `ROOM_PATH`.
#[tokio::test]
async fn tenant() {
    let Some(directory) = std::env::var_os(ROOM_PATH).map(PathBuf::from) else { return };
    let path = directory.join("store.db");
    let journal = Arc::new(SqliteStore::open(&path).unwrap());
    let acknowledged = std::sync::Mutex::new(Vec::<Acknowledged>::new());
    let errors = crash::work(journal.clone(), "work", |told| acknowledged.lock().unwrap().push(told)).await;
    for error in &errors {
        assert!(matches!(error, StoreError::Full { .. }) && error.applied() == Applied::No, "{error}");
        assert!(error.to_string().contains("free or add space, then write again"), "{error}");
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 100, "{} commits found room", acknowledged.len());
    crash::examine(&*journal, "work", &acknowledged).await;
    // What the log of 64 MiB at most has taken is given back by nobody else: space is added, as the error says.
    let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&directory).status().unwrap();
    assert!(grown.success());
    let committed = journal.commit(Commit::new().append("afterwards", "x".into()), BY).await.unwrap();
    assert_eq!(committed.positions, [1]);
    drop(journal);
    crash::examine(&SqliteStore::open(&path).unwrap(), "work", &acknowledged).await;
    println!("\n{} commits were acknowledged, all are there", acknowledged.len());
}

/// In a mount namespace of its own, which needs neither rights nor cleaning up.
#[test]
fn on_a_full_disk_writes_are_refused_nothing_acknowledged_is_lost_and_room_heals() {
    let (directory, _) = fresh();
    let script =
        "mount -t tmpfs -o size=2m tmpfs \"$1\" || exit 77; exec \"$2\" --exact tests::full::tenant --nocapture";
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .args([directory.path(), &std::env::current_exe().unwrap()])
        .env(ROOM_PATH, directory.path())
        .output();
    match ran {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("all are there"), "the tenant did not run: {said}");
        }
        Ok(output) if output.status.code() != Some(77) && !output.stdout.is_empty() => panic!("{output:?}"),
        missing => eprintln!("SKIPPED: a file system of 2 MiB cannot be mounted here: {missing:?}"),
    }
}

const ROOM_PATH: &str = "GREENROOM_STORE_ROOM_PATH";
