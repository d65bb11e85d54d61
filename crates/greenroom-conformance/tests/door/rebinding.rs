//! Web pages whose own name leads to the door: to their visitors' browsers, the door is their own site.

use std::time::Duration;

use greenroom::prelude::*;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::client::{Answer, raw};
use crate::kinds::{node, open};

/// What a browser says for a page of this name.
fn page(name: &str, port: &str) -> String {
    format!("host: {name}:{port}\r\norigin: http://{name}:{port}\r\nsec-fetch-site: same-origin\r\n")
}

async fn asks(door: &str, name: &str, request: &str, more: &str) -> Answer {
    let port = door.rsplit_once(':').expect("it has a port").1;
    raw(door, format!("{request} HTTP/1.1\r\n{}content-length: 0\r\n{more}\r\n", page(name, port)).as_bytes()).await
}

#[tokio::test]
async fn a_page_whose_name_leads_here_reads_calls_and_drains_nothing() {
    let (node, door) = open(node().name("a")).await;
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (request, more) in [
        ("GET /", ""),
        ("GET /healthz", ""),
        ("GET /metrics", ""),
        ("GET /-/status", ""),
        ("GET /-/inspect/notes/a", ""),
        ("GET /-/reminders", ""),
        ("POST /-/drain/a", ""),
        ("POST /-/migrate/notes/a/a", ""),
        ("DELETE /-/reminders/notes/a/x", ""),
        ("POST /notes/a/all", ""),
        ("POST /topics/news", ""),
        ("GET /topics/news", "accept: text/event-stream\r\n"),
        ("GET /topics/news/ws", upgrade),
        ("GET /nowhere/%", ""),
    ] {
        let answer = asks(&door, "evil.example", request, more).await;
        let problem = answer.problem(421, "unknown-host");
        assert!(problem["detail"].as_str().unwrap().contains("`http_hosts`"), "{request}: {problem}");
        assert_eq!(problem["host"], "evil.example");
    }
    assert_eq!(node.activations(), 0, "nothing ran");
    // What the same page may do on a site of the door's own.
    assert_eq!(asks(&door, "localhost", "POST /notes/a/all", "").await.status, 200);
    let named = "greenroom-change: a new disk\r\n";
    assert_eq!(asks(&door, "127.0.0.1", "POST /-/drain/a", named).await.status, 202);
    node.stop().await;
}

#[tokio::test]
async fn a_connection_that_asked_for_another_door_is_closed() {
    let (node, door) = open(node()).await;
    let mut stream = TcpStream::connect(&door).await.unwrap();
    let requests = "GET / HTTP/1.1\r\nhost: evil.example\r\n\r\nPOST /notes/a/all HTTP/1.1\r\nhost: localhost\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, requests.as_bytes()).await.unwrap();
    let mut said = String::new();
    let reading = tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut said));
    let _ = reading.await.expect("the door closes");
    assert_eq!((said.matches("HTTP/1.1 421").count(), said.matches("HTTP/1.1 ").count()), (1, 1), "{said}");
    node.stop().await;
}

#[tokio::test]
async fn a_door_answers_to_the_names_that_it_is_given() {
    let named =
        |config: &mut greenroom::Config| config.http_hosts = vec!["games.example.org".into(), "*.internal".into()];
    let (node, door) = open(node().configure(named)).await;
    for (name, status) in
        [("games.example.org", 200), ("Door.Internal", 200), ("evil.example", 421), ("10.0.0.5", 421), ("[::1]", 200)]
    {
        assert_eq!(asks(&door, name, "POST /notes/a/all", "").await.status, status, "{name}");
    }
    node.stop().await;
    let wrong = Node::builder().http("127.0.0.1:0").configure(|config| config.http_hosts = vec!["http://a".into()]);
    let error = wrong.start().await.map(drop).expect_err("it is no host").to_string();
    assert!(error.contains("http_hosts") && error.contains("without a scheme"), "{error}");
}

#[tokio::test]
async fn a_request_names_its_door_once() {
    let (node, door) = open(node()).await;
    for hosts in ["", "host: localhost\r\nhost: localhost\r\n", "host: \r\n", "host: a b\r\n"] {
        let answer = raw(&door, format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n").as_bytes()).await;
        assert_eq!(answer.problem(400, "bad-request")["field"], "Host", "{hosts:?}");
    }
    assert_eq!(raw(&door, b"GET /healthz HTTP/1.0\r\n\r\n").await.status, 200, "older clients need not");
    node.stop().await;
}
