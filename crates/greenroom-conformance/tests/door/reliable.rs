//! Partitions, actors and parked messages of reliable actors at the door.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom::prelude::*;
use greenroom_store::{Outlet, Output, Undelivered};
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
    let failed = raw(&door, &post("/cabinet/b/take", "", r#"{"text":"no"}"#)).await.problem(500, "not-committed");
    assert_eq!(failed["may_have_run"], false, "its turn is not committed: {failed}");
    assert!(failed["detail"].as_str().is_some_and(|detail| detail.contains("the cabinet is broken")), "{failed}");
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

/// Sends outputs.
#[derive(Default, Actor)]
struct Press {}

#[actor(reliable)]
impl Press {
    pub async fn print(&mut self, cx: &Cx, text: String) {
        cx.output("readers", &text).expect("there is such an outlet");
    }
}

/// Remembers what came, and refuses all that has a word.
#[derive(Debug)]
struct Readers {
    disliked: Mutex<&'static str>,
    came: Mutex<Vec<(String, String)>>,
}

impl Outlet for Readers {
    fn deliver(&self, output: Output) -> BoxFuture<'_, Result<(), Undelivered>> {
        Box::pin(async move {
            let body = String::from_utf8_lossy(&output.body).into_owned();
            let disliked = body.contains(*self.disliked.lock().unwrap());
            self.came.lock().unwrap().push((output.key, body));
            if disliked { Err(Undelivered::Refused("nobody wants to read that".to_owned())) } else { Ok(()) }
        })
    }
}

#[tokio::test]
async fn an_output_that_is_refused_again_and_again_is_parked_shown_and_retried_under_its_key_or_dropped() {
    let readers = Arc::new(Readers { disliked: Mutex::new("bad"), came: Mutex::default() });
    let builder = Node::builder().http("127.0.0.1:0").journal("memory:").register::<Press>();
    let builder = builder.outlet("readers", readers.clone()).configure(|config| config.reliable.partitions = 4);
    let node = builder.start().await.unwrap();
    let door = node.http_address().unwrap();
    let press = PressRef::of(&node, "p");
    for text in ["good", "bad", "bad again", "good again"] {
        press.print(text).await.unwrap();
    }
    let mut shown = Vec::new();
    for _ in 0..60 {
        shown = get(&door, "/-/reliable/parked").await.json()["parked"].as_array().expect("a list").clone();
        if shown.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!((&shown[0]["from"], &shown[0]["what"]), (&json!("press/p"), &json!("greenroom.outlet/readers")));
    assert_eq!(shown[0]["error"], "nobody wants to read that");
    let came = |text: &str| {
        let came = readers.came.lock().unwrap().clone();
        came.into_iter().filter(|(_, body)| *body == format!("{text:?}")).map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(
        (came("bad").len(), came("bad again").len()),
        (10, 1),
        "behind one that was refused, none is tried for long"
    );
    for _ in 0..500 {
        if came("good again").len() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(came("good again").len(), 1, "what comes behind it leaves");
    let report = get(&door, "/-/reliable").await.json();
    let held: u64 =
        report["partitions"].as_array().into_iter().flatten().filter_map(|row| row["parked"].as_u64()).sum();
    assert_eq!(held, 2, "{report}");

    *readers.disliked.lock().unwrap() = "nothing";
    assert_eq!(wish(&door, "retry", &shown[0]).await.status, 200);
    assert_eq!(wish(&door, "drop", &shown[1]).await.status, 200);
    parked(&door, 0).await;
    let keys = came("bad");
    assert!(keys.len() == 11 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(came("bad again").len(), 1);
    node.stop().await;
}
