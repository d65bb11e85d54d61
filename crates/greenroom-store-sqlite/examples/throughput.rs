//! Measures conditional writes and journal commits against the device's own floor:
//! `cargo run --release -p greenroom-store-sqlite --example throughput [DIR]`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::{Commit, Journal, Result, Store};
use greenroom_store_sqlite::SqliteStore;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = match std::env::args_os().nth(1) {
        Some(directory) => tempfile::tempdir_in(directory)?,
        None => tempfile::tempdir()?,
    };
    report("sync of 8 KiB appended", sync_floor(&directory.path().join("floor"))?);
    report("bare SQLite update", bare_floor(&directory.path().join("bare.db"))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    for writers in [1, 8, 64, 256] {
        let store = SqliteStore::open(directory.path().join(format!("{writers}.db")))?;
        report(&format!("store, {writers} writers"), runtime.block_on(replaces(&store, writers))?);
    }
    for committers in [1, 64, 256] {
        let journal = SqliteStore::open(directory.path().join(format!("journal-{committers}.db")))?;
        report(&format!("journal, {committers} committers"), runtime.block_on(commits(&journal, committers))?);
        let shared = journal.stats().commits_per_sync().unwrap_or_default();
        println!("{:24} {shared:9.1} commits per device sync, {:?}", "", journal.stats());
    }
    Ok(())
}

/// The time of each operation, and of all.
struct Measured {
    each: Vec<Duration>,
    all: Duration,
}

/// What the device needs to make two pages durable, one after another.
fn sync_floor(path: &Path) -> std::io::Result<Measured> {
    let mut file = OpenOptions::new().create_new(true).write(true).open(path)?;
    let begun = Instant::now();
    let mut each = Vec::new();
    while begun.elapsed() < SPAN {
        let start = Instant::now();
        file.write_all(&[7; 8192])?;
        file.sync_data()?;
        each.push(start.elapsed());
    }
    Ok(Measured { each, all: begun.elapsed() })
}

/// What SQLite does on the calling thread with the same settings.
fn bare_floor(path: &Path) -> rusqlite::Result<Measured> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
         CREATE TABLE t (key TEXT PRIMARY KEY, version INTEGER, value BLOB); INSERT INTO t VALUES ('a', 0, '')",
    )?;
    let begun = Instant::now();
    let mut each = Vec::new();
    while begun.elapsed() < SPAN {
        let start = Instant::now();
        let sql = "UPDATE t SET version = version + 1, value = ?1 WHERE key = 'a' AND version = ?2";
        connection.prepare_cached(sql)?.execute((&VALUE[..], each.len() as i64))?;
        each.push(start.elapsed());
    }
    Ok(Measured { each, all: begun.elapsed() })
}

/// Each writer replaces a key of its own, one write after another.
async fn replaces(store: &SqliteStore, writers: usize) -> Result<Measured> {
    let begun = Instant::now();
    let each = try_join_all((0..writers).map(|writer| async move {
        let (key, mut each) = (format!("key/{writer}"), Vec::new());
        let mut version = store.create(&key, VALUE[..].into(), TIMEOUT).await?;
        while begun.elapsed() < SPAN {
            let start = Instant::now();
            version = store.replace(&key, VALUE[..].into(), &version, TIMEOUT).await?;
            each.push(start.elapsed());
        }
        Result::Ok(each)
    }))
    .await?;
    Ok(Measured { each: each.concat(), all: begun.elapsed() })
}

/// Each committer commits what a reliable actor's turn does, one turn after another: behind the fence of a partition, its
/// state, and an entry of the outbox.
async fn commits(journal: &SqliteStore, committers: usize) -> Result<Measured> {
    let fence = journal.create("fence", "owner".into(), TIMEOUT).await?;
    let (begun, fence) = (Instant::now(), &fence);
    let each = try_join_all((0..committers).map(|committer| async move {
        let (key, mut each) = (format!("state/{committer}"), Vec::new());
        while begun.elapsed() < SPAN {
            let start = Instant::now();
            let turn =
                Commit::new().hold("fence", fence).put(&key, VALUE[..].into()).append("outbox", VALUE[..].into());
            journal.commit(turn, TIMEOUT).await?;
            each.push(start.elapsed());
        }
        Result::Ok(each)
    }))
    .await?;
    Ok(Measured { each: each.concat(), all: begun.elapsed() })
}

fn report(what: &str, mut measured: Measured) {
    measured.each.sort();
    let at = |part: usize| measured.each[(measured.each.len() - 1) * part / 1000];
    let a_second = measured.each.len() as f64 / measured.all.as_secs_f64();
    println!("{what:24} {a_second:9.0}/s  p50 {:10.1?}  p99 {:10.1?}  max {:10.1?}", at(500), at(990), at(1000));
}

const SPAN: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(30);
const VALUE: &[u8; 200] = &[7; 200];
