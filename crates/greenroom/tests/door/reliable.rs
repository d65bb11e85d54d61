//! Partitions, actors and parked messages of reliable actors at the door.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use greenroom::prelude::*;
use serde_json::json;

use crate::client::{Answer, get, post, raw};

/// Passes messages on.
#[derive(Default, Actor)]
struct Clerk {}

#[actor(reliable)]
impl Clerk {
    pub async fn file(&mut self, cx: &Cx, text: String) {
        CabinetRef::of(cx, "a/1").take(text).send();
    }
}

/// Cannot take anything while it is broken.
#[derive(Default, Actor)]
struct Cabinet {
    texts: Queue<String>,
}

#[actor(reliable, start = "Shut")]
impl Cabinet {
    #[on(take, state = "Shut")]
    async fn take(&mut self, cx: &Cx, text: String) {
        assert!(!BROKEN.load(Ordering::Relaxed), "the cabinet is broken");
        self.texts.push(text);
        cx.jump("Open");
    }

    #[on(take, state = "Open")]
    async fn take_more(&mut self, text: String) {
        assert!(!BROKEN.load(Ordering::Relaxed), "the cabinet is broken");
        self.texts.push(text);
    }

    pub async fn texts(&self) -> Vec<String> {
        self.texts.iter().cloned().collect()
    }
}

static BROKEN: AtomicBool = AtomicBool::new(true);

/// What is parked, once it is so many.
async fn parked(door: &str, count: usize) -> Vec<serde_json::Value> {
    for _ in 0..500 {
        let shown = get(door, "/-/reliable/parked").await.json();
        let parked = shown["parked"].as_array().expect("a list").clone();
        if parked.len() == count {
            return parked;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there are never {count} parked messages");
}

async fn wish(door: &str, verb: &str, parked: &serde_json::Value) -> Answer {
    let slot = parked["slot"].as_str().expect("it lies somewhere");
    let path = format!("/-/reliable/{}/{verb}/{slot}", parked["partition"]);
    raw(door, &post(&path, "", "")).await
}

#[tokio::test]
async fn a_message_that_fails_is_parked_shown_and_retried_or_dropped() {
    let builder = Node::builder().http("127.0.0.1:0").journal("memory:").register::<Clerk>().register::<Cabinet>();
    let builder = builder.configure(|config| {
        config.reliable.partitions = 4;
        config.history.insert("cabinet".to_owned(), 4);
    });
    let node = builder.start().await.unwrap();
    let door = node.http_address().unwrap();
    let clerk = ClerkRef::of(&node, "c");
    for text in ["one", "two"] {
        clerk.file(text).await.unwrap();
    }
    let shown = parked(&door, 2).await;
    assert_eq!((&shown[0]["to"], &shown[0]["method"]), (&json!("cabinet/a/1"), &json!("take")));
    assert_eq!(shown[0]["from"], "clerk/c");
    assert!(shown[0]["error"].as_str().expect("it says why").contains("the cabinet is broken"));

    BROKEN.store(false, Ordering::Relaxed);
    assert_eq!(wish(&door, "retry", &shown[0]).await.status, 200);
    assert_eq!(wish(&door, "drop", &shown[1]).await.status, 200);
    parked(&door, 0).await;
    assert_eq!(CabinetRef::of(&node, "a/1").texts().await.unwrap(), ["one"]);
    let again = wish(&door, "retry", &shown[0]).await;
    assert!(again.status != 200 && again.body.contains("no message is parked"), "{again:?}");

    let actor = get(&door, "/-/reliable/actor/cabinet/a%2F1").await.json();
    assert_eq!((&actor["actor"], &actor["state"]), (&json!("cabinet/a/1"), &json!("Open")), "{actor}");
    assert_eq!((&actor["fields"]["texts"], &actor["in_memory"]), (&json!(["one"]), &json!(true)), "{actor}");
    let last = actor["history"].as_array().and_then(|history| history.last()).expect("its last turns are kept");
    assert_eq!(last["method"], "texts", "{actor}");

    let partitions = get(&door, "/-/reliable").await.json();
    let partitions = partitions["partitions"].as_array().expect("a list").clone();
    assert_eq!(partitions.len(), 4);
    assert!(partitions.iter().all(|partition| partition["node"].is_string()), "{partitions:?}");
    node.stop().await;
}
