//! What a request's headers let a call carry.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{call, post, raw};
use crate::kinds::{node, open};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async fn carried(door: &str, headers: &str) -> serde_json::Value {
    let answer = raw(door, &post("/notes/a/carried", headers, r#"{"more":true}"#)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn baggage_and_trace_come_in_by_headers_and_flow_along_calls() {
    let (node, door) = open(node()).await;
    let headers = format!(
        "baggage: tenant=a;ttl=3 , user = ada%20%C3%A9\r\nbaggage: x=\r\ntraceparent: {PARENT}\r\ntracestate: v=1\r\n"
    );
    let all = carried(&door, &headers).await;
    assert_eq!(all, json!(["tenant=a", "user=ada é", "x=", format!("{PARENT} v=1")]));
    assert_eq!(carried(&door, "").await, json!([]));
    node.stop().await;
}

#[tokio::test]
async fn a_traceparent_that_is_none_is_passed_over() {
    let (node, door) = open(node()).await;
    let zeros = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
    for parent in ["", "x", &zeros, &PARENT.to_uppercase(), &format!("{PARENT}-"), &"0".repeat(20_000)] {
        assert_eq!(carried(&door, &format!("traceparent: {parent}\r\n")).await, json!([]), "{parent:.80}");
    }
    let twice = format!("traceparent: {PARENT}\r\ntraceparent: {PARENT}\r\n");
    assert_eq!(carried(&door, &twice).await, json!([]));
    let state = format!("traceparent: {PARENT}\r\ntracestate: {}\r\n", "v".repeat(513));
    assert_eq!(carried(&door, &state).await, json!([format!("{PARENT} ")]));
    node.stop().await;
}

#[tokio::test]
async fn hostile_baggage_is_400_and_named() {
    let (node, door) = open(node()).await;
    let many: String = (0..65).map(|n| format!("k{n}=v,")).collect();
    let long = format!("k={}", "v".repeat(8192));
    for baggage in ["novalue", "=v", "a b=v", "k=%zz", "k=%f", "k=%ff", "k=\"q\"", "k=a b", "é=v", &many, &long] {
        let request = post("/notes/a/carried", &format!("baggage: {baggage}\r\n"), r#"{"more":false}"#);
        let problem = raw(&door, &request).await.problem(400, "bad-request");
        assert_eq!(problem["field"], "baggage", "{baggage:.80}");
    }
    assert_eq!(node.activations(), 0, "nothing ran");
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_call() {
    let (node, door) = open(node()).await;
    let mut stream = TcpStream::connect(&door).await.unwrap();
    stream.write_all(&post("/notes/a/until_cancelled", "", "")).await.unwrap();
    while node.activations() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    // Far sooner than its deadline would: that is half a minute away.
    let answer = tokio::time::timeout(Duration::from_secs(10), call(&door, "/notes/a/all", "")).await;
    assert_eq!(answer.expect("the turn ends").json(), json!(["cancelled"]));
    node.stop().await;
}
