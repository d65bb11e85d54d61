//! Strangers at the node's port: whatever they send, or do not send, the node serves on within bounded memory.

use std::time::Duration;

use bytes::BytesMut;
use greenroom::prelude::*;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::{CallHeader, CallId, ChainView, EncodeError, Encoder, Flow, Frame, Hello, HelloBody, Lane};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Default, Actor)]
struct Counter {
    count: u64,
}

#[actor]
impl Counter {
    pub async fn add(&mut self, n: u64) -> u64 {
        self.count += n;
        self.count
    }

    pub async fn echo(&self, text: String) -> String {
        text
    }
}

async fn node() -> Node {
    Node::builder().register::<Counter>().start().await.expect("a node on loopback starts")
}

/// Sends `bytes` and reads until the node closes the connection; what it said.
async fn refused(node: &Node, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    // The node may close while we still write.
    let _ = stream.write_all(bytes).await;
    let mut said = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut said)).await;
    assert!(closed.is_ok(), "the node keeps a stranger");
    said
}

fn hello(body: HelloBody) -> BytesMut {
    let mut bytes = BytesMut::new();
    Encoder::default().hello(&mut bytes, &Hello::new(body)).unwrap();
    bytes
}

/// The hello of a node that this one has not heard of yet: it might be about to join.
fn user_lane() -> HelloBody {
    HelloBody::new("greenroom", 7, "stranger", Lane::User { shard: 0, shards: 1 })
}

async fn still_serves(node: &Node) {
    let count = CounterRef::of(node, "steady").add(1).by(Duration::from_secs(5)).await;
    assert!(count.is_ok(), "{count:?}");
}

#[tokio::test]
async fn garbage_is_refused_and_counted() {
    let node = node().await;
    for garbage in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0; 64], &[0xFF; 4096], b"\x05\0\0\0\x03abcd"] {
        refused(&node, garbage).await;
    }
    assert_eq!(node.refused_connections(), 4);
    still_serves(&node).await;
}

#[tokio::test]
async fn the_wrong_cluster_a_later_version_and_another_incarnation_are_told_so() {
    let node = node().await;
    let mut wrong = user_lane();
    wrong.cluster = "elsewhere".into();
    let other = user_lane().expecting(99);
    for body in [wrong, other] {
        let said = refused(&node, &hello(body)).await;
        let mut bytes = BytesMut::from(&said[..]);
        let mut decoder = greenroom_wire::Decoder::default();
        assert!(matches!(decoder.decode(&mut bytes), Ok(Some(Frame::Hello(_)))));
        assert!(matches!(decoder.decode(&mut bytes), Ok(Some(Frame::Goodbye(_)))), "it says why");
    }
    still_serves(&node).await;
}

#[tokio::test]
async fn an_oversized_frame_after_a_good_hello_closes_the_connection_before_it_is_read() {
    let node = node().await;
    let mut bytes = hello(user_lane());
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(&[3; 1000]);
    refused(&node, &bytes).await;
    assert_eq!(node.bad_frames(), 1);
    still_serves(&node).await;
}

#[tokio::test]
async fn calls_on_undefined_routes_and_random_frames_close_the_connection() {
    let node = node().await;
    let mut state = 7_u64;
    for _ in 0..50 {
        let mut bytes = hello(user_lane());
        let body: Vec<u8> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        bytes.extend_from_slice(&(body.len() as u32 + 1).to_le_bytes());
        bytes.extend_from_slice(&[3]);
        bytes.extend_from_slice(&body);
        refused(&node, &bytes).await;
    }
    assert_eq!(node.bad_frames(), 50);
    still_serves(&node).await;
}

