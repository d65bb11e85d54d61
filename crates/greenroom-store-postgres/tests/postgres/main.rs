//! The store against real servers, each started by its test.

mod conformance;
mod encryption;
mod refusals;
mod restarts;

use greenroom_engines::{Postgres, unless_missing};
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store::{Result, StoreError};
use greenroom_store_postgres::{Options, PostgresStore};

/// A server of one's own that does not sync.
fn start() -> Option<Postgres> {
    unless_missing(Postgres::start())
}

/// What `url` names.
fn remote(url: &str) -> Remote {
    match url.parse() {
        Ok(StoreUrl::Postgres(remote)) => remote,
        other => panic!("{url} is not understood: {other:?}"),
    }
}

/// A store with a schema of its own.
async fn open(postgres: &Postgres, schema: &str) -> PostgresStore {
    try_open(&format!("{}?schema={schema}", postgres.url())).await.expect("the server is ready")
}

async fn try_open(url: &str) -> Result<PostgresStore> {
    PostgresStore::open(&remote(url), &Options::default()).await
}

/// Why `url` cannot be opened, in words that give no password away.
async fn refusal(url: &str) -> StoreError {
    let error = try_open(url).await.expect_err("it cannot be opened");
    assert!(!format!("{error} {error:?}").contains(Postgres::PASSWORD), "{error}");
    error
}

/// Lets the superuser carry out `sql`.
async fn administer(postgres: &Postgres, sql: &str) {
    let connected = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.expect("the server is ready");
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}
