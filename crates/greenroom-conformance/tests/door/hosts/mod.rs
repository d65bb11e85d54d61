//! Hosts: processes that dial a node and offer kinds, here a few lines that speak the frames over the real socket.

mod again;
mod bounds;
mod chains;
mod codecs;
mod host;
mod internal;
mod offers;
mod puppet;
mod reliable;
mod rules;
mod streams;
mod users;

use std::path::PathBuf;
use std::time::Duration;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_wire::Status;
use greenroom_wire::host::{FromHost, FromNode, Hello, HelloMap, OfferStatus, TurnEnd};
use tempfile::TempDir;

use self::host::{Line, Plan, TestHost};
use crate::client::{call, get};
use crate::kinds::{node, open};

/// What the host's kind looks like to actors in Rust.
#[actor]
#[expect(dead_code, reason = "the attribute makes a reference of it, and nothing in Rust implements it")]
pub(crate) trait Tally {
    async fn add(&mut self, n: u64) -> u64;
    async fn total(&self) -> u64;
    fn count(&self, upto: u64) -> impl Stream<Item = u64>;
    fn flood(&self) -> impl Stream<Item = u64>;
}

const TALLY: Plan = Plan { kind: "tally", version: 1, persistent: false };

fn with_socket(builder: Builder, folder: &TempDir, name: &str) -> (Builder, PathBuf) {
    let path = folder.path().join(format!("{name}.sock"));
    let listen = format!("unix:{}", path.display());
    let builder = builder.configure(|config| {
        config.hosts.listen = listen;
        config.hosts.lease = Duration::from_millis(300);
        config.hosts.grace = Duration::from_millis(1500);
    });
    (builder, path)
}

/// A node that takes hosts, its door, and its socket.
async fn opened(folder: &TempDir) -> (Node, String, PathBuf) {
    let (builder, path) = with_socket(node(), folder, "a");
    let (node, door) = open(builder).await;
    (node, door, path)
}