#[tokio::test]
async fn who_sends_a_byte_at_a_time_is_cut_off() {
    let node = node().await;
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    let bytes = hello(user_lane());
    let began = std::time::Instant::now();
    for byte in bytes.iter().cycle() {
        if stream.write_all(&[*byte]).await.is_err() || began.elapsed() > HANG {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(began.elapsed() < HANG, "five seconds are enough for a hello");
    still_serves(&node).await;
}

#[tokio::test]
async fn ten_thousand_idle_connections_cost_little_and_keep_nobody_out() {
    let node = node().await;
    let before = resident_bytes();
    let mut idle = Vec::new();
    for _ in 0..10_000 {
        // Beyond the limit of open files there is nothing more to show.
        match TcpStream::connect(node.address()).await {
            Ok(stream) => idle.push(stream),
            Err(_) => break,
        }
    }
    still_serves(&node).await;
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 200 << 20, "{} MiB for {} connections", grown >> 20, idle.len());
    assert!(idle.len() >= 1000, "only {} connections could be opened", idle.len());
    // Who behaves gets in, at the latest when the idle ones have been cut off.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    stream.write_all(&hello(user_lane())).await.unwrap();
    let mut first = [0; 1];
    let answered = tokio::time::timeout(HANG, stream.read_exact(&mut first)).await;
    assert!(answered.is_ok_and(|read| read.is_ok()), "a good hello is answered");
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_peer_that_takes_no_replies_and_ignores_its_credit_is_closed() {
    let node = node().await;
    let stream = TcpStream::connect(node.address()).await.unwrap();
    let mut bytes = hello(user_lane().giving(Flow::new(1 << 20, 1)));
    let encoder = Encoder::default();
    encoder.define(&mut bytes, 0, "counter", "echo").unwrap();
    let arguments = serde_json::json!({ "text": "x".repeat(32 << 10) });
    let mut stream = stream;
    stream.write_all(&bytes).await.unwrap();
    // It is given 4 MiB, and what it is owed may be as much, beside what the system's buffers take.
    let flood = async {
        for index in 0..4_096 {
            let id = Some(CallId { shard: 0, index, generation: 0 });
            let header = CallHeader { id, key: "a", ..CallHeader::one_way(0) };
            bytes.clear();
            encoder
                .call(&mut bytes, &header, ChainView::EMPTY, |out| {
                    codec::encode(Codec::MessagePack, 1, &arguments, out)
                })
                .unwrap();
            if stream.write_all(&bytes).await.is_err() {
                return index;
            }
        }
        panic!("128 MiB were taken, and nothing was read")
    };
    let sent = tokio::time::timeout(HANG, flood).await.expect("the node closes");
    assert!(sent > 64, "it had credit");
    assert_eq!(node.bad_frames(), 1);
    still_serves(&node).await;
}

/// Time for what ends by itself.
const HANG: Duration = Duration::from_secs(60);

/// The hello of who wants to look at the node.
fn look_lane() -> HelloBody {
    HelloBody::new("greenroom", 7, "stranger", Lane::Look)
}

fn asked(question: &[u8]) -> BytesMut {
    let mut bytes = hello(look_lane());
    let put = |out: &mut BytesMut| {
        out.extend_from_slice(question);
        Ok::<(), EncodeError>(())
    };
    Encoder::default().control(&mut bytes, 1, put).unwrap();
    bytes
}

#[tokio::test]
async fn who_looks_and_asks_too_much_is_cut_off() {
    let node = node().await;
    // A question that is too long is not waited for, and one that came whole is not read.
    let mut endless = hello(look_lane());
    endless.extend_from_slice(&(8_u32 << 20).to_le_bytes());
    endless.extend_from_slice(&[11; 64 << 10]);
    refused(&node, &endless).await;
    refused(&node, &asked(&[0; 20 << 10])).await;
    // What is no message of the lane ends it, too.
    let mut pinged = hello(look_lane());
    Encoder::default().ping(&mut pinged, 7);
    refused(&node, &pinged).await;
    still_serves(&node).await;
}

#[tokio::test]
async fn a_question_that_a_node_does_not_know_is_answered_with_why() {
    let node = node().await;
    for question in [&b"\x01\x01\x81\xa6future\xc0"[..], b"", b"\x01\x01\xc1"] {
        let mut stream = TcpStream::connect(node.address()).await.unwrap();
        stream.write_all(&asked(question)).await.unwrap();
        let (mut decoder, mut bytes) = (greenroom_wire::Decoder::default(), BytesMut::new());
        let reason = loop {
            match decoder.decode(&mut bytes).unwrap() {
                Some(Frame::Goodbye(reason)) => break reason.as_str().to_owned(),
                Some(Frame::Hello(_)) => {}
                Some(other) => panic!("{other:?}"),
                None => assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "it says why"),
            }
        };
        assert!(reason.contains("does not know the question"), "{reason}");
    }
    still_serves(&node).await;
}
