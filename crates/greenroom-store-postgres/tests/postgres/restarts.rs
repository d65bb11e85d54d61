//! Servers that stop, or are killed, in the middle of writes: nothing acknowledged is lost, and the store goes on.

use std::sync::Arc;

use greenroom_engines::{Postgres, PostgresOptions, unless_missing};
use greenroom_store_conformance::restarts::{self, End};

use crate::open;

const ENDS: &[End<Postgres>] = &[
    ("fast", Postgres::stop_fast),
    ("immediate", Postgres::stop_immediate),
    ("kill", Postgres::kill),
    ("fast", Postgres::stop_fast),
    ("immediate", Postgres::stop_immediate),
    ("kill", Postgres::kill),
];

fn durable() -> Option<Postgres> {
    unless_missing(Postgres::start_with(PostgresOptions { durable: true, ..PostgresOptions::default() }))
}

fn restart(postgres: &mut Postgres) {
    postgres.restart().expect("it recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_were_acknowledged_survive_every_end_of_the_server() {
    let Some(postgres) = durable() else { return };
    let store = Arc::new(open(&postgres, "commits").await);
    restarts::no_commit_is_lost(store, postgres, ENDS, restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_go_on_through_every_end_of_the_server_and_none_is_lost() {
    let Some(postgres) = durable() else { return };
    let store = Arc::new(open(&postgres, "increments").await);
    restarts::no_increment_is_lost(store, postgres, ENDS, restart).await;
}
