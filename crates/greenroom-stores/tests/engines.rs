//! Every provider is opened by its URL, and is the store that it says it is.

#![cfg(feature = "all")]

use std::time::Duration;

use greenroom_engines::{Error, Etcd, Kafka, Minio, Postgres, Redis, unless_missing};
use greenroom_store::StoreError;
use greenroom_stores::{Opened, open};

const TIMEOUT: Duration = Duration::from_secs(20);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Opens the engine's store twice: what the one writes the other reads.
fn is_shared_by_url<E>(started: Result<E, Error>, url: impl Fn(&E) -> String, journal: bool) {
    let Some(engine) = unless_missing(started) else { return };
    block_on(async {
        let [one, other]: [Opened; 2] = [open(&url(&engine)).await, open(&url(&engine)).await].map(Result::unwrap);
        assert!(one.shared && one.journal.is_some() == journal, "{one:?}");
        let version = one.store.create("key", "value".into(), TIMEOUT).await.expect("nothing is there");
        let read = other.store.read("key", TIMEOUT).await.expect("it is reached").expect("it is there");
        assert_eq!((read.value, read.version), ("value".into(), version));
    });
}

#[test]
fn postgres_is_shared_by_its_url() {
    is_shared_by_url(Postgres::start(), Postgres::url, true);
}

#[test]
fn redis_is_shared_by_its_url() {
    is_shared_by_url(Redis::start(), Redis::url, true);
}

#[test]
fn etcd_is_shared_by_its_url() {
    is_shared_by_url(Etcd::start(), Etcd::url, true);
}

#[test]
fn kafka_is_shared_by_its_url() {
    is_shared_by_url(Kafka::start(), Kafka::url, true);
}

#[test]
fn a_bucket_is_shared_by_its_url() {
    is_shared_by_url(Minio::start(), Minio::url, false);
}

#[test]
fn an_engine_that_is_not_there_is_named_without_its_password() {
    for url in ["postgres://ada:lace@127.0.0.1:1/x", "redis://ada:lace@127.0.0.1:1", "etcd://ada:lace@127.0.0.1:1"] {
        let error = block_on(open(url)).expect_err("nobody listens there");
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains("127.0.0.1") && !error.to_string().contains("lace"), "{error}");
    }
}
