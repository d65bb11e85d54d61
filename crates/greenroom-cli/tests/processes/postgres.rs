//! A PostgreSQL that keeps what it has acknowledged.

use greenroom_engines::{Postgres, PostgresOptions, unless_missing};

/// One that syncs; `None`, said loudly, where PostgreSQL is not installed.
pub(crate) fn durable() -> Option<Postgres> {
    unless_missing(Postgres::start_with(PostgresOptions { durable: true, ..PostgresOptions::default() }))
}
