//! Idempotency keys at the door.

use greenroom::prelude::*;
use greenroom::{Auth, Rule};

use crate::client::{Answer, get, post, raw};

#[derive(Default, Actor)]
struct Kept {
    count: u64,
}

#[actor(reliable, kind = "kept_counter")]
impl Kept {
    pub async fn count(&mut self, n: u64) -> u64 {
        self.count += n;
        self.count
    }

    pub async fn pay(&mut self, order: String, amount: u64) -> u64 {
        self.count += if order.is_empty() { 0 } else { amount };
        self.count
    }
}

#[derive(Default, Actor)]
struct Loose {
    count: u64,
}

#[actor(kind = "loose_counter")]
impl Loose {
    pub async fn count(&mut self, n: u64) -> u64 {
        self.count += n;
        self.count
    }
}

async fn node() -> (Node, String) {
    let builder = Node::builder().http("127.0.0.1:0").journal("memory:").register::<Kept>().register::<Loose>();
    let node = builder.configure(|config| config.reliable.partitions = 4).start().await.expect("it starts");
    let door = node.http_address().expect("it has a door");
    (node, door)
}

async fn count(door: &str, kind: &str, headers: &str, n: u64) -> Answer {
    raw(door, &post(&format!("/{kind}/a/count"), headers, &format!("{{\"n\": {n}}}"))).await
}

#[tokio::test]
async fn a_call_under_a_key_runs_once_and_the_metrics_say_what_is_kept() {
    let (node, door) = node().await;
    for _ in 0..3 {
        assert_eq!(count(&door, "kept_counter", "idempotency-key: 17\r\n", 5).await.body, "5");
    }
    let other = count(&door, "kept_counter", "idempotency-key: 17\r\n", 6).await.problem(400, "invalid-arguments");
    assert!(other["detail"].as_str().is_some_and(|detail| detail.contains("another request")), "{other}");
    assert_eq!(count(&door, "kept_counter", "idempotency-key: 18\r\n", 5).await.body, "10");
    let metrics = get(&door, "/metrics").await.body;
    let metric = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<u64>().ok())
    };
    assert_eq!(metric("greenroom_reliable_answers"), Some(2), "{metrics}");
    assert!(metric("greenroom_reliable_answers_bytes").is_some_and(|bytes| (100..1000).contains(&bytes)), "{metrics}");
    assert_eq!(metric("greenroom_reliable_answers_refused_total"), Some(0), "{metrics}");
    let status = get(&door, "/-/status").await.json();
    assert_eq!(status["figures"]["greenroom_reliable_answers"], 2.0, "{status}");
    let figures = node.figures();
    let known = figures.iter().find(|figure| figure.name() == "greenroom_reliable_answers").expect("it is measured");
    assert_eq!((known.value(), known.only_rises()), (2.0, false));
    let shown = get(&door, "/-/reliable").await.json();
    let partitions = shown["partitions"].as_array().expect("a list");
    assert_eq!(partitions.iter().filter_map(|partition| partition["answers"].as_u64()).sum::<u64>(), 2, "{shown}");
    node.stop().await;
}

