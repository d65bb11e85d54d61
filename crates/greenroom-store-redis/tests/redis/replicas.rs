//! Servers with replicas.

use std::time::Duration;

use greenroom_store::{Applied, Store, StoreError};

use crate::{PASSWORD, refusal, start, start_with, try_open};

const BY: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_write_is_acknowledged_when_the_replicas_asked_for_have_it_and_unknown_before() {
    let Some(primary) = start() else { return };
    let follows = format!("127.0.0.1 {}", primary.port());
    let store = try_open(&format!("{}?replicas=1", primary.url())).await.expect("the server is ready");
    let alone = store.create("a", "1".into(), Duration::from_millis(300)).await.expect_err("there is no replica");
    assert_eq!(alone.applied(), Applied::Maybe, "{alone}");
    assert!(store.read("a", BY).await.expect("a read").is_some(), "the primary has it");

    let Some(replica) =
        start_with(&[("replicaof", &follows), ("masterauth", PASSWORD), ("repl-diskless-sync-delay", "0")])
    else {
        return;
    };
    let begun = std::time::Instant::now();
    for n in 0.. {
        // Until the replica has joined.
        match store.create(&format!("b/{n}"), "1".into(), Duration::from_millis(500)).await {
            Ok(_) => break,
            Err(error) => assert!(begun.elapsed() < BY, "{error}"),
        }
    }
    let error = refusal(&replica.url()).await;
    assert!(matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("name the primary")), "{error}");
}
