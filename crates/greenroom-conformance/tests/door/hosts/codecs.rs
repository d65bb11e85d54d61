//! Hosts that read one codec only: the node writes over what callers say in the other one, and what they are answered.

use std::path::PathBuf;

use greenroom::prelude::*;
use greenroom_wire::codec::Codec;
use greenroom_wire::host::{FromHost, FromNode, Hello, HelloMap};
use serde_json::json;
use tempfile::TempDir;

use super::host::Line;
use super::puppet::Puppet;
use super::{TallyRef, with_socket};
use crate::client::call;
use crate::kinds::{node, open};

/// A node with one shard that takes hosts, its door, and its socket.
async fn opened(folder: &TempDir) -> (Node, String, PathBuf) {
    let (builder, path) = with_socket(node().configure(|config| config.shards = 1), folder, "a");
    let (node, door) = open(builder).await;
    (node, door, path)
}

/// A host that reads `codecs` alone.
async fn reads(path: &PathBuf, kind: &str, codecs: &[u8]) -> Puppet {
    let more = json!({"options": {"persistent": true}, "states": [{"name": "self", "version": 1}]});
    Puppet::with(path, kind, 1, more, |map| map.codecs = codecs.to_vec()).await
}

#[tokio::test]
async fn l17_a_turn_that_is_asked_in_json_reaches_a_host_of_messagepack_and_is_answered_in_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = reads(&path, "packed", &[1]).await;
    let asked = tokio::spawn(async move { call(&door, "/packed/x/add", r#"{"n": 9007199254740993}"#).await });
    host.seats().await;
    let (turn, _) = host.turn().await;
    assert_eq!(host.asked_in(turn), Codec::MessagePack);
    host.ends(turn, u64::MAX, false).await;
    assert_eq!(asked.await.expect("it is answered").body, u64::MAX.to_string());
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l17_a_host_of_json_serves_callers_and_states_in_messagepack() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _, path) = opened(&folder).await;
    let mut first = reads(&path, "tally", &[1]).await;
    let add = |n| {
        let tally = TallyRef::of(&node, "x");
        tokio::spawn(async move { tally.add(n).await })
    };
    let added = add(5);
    first.seats().await;
    let (turn, _) = first.turn().await;
    first.ends(turn, 5, true).await;
    assert_eq!(added.await.expect("it ends"), Ok(5));
    first.leaves().await;
    let mut next = reads(&path, "tally", &[2]).await;
    let added = add(3);
    next.seats().await;
    assert_eq!(next.stored_in, Some(Codec::Json));
    let (turn, _) = next.turn().await;
    assert_eq!(next.asked_in(turn), Codec::Json);
    next.answers(turn, 8, false, b"\x02\x01 8").await;
    assert_eq!(added.await.expect("it ends"), Ok(8));
    // What is no JSON is nobody's reply.
    let added = add(1);
    let (turn, _) = next.turn().await;
    next.answers(turn, 9, false, b"\x02\x01{\"a\": oops").await;
    let unknown = added.await.expect("it ends").expect_err("it is no reply").to_string();
    assert!(unknown.contains("what its host has answered") && unknown.contains("JSON at `a`"), "{unknown}");
    drop((first, next));
    node.stop().await;
}

#[tokio::test]
async fn json_that_is_none_is_refused_by_its_place_and_its_host_hears_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = reads(&path, "strict", &[1]).await;
    let (bad, good) = tokio::join!(call(&door, "/strict/x/add", r#"{"a": {"b": [1, oops]}}"#), async {
        host.seats().await;
        let asked = tokio::spawn({
            let door = door.clone();
            async move { call(&door, "/strict/x/add", r#"{"n": 1}"#).await }
        });
        // The first turn that there is.
        let (turn, _) = host.turn().await;
        host.ends(turn, 1, false).await;
        asked.await.expect("it is answered")
    });
    let problem = bad.problem(400, "invalid-arguments");
    assert_eq!((problem["field"].as_str(), &*good.body), (Some("a.b[1]"), "1"), "{problem}");
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_reads_nothing_the_node_writes_is_not_let_in_and_told_what_to_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _, path) = opened(&folder).await;
    for codecs in [vec![], vec![9]] {
        let mut line = Line::dial(&path, false).await;
        let mut map = HelloMap::new("odd");
        map.codecs = codecs;
        line.say(&FromHost::Hello(Hello::new(map))).await;
        let reason = line.hear(|frame| match frame {
            FromNode::Goodbye { reason, .. } => reason.to_owned(),
            other => panic!("no Goodbye but {other:?}"),
        });
        let reason = reason.await.expect("it is told");
        assert!(reason.contains("1 is MessagePack, 2 is JSON"), "{reason}");
    }
    node.stop().await;
}
