//! What a node says of what happened, of what people changed, and of what is wrong.

use std::time::Duration;

use greenroom::prelude::*;
use serde_json::Value;

use crate::client::{call, get, raw};
use crate::kinds::{node, open};

async fn post(door: &str, path: &str, headers: &str) -> u16 {
    let request = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: 0\r\n\r\n");
    raw(door, request.as_bytes()).await.status
}

async fn texts(door: &str, query: &str) -> Vec<String> {
    let said = get(door, &format!("/-/events{query}")).await.json();
    let events = said["events"].as_array().expect("a list");
    events.iter().map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_a_person_changes_is_an_event_with_who_and_what_for() {
    let (node, door) = open(node().name("one")).await;
    let page = "origin: http://localhost\r\ngreenroom-change: a new disk\r\n";
    assert_eq!(post(&door, "/-/optimiser/pause", page).await, 200);
    assert_eq!(post(&door, "/-/optimiser/resume", "").await, 200);
    assert_eq!(post(&door, "/-/drain/nowhere", page).await, 404);
    let said = get(&door, "/-/events?level=warn").await.json();
    let [resumed, paused] = &said["events"].as_array().unwrap()[..] else { panic!("what was refused is none: {said}") };
    assert_eq!(resumed["text"], "the optimiser of this node goes on");
    assert_eq!(paused["text"], "the optimiser of this node is paused, for: a new disk");
    for event in [paused, resumed] {
        assert_eq!(
            (&event["event"], &event["by"], &event["node"]),
            (&"changed".into(), &"anybody on this machine".into(), &"one".into())
        );
        assert!(event["at"].as_u64().is_some_and(|at| at > 1_700_000_000_000), "{event}");
    }
    node.stop().await;
}

#[tokio::test]
async fn events_are_asked_for_by_subject_level_and_time() {
    let (node, door) = open(node().name("one")).await;
    assert_eq!(texts(&door, "").await, ["one has joined the cluster"]);
    assert_eq!(texts(&door, "?subject=one&level=good&since=0").await, ["one has joined the cluster"]);
    for none in ["?subject=two", "?level=warn", "?until=1000", "?since=99999999999999"] {
        assert!(texts(&door, none).await.is_empty(), "{none}");
    }
    let said = get(&door, "/-/events?limit=0").await.json();
    assert_eq!(
        (said["events"].as_array().map(Vec::len), &said["left_out"]),
        (Some(0), &1.into()),
        "what is cut off is said"
    );
    for wrong in ["level=awful", "since=yesterday", "limit=1001", "page=2", "level"] {
        get(&door, &format!("/-/events?{wrong}")).await.problem(400, "bad-request");
    }
    node.stop().await;
}

/// Keeps its thread.
#[derive(Default, Actor)]
struct Blocker {}

#[actor]
impl Blocker {
    pub async fn block(&mut self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }
}

/// Asks until there are such findings, or are not.
async fn until(door: &str, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    loop {
        let said = get(door, "/-/findings").await.json();
        let found = said["findings"].as_array().expect("a list").clone();
        if enough(&found) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_thread_that_is_stuck_in_a_turn_is_found_while_it_is() {
    let (node, door) = open(node().name("one").register::<Blocker>()).await;
    assert!(until(&door, |_| true).await.is_empty(), "nothing is wrong");
    let asked = door.clone();
    let blocking = tokio::spawn(async move { call(&asked, "/blocker/a/block", r#"{"ms":4500}"#).await.status });
    let found = until(&door, |found| !found.is_empty()).await;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&finding["check"], &finding["level"]), (&"stuck-shard".into(), &"bad".into()), "{finding}");
    assert_eq!((&finding["subject"]["node"], &finding["page"]), (&"one".into(), &"#/waits".into()), "{finding}");
    assert!(finding["evidence"][0]["value"].as_f64() >= Some(1.0), "{finding}");
    assert_eq!(blocking.await.unwrap(), 200);
    until(&door, <[Value]>::is_empty).await;
    let happened = texts(&door, "?level=good&subject=one").await;
    let title = finding["title"].as_str().unwrap();
    assert!(happened.contains(&title.to_owned()) && happened.contains(&format!("no more: {title}")), "{happened:?}");
    node.stop().await;
}
