//! Servers that stop, or are killed, in the middle of writes: nothing acknowledged is lost, and the store goes on.

use std::sync::Arc;
use std::time::Duration;

use greenroom_engines::{Redis, RedisOptions, unless_missing};
use greenroom_store::{Store, StoreError};
use greenroom_store_conformance::restarts::{self, End};

use crate::open;

const BY: Duration = Duration::from_secs(30);
const ENDS: &[End<Redis>] =
    &[("stop", Redis::stop), ("kill", Redis::kill), ("stop", Redis::stop), ("kill", Redis::kill)];

fn durable() -> Option<Redis> {
    unless_missing(Redis::start_with(RedisOptions { durable: true, ..RedisOptions::default() }))
}

fn restart(redis: &mut Redis) {
    redis.restart().expect("it recovers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_were_acknowledged_survive_every_end_of_the_server() {
    let Some(redis) = durable() else { return };
    let store = Arc::new(open(&redis, "commits").await);
    restarts::no_commit_is_lost(store, redis, ENDS, restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_go_on_through_every_end_of_the_server_and_none_is_lost() {
    let Some(redis) = durable() else { return };
    let store = Arc::new(open(&redis, "increments").await);
    restarts::no_increment_is_lost(store, redis, ENDS, restart).await;
}

#[tokio::test]
async fn a_server_that_has_kept_nothing_is_refused_after_its_restart_rather_than_taken_for_empty() {
    let Some(mut redis) = unless_missing(Redis::start()) else { return };
    let store = open(&redis, "forgotten").await;
    let version = store.create("a", "1".into(), BY).await.expect("it is there");
    redis.kill();
    redis.restart().expect("it starts empty");
    let errors = [
        store.read("a", BY).await.expect_err("its data are gone"),
        store.replace("a", "2".into(), &version, BY).await.expect_err("its data are gone"),
    ];
    for error in errors {
        let told = error.to_string();
        assert!(matches!(error, StoreError::Format { .. }) && told.contains("turn appendonly on"), "{told}");
    }
}
