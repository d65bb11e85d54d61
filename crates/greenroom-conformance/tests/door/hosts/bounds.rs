//! Hosts that take more than a node gives: what they leave unread, say of themselves and sit on is bounded.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use greenroom::{CallError, Refusal};
use greenroom_wire::host::{Closing, FromHost, FromNode, Hello, HelloMap, OfferMap};
use greenroom_wire::{ExtensionView, Status};
use serde_json::json;

use super::host::{Line, TestHost};
use super::puppet::Puppet;
use super::rules::opened;
use super::{TALLY, TallyRef, known};
use crate::client::{call, get};

/// A host that can ask for an actor's answer of a megabyte.
async fn greedy(path: &PathBuf, door: &str) -> Puppet {
    let lines = json!({ "text": "0123456789", "times": ANSWER_LEN / 11 }).to_string();
    assert_eq!(call(door, "/notes/long/add", &lines).await.status, 200);
    let mut host = Puppet::comes(path, "greedy", 1).await;
    host.defines("notes", "all").await;
    host
}

/// Turns of `notes` that have given their lines.
async fn answered(door: &str) -> Option<usize> {
    let metrics = get(door, "/metrics").await.body;
    let told = "greenroom_method_turns_total{kind=\"notes\",method=\"all\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(told)?.parse().ok())
}

/// Waits until they are so many.
async fn answers(door: &str, count: usize) {
    while answered(door).await != Some(count) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A host and a node that do well beside whoever does not.
async fn serves_on(door: &str, path: &PathBuf) {
    let host = TestHost::serve(path, TALLY).await;
    known(door).await;
    assert_eq!(call(door, "/tally/x/add", r#"{"n": 2}"#).await.body, "2");
    host.kill();
}

#[tokio::test]
async fn who_never_reads_what_it_asked_for_loses_its_lane_and_the_node_serves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = greedy(&path, &door).await;
    // More than a node keeps for a host.
    host.asks_at_once(UNREAD_MAX / ANSWER_LEN + 10, "long").await;
    host.is_told_of_its_lane().await;
    serves_on(&door, &path).await;
    node.stop().await;
}

#[tokio::test]
async fn what_a_host_asks_for_waits_while_it_leaves_answers_unread() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = greedy(&path, &door).await;
    let count = UNREAD_HIGH / ANSWER_LEN + 4;
    host.asks_at_once(count, "long").await;
    answers(&door, count).await;
    host.asks((0, 0), "long", None, ExtensionView::default()).await;
    // It would have been answered long since.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(answered(&door).await, Some(count), "the node reads on");
    for request in 1..=count {
        assert_eq!(host.answer().await, (request as u64, Status::Ok));
    }
    answers(&door, count + 1).await;
    node.stop().await;
}

#[tokio::test]
async fn a_description_of_a_megabyte_is_refused_by_its_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut line = Line::dial(&path, false).await;
    let mut map = HelloMap::new("wordy");
    map.offers = vec![OfferMap { kind: "wordy".into(), version: 1, compatible: 1, digest: "0".repeat(64) }];
    line.say(&FromHost::Hello(Hello::new(map))).await;
    let unknown = line.hear(|frame| match frame {
        FromNode::Welcome(welcome) => welcome.map.unknown.len(),
        other => panic!("no Welcome but {other:?}"),
    });
    assert_eq!(unknown.await, Some(1));
    let doc = "x".repeat(1 << 20);
    let document = json!({ "greenroom": 1, "kind": "wordy", "version": 1, "compatible": 1, "doc": doc }).to_string();
    line.bytes(&described("wordy", &document)).await;
    let goodbye = line.hear(|frame| match frame {
        FromNode::Goodbye { code, reason } => (code, reason.to_owned()),
        other => panic!("no Goodbye but {other:?}"),
    });
    let (code, reason) = goodbye.await.expect("it says why");
    assert_eq!(code, Closing::BadFrame);
    assert!(reason.contains("description") && reason.contains("262144"), "{reason}");
    serves_on(&door, &path).await;
    node.stop().await;
}

#[tokio::test]
async fn whom_a_host_has_no_seat_for_is_refused_by_that_bound_and_those_that_sit_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = TestHost::with(&path, TALLY, |map| map.seats_max = SEATS as u32).await;
    // One actor sits already.
    known(&door).await;
    let seated = stream::iter(1..SEATS).map(|key| {
        let tally = TallyRef::of(&node, key);
        async move { tally.add(1).await }
    });
    let answers = seated.buffer_unordered(256).collect::<Vec<_>>().await;
    let failed: Vec<_> = answers.iter().filter(|answer| **answer != Ok(1)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let status = get(&door, "/-/status").await.json();
    assert_eq!(status["hosts"][0]["seats"], SEATS);
    // The seats of a host of other kinds are no room for these.
    let other = Puppet::comes(&path, "other", 1).await;

    match TallyRef::of(&node, SEATS).add(1).await {
        Err(CallError::Refused(Refusal::Overloaded { queue, bound })) => {
            assert_eq!((&*queue, bound), ("the seats of the hosts of \"tally\"", SEATS));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(TallyRef::of(&node, 7_u64).add(1).await, Ok(2), "who sits is served");
    drop(other);
    host.kill();
    node.stop().await;
}

/// A Describe frame by hand: the wire's own writer refuses one like it.
fn described(kind: &str, json: &str) -> Vec<u8> {
    let mut body = vec![2, kind.len() as u8];
    body.extend(kind.as_bytes());
    body.extend(1_u16.to_le_bytes());
    body.extend(json.as_bytes());
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend(body);
    frame
}

/// About as long is an answer that the greedy host asks for.
const ANSWER_LEN: usize = 1 << 20;
/// What a host may leave unread before it is not read either.
const UNREAD_HIGH: usize = 4 << 20;
/// What a host may leave unread at all.
const UNREAD_MAX: usize = 64 << 20;
/// The seats of a host.
const SEATS: u64 = 1_000;
