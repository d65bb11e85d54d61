//! What the best program written by hand for SQLite reaches: the engine's own floor, beside which the store's rate is
//! measured. One thread writes; whatever waits shares a transaction, and so a device sync.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::{Result, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault;
use crate::file::File;

/// Replaces a row if it is at a version; answers whether it was.
struct Replace {
    key: i64,
    version: i64,
    answer: oneshot::Sender<bool>,
}

/// Conditional writes a second in a new file at `path`: each of `writers` replaces a row of its own, again and again for
/// `span`, durably as a store's default is. The file goes when it is done.
///
/// # Errors
///
/// As [`SqliteStore::open`](crate::SqliteStore::open); [`StoreError::Configuration`] if there is a file at `path`.
pub async fn conditional_writes(path: &Path, writers: usize, span: Duration, value: &[u8]) -> Result<f64> {
    let file = File::new(path);
    if path.exists() {
        let reason = "it is there already; name one for the floor that is not".to_owned();
        return Err(StoreError::Configuration { store: file.name(), reason });
    }
    let fault = |error: rusqlite::Error| fault::without_effect(&file, &error);
    let connection = prepare(path, writers).map_err(fault)?;
    let (replaces, queue) = channel::<Replace>();
    let value = value.to_owned();
    let thread = std::thread::spawn(move || serve(&connection, &queue, writers, &value));
    let begun = Instant::now();
    let each = (0..writers.max(1) as i64).map(|key| {
        let replaces = replaces.clone();
        async move {
            let mut version = 0;
            while begun.elapsed() < span {
                let (answer, answered) = oneshot::channel();
                // If the thread has ended, its error is told below.
                let _ = replaces.send(Replace { key, version, answer });
                version += i64::from(answered.await.map_err(|_| ())?);
            }
            Ok::<_, ()>(version)
        }
    });
    let written = try_join_all(each).await;
    let seconds = begun.elapsed().as_secs_f64();
    drop(replaces);
    let served = thread.join().expect("the thread does not panic");
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        // The last connection may have removed it.
        let _ = std::fs::remove_file(name);
    }
    served.map_err(fault)?;
    Ok(written.unwrap_or_default().into_iter().sum::<i64>() as f64 / seconds)
}

fn prepare(path: &Path, writers: usize) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.execute_batch("CREATE TABLE floor (key INTEGER PRIMARY KEY, version INTEGER, value BLOB); BEGIN")?;
    for key in 0..writers.max(1) as i64 {
        connection.execute("INSERT INTO floor VALUES (?1, 0, '')", [key])?;
    }
    connection.execute_batch("COMMIT")?;
    // A log that has its size already is synced faster than one that grows: what comes after the first checkpoint.
    connection.execute_batch("CREATE TABLE filler (value BLOB); INSERT INTO filler VALUES (zeroblob(8 << 20))")?;
    connection.execute_batch("DELETE FROM filler")?;
    Ok(connection)
}

fn serve(connection: &Connection, queue: &Receiver<Replace>, writers: usize, value: &[u8]) -> rusqlite::Result<()> {
    let mut replace =
        connection.prepare("UPDATE floor SET version = ?2 + 1, value = ?3 WHERE key = ?1 AND version = ?2")?;
    let (mut begin, mut commit) = (connection.prepare("BEGIN IMMEDIATE")?, connection.prepare("COMMIT")?);
    while let Ok(first) = queue.recv() {
        begin.execute([])?;
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some(Replace { key, version, answer }) = next {
            answers.push((answer, replace.execute((key, version, value))? == 1));
            // Those that were just answered are about to ask again: they are worth waiting for, up to the last one.
            next = queue.try_recv().ok();
            if next.is_none() && answers.len() < writers {
                next = queue.recv_timeout(GATHER).ok();
            }
        }
        commit.execute([])?;
        for (answer, replaced) in answers {
            // Nobody waits any more when the time is over.
            let _ = answer.send(replaced);
        }
    }
    Ok(())
}

/// Silence after which a transaction is not kept open for more: short against a device's sync.
const GATHER: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_writes_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("floor.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let rate = runtime.block_on(conditional_writes(&path, 8, Duration::from_millis(200), &[7; 100]));
        assert!(rate.expect("there is room") > 0.0);
        assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
    }
}