/// Waits until the node behind `door` has seen the kind in the membership table.
async fn known(door: &str) {
    while call(door, "/tally/first/total", "{}").await.status == 404 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn both_doors_of_two_nodes_answer_for_a_kind_that_a_host_offers_at_one_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = format!("sqlite:{}", folder.path().join("table").display());
    let (builder, path) = with_socket(node().configure(|config| config.name = "a".into()).table(&table), &folder, "a");
    let (one, first) = open(builder).await;
    let (other, second) = open(node().configure(|config| config.name = "b".into()).table(&table)).await;
    call(&second, "/tally/x/add", r#"{"n": 1}"#).await.problem(404, "unknown-kind");

    let host = TestHost::serve(&path, TALLY).await;
    assert_eq!(host.offered, [(OfferStatus::Taken, String::new())]);
    known(&first).await;
    assert_eq!(call(&first, "/tally/x/add", r#"{"n": 2}"#).await.body, "2");
    known(&second).await;
    assert_eq!(call(&second, "/tally/x/add", r#"{"n": 3}"#).await.body, "5");
    let problem = call(&second, "/tally/x/fail", "{}").await.problem(422, "actor-error");
    assert_eq!(problem["error"]["Broke"]["at"], 5);
    call(&first, "/tally/x/nothing", "{}").await.problem(404, "unknown-method");
    let status = get(&first, "/-/status").await.json();
    assert_eq!((&status["hosts"][0]["name"], &status["hosts"][0]["seats"]), (&"test".into(), &2.into()));

    // All hosts go: nothing runs, and callers are told so, also where the kind was only ever elsewhere.
    host.drain().await;
    for door in [&first, &second] {
        let mut refused = call(door, "/tally/x/total", "{}").await;
        while refused.status != 503 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            refused = call(door, "/tally/x/total", "{}").await;
        }
        let problem = refused.problem(503, "unavailable");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("no host offers")), "{problem}");
    }
    // Who looks is told why.
    while !one.findings().iter().any(|finding| finding.id == "no-host kind tally") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told: Vec<_> = one.events(usize::MAX).into_iter().filter(|event| event.event.starts_with("host-")).collect();
    assert_eq!(
        told.iter().rev().map(|event| &*event.event).collect::<Vec<_>>(),
        ["host-came", "host-gone"],
        "{told:?}"
    );
    assert!(told[1].text.contains("host test (process") && told[1].text.ends_with("offers tally 1"), "{told:?}");
    let _back = TestHost::serve(&path, TALLY).await;
    let mut answer = call(&first, "/tally/x/add", r#"{"n": 7}"#).await;
    while answer.status == 503 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        answer = call(&first, "/tally/x/add", r#"{"n": 7}"#).await;
    }
    assert_eq!(answer.body, "7");
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn actors_of_the_node_and_of_hosts_call_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let _host = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let tally = TallyRef::of(&node, "x");
    assert_eq!(tally.add(3).await, Ok(3));
    assert_eq!(tally.total().await, Ok(3));

    let relayed = |method: &str, arguments: &str, kind: &str, key: &str| {
        format!(r#"{{"kind": "{kind}", "key": "{key}", "method": "{method}", "arguments": {arguments}}}"#)
    };
    let ask = relayed("add", r#"{"text": "hi", "times": 2}"#, "notes", "n");
    assert_eq!(call(&door, "/tally/x/relay", &ask).await.body, "2");
    // What fails elsewhere comes back as it is.
    let ask = relayed("add", r#"{"text": "much too long", "times": 2}"#, "notes", "n");
    let problem = call(&door, "/tally/x/relay", &ask).await.problem(422, "actor-error");
    assert_eq!(problem["error"]["TooLong"]["max"], 10);
    // A chain that comes back to its beginning is told so.
    let ask = relayed("add", r#"{"n": 1}"#, "tally", "x");
    call(&door, "/tally/x/relay", &ask).await.problem(409, "cycle");
    node.stop().await;
}

#[tokio::test]
async fn turns_of_a_host_that_is_gone_are_in_doubt_and_its_actors_wait_for_another_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let kept = || Plan { persistent: true, ..TALLY };
    let host = TestHost::serve(&path, kept()).await;
    known(&door).await;
    let tally = TallyRef::of(&node, "x");
    assert_eq!(tally.add(5).await, Ok(5));
    let hanging = tokio::spawn({
        let door = node.http_address().expect("it has a door");
        async move { call(&door, "/tally/x/hang", "{}").await }
    });
    // It hangs once what waits behind it waits.
    let waiting = tokio::spawn({
        let tally = tally.clone();
        async move { tally.add(1).by(Duration::from_secs(20)).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    host.kill();
    hanging.await.expect("it ends").problem(502, "unknown-outcome");
    let _next = TestHost::serve(&path, kept()).await;
    // What was saved is there, and what waited runs once.
    assert_eq!(waiting.await.expect("it ends"), Ok(6));
    assert_eq!(tally.total().await, Ok(6));
    node.stop().await;
}

#[tokio::test]
async fn no_call_fails_while_a_newer_version_takes_over_and_the_older_drains() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let old = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let calling = tokio::spawn({
        let node = node.clone();
        async move {
            for n in 0..2_000_u64 {
                let tally = TallyRef::of(&node, n % 20);
                tally.add(1).await.unwrap_or_else(|error| panic!("call {n}: {error}"));
            }
        }
    });
    let new = TestHost::serve(&path, Plan { version: 2, ..TALLY }).await;
    assert_eq!(new.offered, [(OfferStatus::TakenInPlace, String::new())]);
    old.drain().await;
    calling.await.expect("no call failed");
    assert_eq!(call(&door, "/tally/0/who", "{}").await.body, "2");
    node.stop().await;
}

#[tokio::test]
async fn an_actor_whose_newer_version_has_gone_is_told_apart_from_one_without_any_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let _old = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let new = TestHost::serve(&path, Plan { version: 2, ..TALLY }).await;
    while call(&door, "/tally/x/who", "{}").await.body != "2" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    new.kill();
    // It waits for a host of what it was, and is then told what there is; the next call begins anew with that.
    let mut answer = call(&door, "/tally/x/total", "{}").await;
    while answer.status == 502 {
        answer = call(&door, "/tally/x/total", "{}").await;
    }
    let problem = answer.problem(503, "unavailable");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("has had version 2") && detail.contains("hosts offer version 1"), "{problem}");
    while call(&door, "/tally/x/who", "{}").await.body != "1" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_host_or_no_offer_is_refused_by_name_and_the_node_serves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    for kind in ["notes", "topics", "greenroom.partitions"] {
        let host = TestHost::serve(&path, Plan { kind, ..TALLY }).await;
        assert_eq!(host.offered[0].0, OfferStatus::Refused, "{kind}");
        assert!(host.offered[0].1.contains(kind), "{:?}", host.offered);
    }
    // Bytes that are no frames, a frame that is no greeting, a lane of no session.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[1, 0, 0, 0, 36]] {
        let mut line = Line::dial(&path, false).await;
        line.bytes(bytes).await;
        assert!(line.hear(|_| ()).await.is_none(), "{bytes:?}");
    }
    // An end of a turn that there never was ends the session's lane, and no more.
    let host = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    assert_eq!(call(&door, "/tally/x/add", r#"{"n": 1}"#).await.body, "1");
    let mut stray = Line::dial(&path, false).await;
    stray.say(&FromHost::Hello(Hello::new(HelloMap::new("client")))).await;
    assert!(stray.hear(|frame| matches!(frame, FromNode::Welcome(_))).await.expect("clients come in, too"));
    let turn =
        TurnEnd { turn: 9, status: Status::Ok, changes: None, jump: None, is_halt: false, stream: None, payload: &[] };
    stray.say(&FromHost::TurnEnd(turn)).await;
    assert!(stray.hear(|frame| matches!(frame, FromNode::Goodbye { .. })).await.unwrap_or(true));
    assert_eq!(call(&door, "/tally/x/add", r#"{"n": 1}"#).await.body, "2");
    host.kill();
    node.stop().await;
}
