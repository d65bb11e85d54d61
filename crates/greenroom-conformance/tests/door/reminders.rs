//! Reminders at the door: shown and cancelled.

use std::time::Duration;

use greenroom::prelude::*;
use serde_json::json;

use crate::client::{get, post, raw};

/// Is reminded.
#[derive(Default, Actor)]
struct Plant {}

#[actor]
impl Plant {
    pub async fn water(&mut self, litres: u32) -> u32 {
        litres
    }
}

#[tokio::test]
async fn reminders_are_shown_and_cancelled() {
    let node = Node::builder().http("127.0.0.1:0").register::<Plant>().start().await.unwrap();
    let door = node.http_address().unwrap();
    assert_eq!(get(&door, "/-/reminders").await.json()["reminders"], json!([]));
    let fern = PlantRef::of(&node, "a/fern");
    fern.water(1).every(Duration::from_secs(3600)).await.unwrap();
    PlantRef::of(&node, "moss").water(2).cron("0 9 * * 1-5").named("at nine").await.unwrap();

    let listed = get(&door, "/-/reminders").await.json();
    assert_eq!(listed["reminders"].as_array().map(Vec::len), Some(2));
    let listed = get(&door, "/-/reminders/plant/a%2Ffern").await.json();
    let shown = &listed["reminders"][0];
    assert_eq!((&shown["name"], &shown["schedule"]), (&json!("water"), &json!("every 3600s")));
    assert_eq!((&shown["actor"], &shown["method"]), (&json!("plant/a/fern"), &json!("water")));
    assert!(shown["due_unix_seconds"].as_f64() > Some(1.7e9));
    assert_eq!(get(&door, "/-/status").await.json()["reminders"]["ranges"], 128);

    let delete = |path: &str| format!("DELETE {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    for existed in [true, false] {
        let answer = raw(&door, delete("/-/reminders/plant/moss/at%20nine").as_bytes()).await;
        assert_eq!(answer.json(), json!({ "existed": existed }));
    }
    get(&door, "/-/reminders/plant/moss/at%20nine").await.problem(405, "wrong-method");
    get(&door, "/-/reminders/plant/moss/at%20nine/retry").await.problem(405, "wrong-method");
    let again = raw(&door, &post("/-/reminders/plant/moss/at%20nine/retry", "", "")).await;
    assert_eq!(again.json(), json!({ "existed": false }), "what is cancelled stays cancelled");
    assert_eq!(get(&door, "/-/reminders/plant/moss").await.json()["reminders"], json!([]));
    let left = node.reminders_of(fern.id()).list().await.unwrap();
    assert_eq!(left.len(), 1);
    node.stop().await;
}
