//! SQLite's errors in the store's terms.

use greenroom_store::StoreError;
use rusqlite::{Error, ErrorCode};

use crate::file::File;

/// Whether the file is locked by another connection for the moment, so that trying again soon may succeed.
pub(crate) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// What `error` means when nothing was changed.
pub(crate) fn without_effect(file: &File, error: &Error) -> StoreError {
    let store = file.name();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { store, reason: error.to_string() },
        Some(ErrorCode::NotADatabase) => {
            let reason = "it is not an SQLite database; name another file, or remove this one".to_owned();
            StoreError::Format { store, reason }
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            let reason = format!("it is damaged ({error}); restore it from a backup, or try `sqlite3 FILE .recover`");
            StoreError::Format { store, reason }
        }
        Some(ErrorCode::CannotOpen) if are_files_used_up() => files_used_up(file),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            file.denied(&error.to_string())
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let reason = format!("another process holds its lock ({error}); try again, or look for a stopped process");
            StoreError::Unavailable { store, reason }
        }
        _ => StoreError::Unavailable { store, reason: format!("{error}; look at the disk and the system's log") },
    }
}

/// True if this process can open no further file: SQLite calls that a file that cannot be opened.
fn are_files_used_up() -> bool {
    std::fs::File::open("/dev/null").is_err_and(|error| is_of_used_up_files(&error))
}

/// True if this process, or the system, can open no further file.
pub(crate) fn is_of_used_up_files(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Says so of the store's file.
pub(crate) fn files_used_up(file: &File) -> StoreError {
    StoreError::Unavailable { store: file.name(), reason: FILES_USED_UP.to_owned() }
}

/// The process has as many files open as it may.
const EMFILE: i32 = 24;
/// The system has as many files open as it may.
const ENFILE: i32 = 23;
const FILES_USED_UP: &str = "too many files are open; raise the limit of open files (`ulimit -n`, LimitNOFILE of systemd), or let \
    fewer connections in";

/// What an error of `COMMIT` means for a write in it. A full disk stops the log before the record that makes a commit
/// valid; after any other failure (a sync that failed, say) a restart may still find that record.
pub(crate) fn of_commit(file: &File, key: &str, error: &Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => without_effect(file, error),
        _ => StoreError::Unknown { key: key.to_owned(), reason: format!("the commit failed: {error}") },
    }
}
