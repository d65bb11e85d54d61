//! Heads and bodies that are not plain JSON in bounds.

use crate::client::{Answer, call, post, raw};
use crate::kinds::{node, open};

/// Calls with these header lines.
async fn with(door: &str, headers: &str, path: &str, body: &str) -> Answer {
    raw(door, &post(path, headers, body)).await
}

#[tokio::test]
async fn bodies_that_are_encoded_are_refused_and_not_misread() {
    let (node, door) = open(node()).await;
    for encoding in ["gzip", "br", "identity, gzip"] {
        let answer = with(&door, &format!("content-encoding: {encoding}\r\n"), "/notes/a/all", "{}").await;
        assert_eq!(answer.problem(415, "unsupported-encoding")["may_have_run"], false);
    }
    assert_eq!(with(&door, "content-encoding: identity\r\n", "/notes/a/all", "{}").await.status, 200);
    for transfer in ["gzip, chunked", "deflate, chunked"] {
        let request = format!(
            "POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: {transfer}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
        );
        raw(&door, request.as_bytes()).await.problem(501, "unsupported-transfer");
    }
    let chunked =
        "POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    assert_eq!(raw(&door, chunked.as_bytes()).await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped() {
    let (node, door) = open(node()).await;
    assert_eq!(call(&door, "/notes/a/size", "\u{feff}{\"text\":\"abc\"}").await.body, "3");
    assert_eq!(call(&door, "/topics/news", "\u{feff}7").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_whole_number_is_an_integer_however_it_is_written() {
    let (node, door) = open(node()).await;
    for (number, lines) in [("2", "2"), ("1.0", "3"), ("1e1", "13"), ("-0", "13"), ("20e-1", "15")] {
        let arguments = format!("{{\"text\":\"a\",\"times\":{number}}}");
        assert_eq!(call(&door, "/notes/a/add", &arguments).await.body, lines, "{number}");
    }
    for number in ["0.5", "1e10", "-1.0", "1e300"] {
        let arguments = format!("{{\"text\":\"a\",\"times\":{number}}}");
        let problem = call(&door, "/notes/a/add", &arguments).await.problem(400, "invalid-arguments");
        assert_eq!(problem["field"], "times", "{number}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_member_that_is_there_twice_is_refused_whatever_reads_it() {
    let (node, door) = open(node()).await;
    for (body, field) in [
        (r#"{"text":"a","text":"b"}"#, "text"),
        (r#"{"text":"a","te\u0078t":"b"}"#, "text"),
        // The method does not know it, and would skip it.
        (r#"{"text":"a","more":{"b":[{"c":1,"c":2}]}}"#, "more.b[0].c"),
    ] {
        let problem = call(&door, "/notes/a/size", body).await.problem(400, "invalid-arguments");
        assert_eq!(problem["field"], field, "{body}");
    }
    node.stop().await;
}

#[tokio::test]
async fn heads_have_the_documented_bound() {
    let (node, door) = open(node()).await;
    let head = |len: usize| {
        let begin = "GET /healthz HTTP/1.1\r\nhost: localhost\r\ncookie: ";
        format!("{begin}{}\r\n\r\n", "a".repeat(len - begin.len() - 4))
    };
    for (len, status) in [(30_000, 200), (32 << 10, 200), ((32 << 10) + 1, 431), (34_000, 431), (60_000, 431)] {
        assert_eq!(raw(&door, head(len).as_bytes()).await.status, status, "{len}");
    }
    node.stop().await;
}
