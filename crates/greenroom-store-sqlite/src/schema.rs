//! The tables, their format, and how connections to them are made.

use std::ffi::c_int;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_store::{Result, StoreError};
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::counters::Counters;
use crate::fault;
use crate::file::File;
use crate::turn::Turnstile;
use crate::write::Writer;
use crate::{Durability, Options, read::Reader};

/// Opens or creates the file and checks its format.
pub(crate) fn open(path: &Path, options: &Options) -> Result<(File, Writer)> {
    let mut file = File::new(path);
    file.check_openable()?;
    file.make_private().map_err(|error| unmade(&file, &error))?;
    let deadline = Instant::now() + options.open_timeout;
    let fault = |error: &rusqlite::Error| fault::without_effect(&file, error);
    let mut connection = loop {
        match prepare(file.path(), options.durability) {
            Ok(connection) => break connection,
            Err(error) if fault::is_busy(&error) && Instant::now() < deadline => std::thread::sleep(OPEN_PAUSE),
            Err(error) => return Err(fault(&error)),
        }
    };
    check_format(&file, &connection)?;
    file.identify();
    let turnstile = Turnstile::beside(file.path());
    let counters = Arc::new(Counters::new(options.durability == Durability::Full));
    count_checkpoints(&mut connection, counters.clone()).map_err(|error| fault::without_effect(&file, &error))?;
    Ok((file.clone(), Writer { file, connection, turnstile, counters }))
}

fn unmade(file: &File, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::Full { store: file.name(), reason: error.to_string() }
        }
        // The folder is there.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            file.denied(&error.to_string())
        }
        _ if fault::is_of_used_up_files(error) => fault::files_used_up(file),
        _ => StoreError::Unavailable { store: file.name(), reason: format!("the file cannot be made: {error}") },
    }
}

/// Opens the connection for reads to a file that [`open`] has opened.
pub(crate) fn connect_reader(file: &File) -> Result<Reader> {
    let connected = connect(file.path()).and_then(|connection| {
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    });
    let connection = connected.map_err(|error| fault::without_effect(file, &error))?;
    Ok(Reader { file: file.clone(), connection })
}

/// Refuses a format that this program does not know; to be asked in the transaction that relies on it.
pub(crate) fn check_known(file: &File, format: i64) -> Result<()> {
    if format == FORMAT {
        return Ok(());
    }
    let reason = format!("its format is {format}, this program knows {FORMAT}; use the newer Greenroom that wrote it");
    Err(StoreError::Format { store: file.name(), reason })
}

/// Makes checkpoints when SQLite itself would, and counts them.
fn count_checkpoints(connection: &mut Connection, counters: Arc<Counters>) -> rusqlite::Result<()> {
    connection.wal_hook(Some(move |log: &mut Wal, pages: c_int| {
        if pages >= CHECKPOINT_PAGES {
            counters.checkpointed();
            // Without room, say, or while somebody reads an old state, pages stay in the log; the transaction is committed all the
            // same, and the next one tries again.
            if log.checkpoint_v2(CheckpointMode::PASSIVE).is_ok_and(|(pages, copied)| pages == copied) {
                counters.copied_whole();
            }
        }
        Ok(())
    }))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Waiting for locks is done by the threads, which know the deadlines.
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection)
}

fn prepare(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let mut connection = connect(path)?;
    // Looked at before anything is changed, so that another program's database stays as it is.
    if is_foreign(&connection)? {
        return Ok(connection);
    }
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    let synchronous = match durability {
        Durability::Full => "full",
        Durability::Normal => "normal",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "fullfsync", durability == Durability::Full)?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES_KEPT, |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    if format(&connection)?.is_none_or(|format| format == FORMAT_WITHOUT_LOGS) {
        // Asked again in the transaction: another process may have been faster.
        let creation = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match format(&creation)? {
            None => {
                creation.execute_batch(TABLES)?;
                creation.execute_batch(LOG_TABLES)?;
                creation.execute("INSERT INTO greenroom_meta VALUES (1, ?1, 0)", [FORMAT])?;
            }
            Some(FORMAT_WITHOUT_LOGS) => {
                creation.execute_batch(LOG_TABLES)?;
                creation.execute("UPDATE greenroom_meta SET format = ?1", [FORMAT])?;
            }
            Some(_) => {}
        }
        creation.commit()?;
    }
    Ok(connection)
}

/// The format of a file that has tables already.
fn format(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    if !has_table(connection, "greenroom_meta")? {
        return Ok(None);
    }
    connection.query_row("SELECT format FROM greenroom_meta", [], |row| row.get(0)).map(Some)
}

fn check_format(file: &File, connection: &Connection) -> Result<()> {
    let fault = |error: rusqlite::Error| fault::without_effect(file, &error);
    if is_foreign(connection).map_err(fault)? {
        let reason = "it is the database of another program; name another file".to_owned();
        return Err(StoreError::Format { store: file.name(), reason });
    }
    let format = connection.query_row("SELECT format FROM greenroom_meta", [], |row| row.get(0)).map_err(fault)?;
    check_known(file, format)
}

fn is_foreign(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables > 0 && !has_table(connection, "greenroom_meta")?)
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let found = connection.query_row("SELECT 1 FROM sqlite_schema WHERE name = ?1", [name], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

/// `last_version` rises with every write and never falls, so that no version is given twice, also after a deletion. Rows
/// have numbers, and keys a tree of their own: what is new lies together at the end of the first, whatever its key, so that
/// a commit of many small records writes a third less than rows in the order of their keys would.
const TABLES: &str = "
    CREATE TABLE greenroom_meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        format INTEGER NOT NULL,
        last_version INTEGER NOT NULL
    );
    CREATE TABLE greenroom_store (
        key TEXT PRIMARY KEY NOT NULL,
        version INTEGER NOT NULL,
        value BLOB NOT NULL
    );
";

/// `next` is the position of the next entry and never falls; an entry's row is stored in the order of its position.
const LOG_TABLES: &str = "
    CREATE TABLE greenroom_logs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        next INTEGER NOT NULL
    );
    CREATE TABLE greenroom_log (
        log INTEGER NOT NULL,
        position INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (log, position)
    ) WITHOUT ROWID;
";

/// The format that this program reads and writes.
const FORMAT: i64 = 2;

/// The format before journals came, which is brought up to date when it is opened.
const FORMAT_WITHOUT_LOGS: i64 = 1;

/// A log of so many pages is copied into the file: 32 MiB. A page that is written again and again is copied once for all of
/// them, and each copying costs syncs.
const CHECKPOINT_PAGES: c_int = 8192;

/// Pages that the writer keeps in memory, at most: 8 MiB, as a negative number of KiB.
const WRITER_CACHE: i64 = -8192;

/// What is left of the write-ahead log when it starts anew: 64 MiB.
const WAL_BYTES_KEPT: i64 = 64 << 20;

/// Between attempts to open a file that another process is opening or closing.
const OPEN_PAUSE: Duration = Duration::from_millis(2);
