//! What each request is answered with.

use serde_json::json;

use crate::client::{call, get, post, raw};
use crate::kinds::{node, open};

#[tokio::test]
async fn a_method_is_called_by_a_json_object_and_answers_in_json() {
    let (node, door) = open(node()).await;
    let answer = call(&door, "/notes/a/add", r#"{"text":"hi","times":2}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "2"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = call(&door, "/notes/a/all", "").await;
    assert_eq!((answer.status, answer.json()), (200, json!(["hi", "hi"])));
    let answer = call(&door, "/notes/a%2Fb%20%C3%A9/all", " {} ").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "[]"));
    let answer = call(&door, "/notes/a/doze", r#"{"ms":1,"unheard_of":[1,{}]}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "null"));
    node.stop().await;
}

#[tokio::test]
async fn names_that_mean_nothing_are_404_with_near_names() {
    let (node, door) = open(node()).await;
    let problem = call(&door, "/note/a/all", "").await.problem(404, "unknown-kind");
    assert_eq!(problem["near"], json!(["notes"]));
    let problem = call(&door, "/notes/a/al", "").await.problem(404, "unknown-method");
    assert_eq!(problem["near"], json!(["all"]));
    assert_eq!(node.activations(), 0, "a wrong name activates nothing");
    let long = "x".repeat(2000);
    call(&door, &format!("/{long}/a/all"), "").await.problem(404, "unknown-kind");
    call(&door, &format!("/notes/a/{long}"), "").await.problem(404, "unknown-method");
    get(&door, "/somewhere").await.problem(404, "no-such-path");
    get(&door, "/-/problems/nothing").await.problem(404, "no-such-path");
    assert_eq!(get(&door, "/-/problems/unknown-kind").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_400_and_named() {
    let (node, door) = open(node()).await;
    let problem = call(&door, "/notes/a/add", r#"{"text":"hi","times":"two"}"#).await.problem(400, "invalid-arguments");
    assert_eq!(problem["field"], "times");
    let problem = call(&door, "/notes/a/add", r#"{"text":"hi"}"#).await.problem(400, "invalid-arguments");
    assert!(problem["detail"].as_str().unwrap().contains("times"), "{problem}");
    for body in ["[\"hi\",1]", "7", "{", "{\"text\":", "{}{}", "\u{0}", "nul"] {
        call(&door, "/notes/a/add", body).await.problem(400, "invalid-arguments");
    }
    let deep = format!("{{\"text\":{}", "[".repeat(100_000));
    call(&door, "/notes/a/add", &deep).await.problem(400, "invalid-arguments");
    call(&door, "/notes//all", "").await.problem(400, "invalid-key");
    call(&door, &format!("/notes/{}/all", "k".repeat(1025)), "").await.problem(400, "invalid-key");
    call(&door, "/notes/%ff/all", "").await.problem(400, "bad-request");
    for timeout in ["soon", "0s", "0ms", "0.0000000001ms", "-1s"] {
        let request = post("/notes/a/all", &format!("greenroom-timeout: {timeout}\r\n"), "");
        assert_eq!(raw(&door, &request).await.problem(400, "bad-request")["field"], "Greenroom-Timeout", "{timeout}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_actors_own_error_is_422_with_the_error() {
    let (node, door) = open(node()).await;
    let answer = call(&door, "/notes/a/add", r#"{"text":"a long line","times":1}"#).await;
    let problem = answer.problem(422, "actor-error");
    assert_eq!(problem["error"], json!({ "TooLong": { "max": 10 } }), "the value is an object");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("TooLong") && !detail.contains('{'), "words, and no JSON in a string: {detail}");
    let problem = call(&door, "/notes/a/ask_of_nobody", "").await.problem(422, "actor-error");
    let words = problem["error"]["message"].as_str().unwrap_or_else(|| panic!("{problem}"));
    assert!(words.starts_with("refused, nothing ran"), "what `?` made of a refusal: {words}");
    assert_eq!((problem["detail"].as_str(), &problem["error"]["may_have_run"]), (Some(words), &json!(false)));
    node.stop().await;
}

#[tokio::test]
async fn what_an_error_says_is_the_detail_beside_its_value() {
    let (node, door) = open(node()).await;
    let problem = call(&door, "/notes/a/strike", r#"{"lines":2}"#).await.problem(422, "actor-error");
    assert_eq!(problem["detail"], "there are \"only\" 0 lines; strike fewer");
    assert_eq!(problem["error"], json!({ "lines": 0 }));
    node.stop().await;
}

#[tokio::test]
async fn a_panic_is_500_and_the_next_call_finds_a_clean_actor() {
    let (node, door) = open(node()).await;
    call(&door, "/notes/a/add", r#"{"text":"hi","times":1}"#).await;
    let problem = call(&door, "/notes/a/fall_over", "").await.problem(500, "panicked");
    assert!(problem["detail"].as_str().unwrap().contains("as asked"));
    assert_eq!(call(&door, "/notes/a/all", "").await.body, "[]");
    node.stop().await;
}

#[tokio::test]
async fn a_deadline_that_passes_is_504_and_says_whether_it_may_have_run() {
    let (node, door) = open(node()).await;
    let doze = post("/notes/a/doze", "Greenroom-Timeout: 100ms\r\n", r#"{"ms":1500}"#);
    assert_eq!(raw(&door, &doze).await.problem(504, "timed-out")["may_have_run"], true);
    node.stop().await;
}

#[tokio::test]
async fn what_is_refused_for_now_is_503_with_retry_after() {
    let (node, door) = open(node()).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        let door = door.clone();
        calls.push(tokio::spawn(async move { call(&door, "/narrow/a/doze", r#"{"ms":300}"#).await }));
    }
    let mut refused = 0;
    for call in calls {
        let answer = call.await.unwrap();
        if answer.status != 200 {
            assert_eq!(answer.problem(503, "overloaded")["may_have_run"], false);
            assert_eq!(answer.header("retry-after"), Some("1"));
            refused += 1;
        }
    }
    assert!(refused > 0);
    let answer = call(&door, "/stillborn/a/touch", "").await;
    assert!(answer.problem(503, "unavailable")["detail"].as_str().unwrap().contains("no luck"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    node.stop().await;
}

#[tokio::test]
async fn other_http_methods_are_405_with_allow() {
    let (node, door) = open(node()).await;
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let answer = raw(&door, format!("{method} /notes/a/all HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await;
        answer.problem(405, "wrong-method");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
    let answer = call(&door, "/metrics", "").await;
    answer.problem(405, "wrong-method");
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    node.stop().await;
}

#[tokio::test]
async fn a_web_page_of_another_site_cannot_call() {
    let (node, door) = open(node()).await;
    for origin in ["http://evil.example", "null", "https://door.evil.example"] {
        let request = post("/notes/a/all", &format!("origin: {origin}\r\n"), "");
        raw(&door, &request).await.problem(403, "other-site");
    }
    assert_eq!(raw(&door, &post("/notes/a/all", "origin: http://localhost\r\n", "")).await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_node_tells_what_it_hosts_and_how_it_is() {
    let (node, door) = open(node()).await;
    call(&door, "/notes/a/all", "").await;
    let hosted = get(&door, "/").await.json();
    assert_eq!(hosted["hosted_here"][1]["kind"], "notes");
    let all = json!({ "name": "all", "turn": "read" });
    assert!(hosted["hosted_here"][1]["methods"].as_array().unwrap().contains(&all), "{hosted}");
    let named: Vec<_> = hosted["hosted_here"].as_array().unwrap().iter().map(|kind| kind["kind"].as_str()).collect();
    assert_eq!(named, [Some("narrow"), Some("notes"), Some("stillborn")], "only what can be called");
    let near = call(&door, "/topic/a/publish", "").await.problem(404, "unknown-kind");
    assert_eq!(near["near"], json!([]), "{near}");
    assert_eq!(get(&door, "/healthz").await.status, 200);
    assert_eq!(get(&door, "/readyz").await.status, 200);
    let metrics = get(&door, "/metrics").await.body;
    for line in [
        "greenroom_members{status=\"active\"} 1",
        "greenroom_http_requests_total{status=\"200\"} 4",
        "greenroom_table_failing 0",
        "greenroom_table_failures_total 0",
        "# TYPE greenroom_turns_total counter",
        "process_resident_memory_bytes",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let status = get(&door, "/-/status").await.json();
    assert_eq!(status["node"]["http"], json!(door));
    assert_eq!(status["node"]["ready"], true);
    assert_eq!(status["cluster"]["members"][0]["status"], "active");
    assert_eq!(status["activations"], 1);
    let table = &status["table"];
    assert_eq!((&table["store"], &table["failing"], &table["failures"]), (&json!("memory:"), &json!(null), &json!(0)));
    assert!(table["answers"].as_u64() > Some(0) && table["seconds_since_answer"].as_f64() < Some(60.0), "{table}");
    node.stop().await;
}

#[tokio::test]
async fn the_door_of_one_node_answers_for_a_kind_that_another_hosts() {
    let table = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", table.path().join("table.db").display());
    let (host, _) = open(node().table(&url).name("host")).await;
    let (front, door) = open(node().table(&url).name("front").retain_kinds(|kind| kind == "narrow")).await;
    let answer = call(&door, "/notes/a/where_is_it", "").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "\"host\""));
    let answer = call(&door, "/notes/a/add", r#"{"text":"a long line","times":1}"#).await;
    assert_eq!(answer.problem(422, "actor-error")["error"], json!({ "TooLong": { "max": 10 } }));
    let problem = call(&door, "/notes/a/strike", r#"{"lines":2}"#).await.problem(422, "actor-error");
    assert_eq!(problem["detail"], "there are \"only\" 0 lines; strike fewer", "its type is known at the other node");
    assert_eq!(problem["error"], json!({ "lines": 0 }));
    let problem = call(&door, "/notes/a/al", "").await.problem(404, "unknown-method");
    assert_eq!(problem["near"], json!(["all"]));
    let problem = call(&door, "/notes/a/add", r#"{"text":"hi","times":-1}"#).await.problem(400, "invalid-arguments");
    assert_eq!(problem["field"], "times");
    call(&door, "/notes/a/fall_over", "").await.problem(500, "panicked");
    let doze = post("/notes/a/doze", "greenroom-timeout: 100ms\r\n", r#"{"ms":1000}"#);
    raw(&door, &doze).await.problem(504, "timed-out");
    assert_eq!(get(&door, "/").await.json()["hosted_elsewhere"], json!(["notes", "stillborn"]));
    front.stop().await;
    host.stop().await;
}
