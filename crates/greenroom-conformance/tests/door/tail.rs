//! Turns as they end.

use serde_json::Value;

use crate::client::{Events, call, get, raw};
use crate::kinds::{NotesRef, node, open};

async fn follow(door: &str, which: &str) -> Events {
    let mut events = Events::open(door, "GET", &format!("/-/tail?{which}"), "", "").await;
    assert!(events.head.contains("200 OK"), "{}", events.head);
    let (name, said) = next(&mut events).await;
    assert_eq!((&*name, said["silent"].as_array().map(Vec::len)), ("following", Some(0)), "{said}");
    events
}

async fn next(events: &mut Events) -> (String, Value) {
    let event = events.next().await.expect("it goes on");
    (event.name.unwrap_or_default(), serde_json::from_str(&event.data).expect("JSON"))
}

#[tokio::test]
async fn turns_are_told_as_they_end_with_how_they_went() {
    let (node, door) = open(node()).await;
    call(&door, "/notes/before/all", "").await;
    let mut events = follow(&door, "kind=notes").await;
    let long = r#"{"text":"a line that is too long","times":1}"#;
    for (method, body, outcome, error) in [
        ("add", r#"{"text":"a line","times":1}"#, "ok", None),
        ("add", long, "error", Some(r#"{"TooLong":{"max":10}}"#)),
        ("doze", r#"{"ms":5}"#, "ok", None),
        ("fall_over", "", "broken", Some("as asked")),
        ("all", "", "ok", None),
    ] {
        call(&door, &format!("/notes/a/{method}"), body).await;
        let (name, turn) = next(&mut events).await;
        assert_eq!((&*name, &turn["actor"], &turn["method"]), ("turn", &"notes/a".into(), &method.into()), "{turn}");
        assert_eq!((&turn["outcome"], turn["error"].as_str()), (&outcome.into(), error), "{turn}");
        assert!(turn["ran"].as_f64() >= Some(if method == "doze" { 0.005 } else { 0.0 }), "{turn}");
    }
    node.stop().await;
}

#[tokio::test]
async fn only_what_is_meant_is_told() {
    let (node, door) = open(node()).await;
    let mut slow = follow(&door, "over=5ms").await;
    let mut failed = follow(&door, "outcome=failed&key=a%2Fb").await;
    for path in ["/notes/a/all", "/notes/a/fall_over", "/notes/a%2Fb/all", "/notes/a%2Fb/fall_over"] {
        call(&door, path, "").await;
    }
    call(&door, "/notes/a/doze", r#"{"ms":5}"#).await;
    let (_, turn) = next(&mut failed).await;
    assert_eq!((&turn["actor"], &turn["method"]), (&"notes/a/b".into(), &"fall_over".into()));
    loop {
        let (_, turn) = next(&mut slow).await;
        assert!(turn["ran"].as_f64() >= Some(0.005), "{turn}");
        if turn["method"] == "doze" {
            break;
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn what_is_not_shown_is_counted() {
    let (node, door) = open(node()).await;
    let mut events = follow(&door, "kind=notes&method=all").await;
    let (mut ended, mut shown, mut missed) = (0, 0, 0);
    while missed == 0 {
        for _ in 0..500 {
            NotesRef::of(&node, format!("{}", ended % 7)).all().await.expect("it is called");
            ended += 1;
        }
        while shown + missed < ended {
            match next(&mut events).await {
                (name, _) if name == "turn" => shown += 1,
                (name, said) if name == "missed" => missed += said["count"].as_u64().expect("a count"),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(shown + missed, ended, "each that has ended is shown or counted");
    node.stop().await;
}

#[tokio::test]
async fn who_asks_for_something_else_is_told_what_there_is() {
    let (node, door) = open(node()).await;
    get(&door, "/-/tail").await.problem(406, "only-events");
    for wrong in ["kin=notes", "outcome=bad", "over=long", "kind"] {
        let request = format!(
            "GET /-/tail?{wrong} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n"
        );
        raw(&door, request.as_bytes()).await.problem(400, "bad-request");
    }
    node.stop().await;
}
