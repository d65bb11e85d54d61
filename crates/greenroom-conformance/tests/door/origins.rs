//! Pages of other sites that the door is told of, in their visitors' browsers.

use greenroom::prelude::*;

use crate::client::{Answer, raw};
use crate::kinds::{node, open};

const NAMED: &str = "https://app.example.org";

async fn asks(door: &str, request: &str, origin: &str, more: &str, body: &str) -> Answer {
    let browser = format!("host: localhost\r\norigin: {origin}\r\nsec-fetch-site: cross-site\r\n");
    let length = body.len();
    raw(door, format!("{request} HTTP/1.1\r\n{browser}content-length: {length}\r\n{more}\r\n{body}").as_bytes()).await
}

/// What a browser asks before a page's request.
async fn may(door: &str, path: &str, origin: &str) -> Answer {
    let more = "access-control-request-method: POST\r\naccess-control-request-headers: content-type,authorization\r\n";
    asks(door, &format!("OPTIONS {path}"), origin, more, "").await
}

#[tokio::test]
async fn a_page_of_a_named_origin_calls_and_reads_answers_and_problems() {
    let (node, door) = open(node().configure(|config| config.http_origins = vec![NAMED.into()])).await;
    let answer = may(&door, "/notes/a/all", NAMED).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some(NAMED)), "{answer:?}");
    for header in ["authorization", "content-type", "idempotency-key", "greenroom-timeout"] {
        assert!(answer.header("access-control-allow-headers").unwrap().contains(header), "{header}: {answer:?}");
    }
    assert_eq!(node.activations(), 0, "nothing ran");
    for (request, more, status) in [
        ("POST /notes/a/all", "", 200),
        ("POST /notes/a/nothing", "", 404),
        ("GET /openapi.json", "", 200),
        ("POST /topics/news", "content-type: application/json\r\n", 200),
    ] {
        let answer = asks(&door, request, NAMED, more, if request.contains("topics") { "1" } else { "" }).await;
        assert_eq!(answer.status, status, "{request}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(NAMED), "{request}: {answer:?}");
        assert_eq!(answer.header("vary"), Some("origin"), "{request}: else a cache gives it to other pages");
    }
    node.stop().await;
}

#[tokio::test]
async fn what_is_about_the_node_is_no_other_pages() {
    let (node, door) = open(node().name("a").configure(|config| config.http_origins = vec![NAMED.into()])).await;
    for path in ["/-/drain/a", "/-/state/notes/state/a", "/-/status", "/metrics"] {
        let answer = may(&door, path, NAMED).await;
        assert!(answer.status != 204 && answer.header("access-control-allow-origin").is_none(), "{path}: {answer:?}");
    }
    for request in ["POST /-/drain/a", "GET /-/live?views=status", "DELETE /-/reminders/notes/a/x"] {
        let answer = asks(&door, request, NAMED, "greenroom-change: mischief\r\n", "").await;
        answer.problem(403, "other-site");
    }
    let status = asks(&door, "GET /-/status", NAMED, "", "").await;
    assert!(status.header("access-control-allow-origin").is_none(), "the page cannot read it: {status:?}");
    node.stop().await;
}

#[tokio::test]
async fn other_origins_are_refused_by_name() {
    let (named, door) = open(node().configure(|config| config.http_origins = vec![NAMED.into()])).await;
    let (closed, shut) = open(node()).await;
    for (door, origin) in [(&door, "https://evil.example"), (&door, "null"), (&shut, NAMED)] {
        let answer = may(door, "/notes/a/all", origin).await;
        assert!(answer.status != 204 && answer.header("access-control-allow-origin").is_none(), "{answer:?}");
        let problem = asks(door, "POST /notes/a/all", origin, "", "").await.problem(403, "other-site");
        assert!(problem["detail"].as_str().unwrap().contains("`http_origins`"), "{problem}");
    }
    assert_eq!(named.activations() + closed.activations(), 0, "nothing ran");
    named.stop().await;
    closed.stop().await;
    let wrong = Node::builder().http("127.0.0.1:0").configure(|config| config.http_origins = vec!["*".into()]);
    let error = wrong.start().await.map(drop).expect_err("it is everybody's").to_string();
    assert!(error.contains("http_origins") && error.contains("https://app.example.org"), "{error}");
}
