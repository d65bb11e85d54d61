//! Pages that are told again each second.

use serde_json::Value;

use crate::client::{Events, call, get, raw};
use crate::kinds::{node, open};

/// The next event, with what it says.
async fn next(events: &mut Events) -> (String, Value) {
    let event = events.next().await.expect("it goes on");
    (event.name.unwrap_or_default(), serde_json::from_str(&event.data).expect("JSON"))
}

#[tokio::test]
async fn pages_are_told_as_they_are_now_each_by_its_name() {
    let (node, door) = open(node()).await;
    let views = "/-/live?views=overview%3Fseconds%3D60,inspect/notes/a%252Fb,inspect/no_such_kind/x";
    let mut events = Events::open(&door, "GET", views, "", "").await;
    assert!(events.head.contains("200 OK") && events.head.contains("text/event-stream"), "{}", events.head);
    let (name, seen) = next(&mut events).await;
    assert_eq!((&*name, &seen["totals"]["activations"]), ("overview?seconds=60", &0.into()), "{seen}");
    assert_eq!(next(&mut events).await.1["state"], "not active", "looking activates nobody");
    let (name, said) = next(&mut events).await;
    assert_eq!((&*name, &said["problem"]["status"]), ("problem", &404.into()), "{said}");
    assert_eq!(said["view"], "inspect/no_such_kind/x");
    call(&door, "/notes/a%2Fb/add", r#"{"text":"a line","times":1}"#).await;
    loop {
        let (name, said) = next(&mut events).await;
        if name == "inspect/notes/a%2Fb" && said["state"] == "ready" {
            break;
        }
    }
    node.stop().await;
    // The door says that it stops, and then nothing more.
    while let Some(event) = events.next().await {
        assert!(event.name.as_deref() != Some("end"), "{event:?}");
    }
}

#[tokio::test]
async fn only_pages_are_told_and_only_to_who_takes_events() {
    let (node, door) = open(node()).await;
    get(&door, "/-/live?views=overview").await.problem(406, "only-events");
    for wrong in ["", "?views=", "?views=drain/a", "?views=live", "?views=metrics", "?views=notes/a/add"] {
        let request = format!(
            "GET /-/live{wrong} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n"
        );
        raw(&door, request.as_bytes()).await.problem(400, "bad-request");
    }
    let other = "GET /-/live?views=overview HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nsec-fetch-site: cross-site\r\nconnection: close\r\n\r\n";
    raw(&door, other.as_bytes()).await.problem(403, "other-site");
    node.stop().await;
}
