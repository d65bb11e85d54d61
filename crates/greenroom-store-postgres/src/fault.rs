//! PostgreSQL's errors in the store's terms, with the remedy; never a password.

use std::error::Error as _;

use greenroom_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::schema;
use crate::target::Target;

/// Whether the server has answered that the statement was aborted, so that nothing of it is or will be applied. After
/// a fatal error, or none at all, that is not known: the server ends, or the connection has.
pub(crate) fn is_aborted(error: &Error) -> bool {
    error.as_db_error().is_some_and(|db| db.parsed_severity() == Some(Severity::Error))
}

/// Whether the same work, given again at once, may well succeed: it was aborted only because of what others did.
pub(crate) fn is_passing(error: &Error) -> bool {
    let codes = [&SqlState::UNIQUE_VIOLATION, &SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE];
    is_aborted(error) && error.code().is_some_and(|code| codes.contains(&code))
}

/// Whether it concerns one of several commits in a statement, not the whole store.
pub(crate) fn is_of_one(error: &Error) -> bool {
    let codes = [
        &SqlState::LOCK_NOT_AVAILABLE,
        &SqlState::QUERY_CANCELED,
        &SqlState::DISK_FULL,
        &SqlState::OUT_OF_MEMORY,
        &SqlState::PROGRAM_LIMIT_EXCEEDED,
    ];
    is_passing(error) || is_aborted(error) && error.code().is_some_and(|code| codes.contains(&code))
}

/// What `error` means when a connection is opened or prepared.
pub(crate) fn of_opening(target: &Target, error: &Error) -> StoreError {
    if let Some(db) = error.as_db_error() {
        return of_answer(target, "", db);
    }
    let (store, said) = (target.name.clone(), said(error));
    if said.contains("password missing") {
        let reason =
            format!("it asks user {:?} for a password; give one by password_file or password_env", target.user());
        return StoreError::Denied { store, reason };
    }
    let remedy = match &said {
        said if said.contains("certificate") => {
            "name the certificate of the authority that has signed the server's by sslrootcert, and the server as its \
             certificate does"
        }
        said if said.contains("does not support TLS") => {
            "turn TLS on in the server (ssl = on), or write sslmode=disable where nobody can listen"
        }
        said if said.contains("does not allow writes") || said.contains("session attr") => {
            "name the primary among its hosts"
        }
        _ => "is the server running, and are host, port and firewall right?",
    };
    StoreError::Unavailable { store, reason: format!("{said}; {remedy}") }
}

/// What `error` means for the operation on `key` when nothing was changed.
pub(crate) fn without_effect(target: &Target, key: &str, error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(db) => of_answer(target, key, db),
        None => {
            let reason = format!("the connection has failed ({}); try again", said(error));
            StoreError::Unavailable { store: target.name.clone(), reason }
        }
    }
}

/// What `error` means for a write of `key` that was sent.
pub(crate) fn of_write(target: &Target, key: &str, error: &Error) -> StoreError {
    if is_aborted(error) {
        return without_effect(target, key, error);
    }
    StoreError::Unknown { key: key.to_owned(), reason: format!("the connection has failed ({})", said(error)) }
}

fn of_answer(target: &Target, key: &str, db: &DbError) -> StoreError {
    let (store, code, message) = (target.name.clone(), db.code(), db.message());
    let (user, schema) = (target.user(), &target.names.schema);
    if code.code() == schema::OTHER_FORMAT {
        return schema::unknown_format(target, message.strip_prefix("format ").and_then(|text| text.parse().ok()));
    }
    let denied = |remedy: String| StoreError::Denied { store: store.clone(), reason: format!("{message}; {remedy}") };
    let unavailable =
        |remedy: &str| StoreError::Unavailable { store: store.clone(), reason: format!("{message}; {remedy}") };
    let not_applied = |why: &str| StoreError::NotApplied { key: key.to_owned(), reason: format!("{message}: {why}") };
    if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        denied("look at its user and password (password_file, password_env) and at the server's pg_hba.conf".to_owned())
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        denied(remedy_for_rights(target))
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        let reason = format!("{message}; create it: CREATE DATABASE \"{}\" OWNER \"{user}\"", target.database());
        StoreError::Configuration { store, reason }
    } else if *code == SqlState::DISK_FULL {
        StoreError::Full { store, reason: message.to_owned() }
    } else if [&SqlState::UNDEFINED_TABLE, &SqlState::UNDEFINED_FUNCTION, &SqlState::UNDEFINED_COLUMN].contains(&code) {
        let reason = format!(
            "{message}: schema {schema} holds other tables than this program's; use the Greenroom that made them, \
             name another schema, or restore them from a backup"
        );
        StoreError::Format { store, reason }
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        unavailable("it is a standby, or read-only by its settings; name the primary")
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        unavailable("raise max_connections of the server, or lower `connections` in the URL")
    } else if *code == SqlState::CANNOT_CONNECT_NOW {
        unavailable("try again in a moment")
    } else if *code == SqlState::LOCK_NOT_AVAILABLE {
        not_applied("another transaction holds the row; look for an open one in pg_stat_activity")
    } else if *code == SqlState::QUERY_CANCELED {
        not_applied("the statement was stopped by statement_timeout or an operator")
    } else if *code == SqlState::PROGRAM_LIMIT_EXCEEDED || *code == SqlState::OUT_OF_MEMORY {
        not_applied("it is more than the server can hold at once; split it or give the server memory")
    } else if [&SqlState::UNIQUE_VIOLATION, &SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE]
        .contains(&code)
    {
        not_applied("others wrote the same keys at this moment; try again")
    } else {
        unavailable(&format!("SQLSTATE {}; look at the server's log", code.code()))
    }
}

/// What an operator can give the user of `target`.
pub(crate) fn remedy_for_rights(target: &Target) -> String {
    let (user, schema) = (target.user(), &target.names.schema);
    format!(
        "let it create the schema once (GRANT CREATE ON DATABASE \"{}\" TO \"{user}\"), or give it what is there: \
         GRANT USAGE ON SCHEMA {schema} TO \"{user}\"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \
         {schema} TO \"{user}\"; GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO \"{user}\"",
        target.database()
    )
}

/// The error with what caused it, in one line.
fn said(error: &Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        said = format!("{said}: {deeper}");
        cause = deeper.source();
    }
    said
}
