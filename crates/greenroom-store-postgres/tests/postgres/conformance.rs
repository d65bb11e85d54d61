//! Every claim that a store and a journal makes, against a real server.

use std::sync::Arc;

use greenroom_engines::Postgres;
use greenroom_store::Journal;
use greenroom_store_conformance::{Harness, Relay, journal, network, store};
use greenroom_store_postgres::{Options, PostgresStore, VALUE_BYTES_MAX};

use crate::{open, remote, start};

#[tokio::test]
async fn postgres_keeps_every_claim_of_a_store() {
    let Some(postgres) = start() else { return };
    let (one, other) = (open(&postgres, "claims").await, open(&postgres, "claims").await);
    let harness = Harness::new(Arc::new(one)).also(Arc::new(other)).value_bytes_max(VALUE_BYTES_MAX);
    store::all(&harness).await;
}

#[tokio::test]
async fn postgres_keeps_every_claim_of_a_journal() {
    let Some(postgres) = start() else { return };
    let one: Arc<dyn Journal> = Arc::new(open(&postgres, "claims").await);
    let other: Arc<dyn Journal> = Arc::new(open(&postgres, "claims").await);
    journal::all(&[one, other]).await;
}

#[tokio::test]
async fn behind_a_bad_network_every_claim_of_a_store_holds() {
    let Some(postgres) = start() else { return };
    let (relay, through, direct) = relayed(&postgres).await;
    network::store(&relay, through, direct).await;
}

#[tokio::test]
async fn behind_a_bad_network_every_claim_of_a_journal_holds() {
    let Some(postgres) = start() else { return };
    let (relay, through, direct) = relayed(&postgres).await;
    network::journal(&relay, through, direct).await;
}

async fn relayed(postgres: &Postgres) -> (Relay, Arc<PostgresStore>, Arc<PostgresStore>) {
    let direct = open(postgres, "claims").await;
    let relay = Relay::start(([127, 0, 0, 1], postgres.port()).into()).expect("a free port");
    let url = postgres.url().replace(&postgres.port().to_string(), &relay.addr().port().to_string());
    let remote = remote(&format!("{url}?schema=claims"));
    let through = PostgresStore::open(&remote, &Options::default()).await.expect("the relay is open");
    (relay, Arc::new(through), Arc::new(direct))
}
