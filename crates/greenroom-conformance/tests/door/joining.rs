//! A door whose node is not a member yet.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::{Page, Result, Store, Version, Versioned};

use crate::client::{call, get};
use crate::kinds::node;

/// A table that does not answer: its node waits to join.
#[derive(Debug)]
struct Silent;

impl Store for Silent {
    fn read<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        std::future::pending().boxed()
    }

    fn create<'a>(&'a self, _: &'a str, _: Bytes, _: Duration) -> BoxFuture<'a, Result<Version>> {
        std::future::pending().boxed()
    }

    fn replace<'a>(&'a self, _: &'a str, _: Bytes, _: &'a Version, _: Duration) -> BoxFuture<'a, Result<Version>> {
        std::future::pending().boxed()
    }

    fn delete<'a>(&'a self, _: &'a str, _: &'a Version, _: Duration) -> BoxFuture<'a, Result<()>> {
        std::future::pending().boxed()
    }

    fn scan<'a>(&'a self, _: &'a str, _: Option<&'a str>, _: usize, _: Duration) -> BoxFuture<'a, Result<Page>> {
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_call_to_a_node_that_is_still_joining_is_refused_at_once() {
    let door = greenroom_engines::free_address();
    let starting = tokio::spawn(node().http(door.clone()).store(Arc::new(Silent)).start());
    while tokio::net::TcpStream::connect(&door).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = tokio::time::timeout(Duration::from_secs(60), call(&door, "/notes/a/all", "")).await.unwrap();
    answer.problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(get(&door, "/healthz").await.status, 200);
    starting.abort();
}
