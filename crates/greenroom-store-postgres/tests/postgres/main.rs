//! The store against real servers, each started by its test.

mod conformance;

use greenroom_engines::{Postgres, unless_missing};
use greenroom_store::url::{Remote, StoreUrl};
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
    let url = format!("{}?schema={schema}", postgres.url());
    PostgresStore::open(&remote(&url), &Options::default()).await.expect("the server is ready")
}
