//! Every claim that a store and a journal makes, against a real server.

use std::sync::Arc;

use greenroom_engines::Redis;
use greenroom_store::Journal;
use greenroom_store_conformance::{Harness, Relay, journal, network, store};
use greenroom_store_redis::{Options, RedisStore, VALUE_BYTES_MAX};

use crate::{open, remote, start};

#[tokio::test]
async fn redis_keeps_every_claim_of_a_store() {
    let Some(redis) = start() else { return };
    let (one, other) = (open(&redis, "claims").await, open(&redis, "claims").await);
    let harness = Harness::new(Arc::new(one)).also(Arc::new(other)).value_bytes_max(VALUE_BYTES_MAX);
    store::all(&harness).await;
}

#[tokio::test]
async fn redis_keeps_every_claim_of_a_journal() {
    let Some(redis) = start() else { return };
    let one: Arc<dyn Journal> = Arc::new(open(&redis, "claims").await);
    let other: Arc<dyn Journal> = Arc::new(open(&redis, "claims").await);
    journal::all(&[one, other]).await;
}

#[tokio::test]
async fn behind_a_bad_network_every_claim_of_a_store_holds() {
    let Some(redis) = start() else { return };
    let (relay, through, direct) = relayed(&redis).await;
    network::store(&relay, through, direct).await;
}

#[tokio::test]
async fn behind_a_bad_network_every_claim_of_a_journal_holds() {
    let Some(redis) = start() else { return };
    let (relay, through, direct) = relayed(&redis).await;
    network::journal(&relay, through, direct).await;
}

async fn relayed(redis: &Redis) -> (Relay, Arc<RedisStore>, Arc<RedisStore>) {
    let direct = open(redis, "claims").await;
    let relay = Relay::start(([127, 0, 0, 1], redis.port()).into()).expect("a free port");
    let url = redis.url().replace(&redis.port().to_string(), &relay.addr().port().to_string());
    let remote = remote(&format!("{url}?prefix=claims:"));
    let through = RedisStore::open(&remote, &Options::default()).await.expect("the relay is open");
    (relay, Arc::new(through), Arc::new(direct))
}
