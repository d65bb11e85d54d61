//! Streams of replies as server-sent events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, Node};
use serde_json::json;

use crate::client::{Events, call, get, post, raw};
use crate::kinds::open;

#[derive(Default, Actor)]
struct Numbers;

static OPEN: AtomicU64 = AtomicU64::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);

struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

#[actor(kind = "streamed_numbers")]
impl Numbers {
    pub fn count(&self, to: u64) -> impl Stream<Item = u64> {
        stream::iter(0..to)
    }

    pub async fn ask(&mut self, yes: bool) -> Result<impl Stream<Item = String>, String> {
        if yes { Ok(stream::iter(["a\nb".to_owned()])) } else { Err("no".to_owned()) }
    }

    pub fn fail(&self) -> impl Stream<Item = u64> {
        stream::iter(0..5).map(|number| 12 / (3 - number))
    }

    pub fn endless(&self) -> impl Stream<Item = String> {
        OPEN.fetch_add(1, Ordering::SeqCst);
        let held = Held;
        stream::repeat_with(move || {
            let _ = &held;
            MADE.fetch_add(1, Ordering::SeqCst);
            "x".repeat(10_000)
        })
    }
}

fn node() -> Builder {
    Node::builder().http("127.0.0.1:0").register::<Numbers>()
}

const COUNT: &str = "/streamed_numbers/a/count";

#[tokio::test]
async fn a_stream_comes_as_events_with_numbers_and_an_end() {
    let (node, door) = open(node()).await;
    for (method, path, body) in
        [("POST", COUNT.to_owned(), r#"{"to":100}"#), ("GET", format!("{COUNT}?arguments=%7B%22to%22:100%7D"), "")]
    {
        let mut events = Events::open(&door, method, &path, "", body).await;
        assert!(events.head.contains("200 OK") && events.head.contains("text/event-stream"), "{}", events.head);
        for number in 0..100 {
            let event = events.next().await.unwrap();
            assert_eq!((event.id, event.name, event.data), (Some(number.to_string()), None, number.to_string()));
        }
        assert_eq!(events.next().await.unwrap().name.as_deref(), Some("end"));
        assert_eq!(events.next().await, None);
    }
    let mut events = Events::open(&door, "POST", "/streamed_numbers/a/ask", "", r#"{"yes":true}"#).await;
    assert_eq!(events.next().await.unwrap().data, r#""a\nb""#);
    node.stop().await;
}

#[tokio::test]
async fn what_is_refused_or_breaks_off_is_a_problem() {
    let (node, door) = open(node()).await;
    let refused =
        raw(&door, &post("/streamed_numbers/a/ask", "accept: text/event-stream\r\n", r#"{"yes":false}"#)).await;
    assert_eq!(refused.problem(422, "actor-error")["error"], "no");
    let mut events = Events::open(&door, "POST", "/streamed_numbers/a/fail", "", "").await;
    let data: Vec<_> = [events.next().await, events.next().await, events.next().await]
        .into_iter()
        .map(|event| event.unwrap().data)
        .collect();
    assert_eq!(data, ["4", "6", "12"]);
    let error = events.next().await.unwrap();
    assert_eq!(error.name.as_deref(), Some("error"));
    let problem: serde_json::Value = serde_json::from_str(&error.data).unwrap();
    assert_eq!((&problem["status"], &problem["type"]), (&json!(500), &json!("/-/problems/panicked")));
    assert_eq!(events.next().await, None);
    node.stop().await;
}

#[tokio::test]
async fn a_stream_is_given_as_events_only_and_events_are_gotten_of_reads_only() {
    let (node, door) = open(node()).await;
    call(&door, COUNT, r#"{"to":1}"#).await.problem(406, "only-events");
    get(&door, COUNT).await.problem(405, "wrong-method");
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{more}\r\n").into_bytes()
    };
    raw(&door, &get("/streamed_numbers/a/ask", "")).await.problem(405, "wrong-method");
    raw(&door, &get(COUNT, "sec-fetch-site: cross-site\r\n")).await.problem(403, "other-site");
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_producer_back_and_one_that_leaves_cancels() {
    let (alone, door) = open(node()).await;
    holds_back_and_cancels(&door).await;
    alone.stop().await;
    // And through another node's door.
    let table = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", table.path().join("table.db").display());
    let (host, _) = open(node().table(&url).name("host")).await;
    let (front, door) = open(node().table(&url).name("front").retain_kinds(|_| false)).await;
    holds_back_and_cancels(&door).await;
    front.stop().await;
    host.stop().await;
}

async fn holds_back_and_cancels(door: &str) {
    let before = MADE.load(Ordering::SeqCst);
    let mut events = Events::open(door, "POST", "/streamed_numbers/a/endless", "", "").await;
    events.next().await.unwrap();
    let mut made = MADE.load(Ordering::SeqCst);
    // It stops when the sockets' buffers are full, which hold some megabytes.
    let stopped = async {
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = MADE.load(Ordering::SeqCst);
            if now == made {
                return now;
            }
            made = now;
        }
    };
    let made = tokio::time::timeout(Duration::from_secs(20), stopped).await.expect("the producer stops") - before;
    assert!(made < 5000, "{made} items of 10 kB");
    assert_eq!(OPEN.load(Ordering::SeqCst), 1);
    drop(events);
    let cancelled = async {
        while OPEN.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), cancelled).await.expect("the stream is dropped");
}
