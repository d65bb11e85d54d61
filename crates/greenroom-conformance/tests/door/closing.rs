//! How connections end: a refusal reaches a client that is still sending, and each time to wait has a bound of its own.

use std::time::Duration;

use bytes::BytesMut;
use greenroom_wire::host::{FRAME_LEN_MAX, FromHost, Hello, HelloMap, UPGRADE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{call, post, read};
use crate::kinds::{node, open};

/// Fails a test that would otherwise wait for one of the bounds that it sets out of reach.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it does not wait for another bound")
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending_its_body() {
    let (node, door) = open(node()).await;
    for len in [100_000, 900_000, 1_200_000, 4_000_000] {
        let body = "x".repeat(len);
        let elsewhere =
            format!("POST /notes/a/all HTTP/1.1\r\nhost: elsewhere.example\r\ncontent-length: {len}\r\n\r\n");
        let mut refusals = vec![
            (401, post("/notes/a/all", "authorization: Bearer old\r\n", &body)),
            (404, post("/notes/a/none", "", &body)),
            (421, [elsewhere.as_bytes(), body.as_bytes()].concat()),
        ];
        if len > 1 << 20 {
            refusals.push((413, post("/notes/a/all", "", &body)));
        }
        for (status, request) in refusals {
            for _ in 0..5 {
                let mut stream = TcpStream::connect(&door).await.unwrap();
                stream.write_all(&request).await.unwrap_or_else(|error| panic!("{status}, {len} bytes: {error}"));
                let answer = read(&mut stream).await;
                assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{len} bytes");
            }
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn an_error_behind_the_body_keeps_the_connection() {
    let (node, door) = open(node()).await;
    let mut kept = TcpStream::connect(&door).await.unwrap();
    for (status, body) in [(400, "[]"), (400, r#"{"text":1}"#), (200, r#"{"text":"a"}"#)] {
        kept.write_all(&post("/notes/a/size", "", body)).await.unwrap();
        let answer = read(&mut kept).await;
        assert_eq!((answer.status, answer.header("connection")), (status, None), "{body}");
        assert_eq!(answer.header("keep-alive"), Some("timeout=75"), "{body}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_web_socket_says_why_it_closes_to_a_client_that_is_still_sending() {
    let (node, door) = open(node()).await;
    for _ in 0..5 {
        let mut stream = TcpStream::connect(&door).await.unwrap();
        let handshake = "GET /topics/news/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(handshake.as_bytes()).await.unwrap();
        // A text of two megabytes, masked with zeros.
        let head = [&[0x81, 0xff][..], &(2_u64 << 20).to_be_bytes(), &[0; 4]].concat();
        stream.write_all(&head).await.unwrap();
        stream.write_all(&vec![b'x'; 2 << 20]).await.expect("the endpoint reads on");
        let mut said = Vec::new();
        soon(stream.read_to_end(&mut said)).await.expect("it is not reset");
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("/-/problems/too-large"), "{said}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_host_that_is_not_let_in_hears_why_while_it_is_still_sending() {
    let (node, door) = open(node()).await;
    let mut map = HelloMap::new("puppet");
    map.codecs = vec![9];
    let mut hello = BytesMut::new();
    FromHost::Hello(Hello::new(map)).write(&mut hello, FRAME_LEN_MAX).unwrap();
    let upgrade =
        format!("GET /-/host HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: {UPGRADE}\r\n\r\n");
    for _ in 0..5 {
        let mut stream = TcpStream::connect(&door).await.unwrap();
        stream.write_all(&[upgrade.as_bytes(), &hello].concat()).await.unwrap();
        stream.write_all(&vec![0; 2 << 20]).await.expect("the node reads on");
        let mut said = Vec::new();
        soon(stream.read_to_end(&mut said)).await.expect("it is not reset");
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("101 Switching Protocols") && said.contains("name those that the host reads"), "{said}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_unfinished_body_does_not_hold_up_a_drain() {
    let hours = |config: &mut greenroom::Config| {
        config.http_body_timeout = Duration::from_secs(3600);
        config.drain_timeout = Duration::from_secs(1800);
        config.http_drain_timeout = Duration::from_millis(100);
    };
    let (node, door) = open(node().configure(hours)).await;
    let mut upload = TcpStream::connect(&door).await.unwrap();
    upload.write_all(b"POST /notes/a/size HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{").await.unwrap();
    // The endpoint has taken the connection once a later one is served.
    assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
    let draining = tokio::spawn(async move { node.drain().await });
    read(&mut upload).await.problem(503, "stopping");
    let drained = soon(draining).await.unwrap();
    assert!(drained.is_whole(), "{drained:?}");
}

#[tokio::test]
async fn the_head_of_a_later_request_has_the_time_of_a_head_and_not_of_an_idle_connection() {
    let bounds = |config: &mut greenroom::Config| {
        config.http_head_timeout = Duration::from_millis(300);
        config.http_idle_timeout = Duration::from_secs(3600);
    };
    let (node, door) = open(node().configure(bounds)).await;
    let mut kept = TcpStream::connect(&door).await.unwrap();
    kept.write_all(&post("/notes/a/all", "", "")).await.unwrap();
    let answer = read(&mut kept).await;
    assert_eq!((answer.status, answer.header("keep-alive")), (200, Some("timeout=3600")));
    kept.write_all(b"P").await.unwrap();
    assert_eq!(soon(kept.read(&mut [0; 1])).await.unwrap_or(0), 0, "the head has not come");
    node.stop().await;
}

#[tokio::test]
async fn a_request_that_comes_as_the_announced_time_ends_is_answered() {
    let (node, door) = open(node().configure(|config| config.http_idle_timeout = Duration::from_secs(1))).await;
    let mut kept = TcpStream::connect(&door).await.unwrap();
    for _ in 0..2 {
        kept.write_all(&post("/notes/a/all", "", "")).await.unwrap();
        let answer = read(&mut kept).await;
        assert_eq!((answer.status, answer.header("keep-alive")), (200, Some("timeout=1")));
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
    node.stop().await;
}
