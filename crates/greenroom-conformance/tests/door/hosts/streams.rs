//! Streams of hosts, and what holds them back and ends them.

use std::time::Duration;

use futures_util::StreamExt;
use greenroom::ReplyStream;
use greenroom::prelude::*;

use super::host::TestHost;
use super::{TALLY, TallyRef, known, opened, with_socket};
use crate::client::{Events, call};
use crate::kinds::{node, open};

#[tokio::test]
async fn a_stream_of_a_host_reaches_actors_other_nodes_and_the_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = format!("sqlite:{}", folder.path().join("table").display());
    let (builder, path) = with_socket(node().configure(|config| config.name = "a".into()).table(&table), &folder, "a");
    let (one, first) = open(builder).await;
    let (other, second) = open(node().configure(|config| config.name = "b".into()).table(&table)).await;
    let _host = TestHost::serve(&path, TALLY).await;
    known(&first).await;
    known(&second).await;
    for node in [&one, &other] {
        let items: Vec<_> = TallyRef::of(node, "x").count(300).await.expect("it is a stream").collect().await;
        assert_eq!(items, (0..300).map(Ok).collect::<Vec<_>>());
    }
    for door in [&first, &second] {
        let mut events = Events::open(door, "POST", "/tally/x/count", "", r#"{"upto": 100}"#).await;
        for number in 0..100 {
            let event = events.next().await.expect("an item");
            assert_eq!((event.data, event.name), (number.to_string(), None));
        }
        assert_eq!(events.next().await.and_then(|event| event.name).as_deref(), Some("end"));
    }
    one.stop().await;
    other.stop().await;
}

/// How a stream breaks off.
async fn end(items: &mut ReplyStream<u64>) -> Option<CallError> {
    let ending = async {
        let mut ended = None;
        while let Some(item) = items.next().await {
            ended = item.err();
        }
        ended
    };
    tokio::time::timeout(Duration::from_secs(20), ending).await.expect("it ends")
}

#[tokio::test]
async fn l19_a_lost_seats_stream_ends_for_its_consumer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let mut items = TallyRef::of(&node, "x").count(u64::MAX).await.expect("it is a stream");
    assert_eq!(items.next().await, Some(Ok(0)));
    host.kill();
    let ended = end(&mut items).await;
    assert!(matches!(ended, Some(CallError::Unknown(Doubt::Ended { .. }))), "{ended:?}");
    node.stop().await;
}

#[tokio::test]
async fn l19_a_slow_consumer_holds_the_host_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let host = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let tally = TallyRef::of(&node, "x");
    let mut items = tally.count(u64::MAX).await.expect("it is a stream");
    assert_eq!(items.next().await, Some(Ok(0)));
    // What the host may send it sends before it answers any of these.
    for _ in 0..200 {
        assert_eq!(tally.total().await, Ok(0));
    }
    // One window waits at its consumer, one at the host's node.
    assert!(host.made() <= 1 + 2 * 64, "{}", host.made());
    for expected in 1..1_000 {
        assert_eq!(items.next().await, Some(Ok(expected)));
    }
    drop(items);
    while host.streams() > 0 {
        assert_eq!(tally.total().await, Ok(0));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_sends_more_than_there_is_room_for_loses_its_lane() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let _host = TestHost::serve(&path, TALLY).await;
    known(&door).await;
    let mut items = TallyRef::of(&node, "x").flood().await.expect("it is a stream");
    let ended = end(&mut items).await;
    assert!(matches!(ended, Some(CallError::Unknown(Doubt::Ended { .. }))), "{ended:?}");
    call(&door, "/-/kinds/tally", "").await;
    node.stop().await;
}