#[tokio::test]
async fn a_repeat_that_is_written_another_way_gets_the_answer_and_other_arguments_are_told_what_has_run() {
    let (node, door) = node().await;
    let paid = async |body: &str| raw(&door, &post("/kept_counter/a/pay", "idempotency-key: p\r\n", body)).await;
    for body in [
        r#"{"order":"x","amount":10}"#,
        r#"{"amount":10,"order":"x"}"#,
        r#"{ "order" : "x", "amount" : 10 }"#,
        r#"{"order":"\u0078","amount":10}"#,
        r#"{"order":"x","amount":1e1}"#,
    ] {
        let answer = paid(body).await;
        assert_eq!((answer.status, &*answer.body), (200, "10"), "{body}");
    }
    let problem = paid(r#"{"order":"x","amount":11}"#).await.problem(400, "invalid-arguments");
    let detail = problem["detail"].as_str().expect("it says why");
    assert!(detail.contains("which has run or may still run") && !detail.contains("use a new key"), "{detail}");
    node.stop().await;
}

#[tokio::test]
async fn a_key_for_a_kind_that_keeps_no_answers_is_refused_by_name_and_nothing_runs() {
    let (node, door) = node().await;
    let refused = count(&door, "loose_counter", "idempotency-key: 17\r\n", 5).await.problem(400, "invalid-arguments");
    assert_eq!((&refused["field"], &refused["may_have_run"]), (&"Idempotency-Key".into(), &false.into()));
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("\"loose_counter\"")), "{refused}");
    let event = raw(&door, &post("/topics/news", "idempotency-key: 17\r\n", "{}")).await;
    assert_eq!(event.problem(400, "invalid-arguments")["field"], "Idempotency-Key", "a topic keeps none either");
    assert_eq!(count(&door, "loose_counter", "", 5).await.body, "5");
    node.stop().await;
}

#[tokio::test]
async fn a_key_that_is_too_long_as_it_is_kept_is_refused_with_the_rule() {
    let (node, door) = node().await;
    let headers = |slashes: usize| format!("idempotency-key: {}\r\n", "/".repeat(slashes));
    let refused = count(&door, "kept_counter", &headers(134), 5).await.problem(400, "invalid-arguments");
    assert_eq!((&refused["field"], &refused["may_have_run"]), (&"Idempotency-Key".into(), &false.into()));
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("the idempotency key") && detail.contains("each `/` and `%` counts as three"), "{detail}");
    assert_eq!(count(&door, "kept_counter", &headers(133), 5).await.body, "5");
    node.stop().await;
}

#[tokio::test]
async fn who_fills_the_room_for_answers_is_refused_and_others_pay_on() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let tokens = folder.path().join("tokens.toml");
    let token =
        |name: &str| format!("[[token]]\nname = {name:?}\nroles = [\"user\"]\ntoken = \"{name}-0123456789abcdef\"\n");
    std::fs::write(&tokens, token("ada") + &token("bob")).expect("it can be written");
    let (roles, methods) = (vec!["user".into(), "anonymous".into()], vec!["*".into()]);
    let rule = Rule { roles, kind: "kept_counter".into(), methods, keys: "*".into(), issuer: None };
    let builder = Node::builder().http("127.0.0.1:0").journal("memory:").register::<Kept>().configure(|config| {
        (config.auth, config.allow) = (Auth { tokens: Some(tokens), ..Auth::default() }, vec![rule]);
        (config.reliable.partitions, config.reliable.answers_bytes_max) = (1, 8192);
    });
    let node = builder.start().await.expect("it starts");
    let door = node.http_address().expect("it has a door");
    let pay = async |by: &str, key: u64| {
        let who =
            if by.is_empty() { String::new() } else { format!("authorization: Bearer {by}-0123456789abcdef\r\n") };
        count(&door, "kept_counter", &format!("{who}idempotency-key: {key}\r\n"), 1).await
    };
    let mut paid = 0;
    for (by, least) in [("ada", 15), ("", 7), ("bob", 3)] {
        let before = paid;
        let refused = loop {
            let answer = pay(by, paid).await;
            if answer.status != 200 {
                break answer;
            }
            paid += 1;
            assert_eq!(answer.body, paid.to_string(), "each runs once, and what is refused never");
        };
        let kept = paid - before;
        assert!((least..3 * least).contains(&kept), "{by:?} has {kept} answers kept");
        let problem = refused.problem(503, "overloaded");
        assert_eq!(problem["may_have_run"], false);
        let detail = problem["detail"].as_str().unwrap_or_default();
        let named = ["this principal's", "`answers_bytes_max`", "`answers_keep`", "`[reliable]`"];
        assert!(named.iter().all(|named| detail.contains(named)), "{detail}");
        assert_eq!(pay(by, before).await.body, (before + 1).to_string(), "an old key is answered");
    }
    node.stop().await;
}
