//! The stage, at a node's door.

use std::time::Duration;

use crate::client::{Events, call, get};
use crate::kinds::{node, open};

#[tokio::test]
async fn who_is_hot_is_told_at_the_door_as_many_as_are_asked_for() {
    let (node, door) = open(node()).await;
    let seen = loop {
        for key in ["a", "b", "b"] {
            call(&door, &format!("/notes/{key}/all"), "").await;
        }
        let seen = get(&door, "/-/stage?top=1").await.json();
        if seen["hot"][0]["actor"] == "notes/b" && seen["hot_left_out"] == 1 {
            break seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(seen["hot"].as_array().map(Vec::len), Some(1), "{seen}");
    assert_eq!(seen["nodes"][0]["node"], seen["hot"][0]["node"], "{seen}");
    for wrong in ["top=2001", "top=-1", "top", "of=1"] {
        get(&door, &format!("/-/stage?{wrong}")).await.problem(400, "bad-request");
    }
    let mut events = Events::open(&door, "GET", "/-/live?views=stage%3Ftop%3D1", "", "").await;
    let told = events.next().await.expect("it goes on");
    assert_eq!(told.name.as_deref(), Some("stage?top=1"));
    assert!(told.data.contains("notes/b"), "{}", told.data);
    node.stop().await;
}
