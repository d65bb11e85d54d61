//! What actors have stored, listed, shown and changed at the door.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Answer, call, get, post, raw};
use crate::kinds::open;

#[derive(Default, Serialize, Deserialize, Actor)]
struct Account {
    balance: i64,
    #[serde(default)]
    owner: Stored<Owner>,
}

#[derive(Default, Serialize, Deserialize)]
struct Owner {
    name: String,
}

impl State for Owner {}

#[actor(persistent)]
impl Account {
    pub async fn deposit(&mut self, cx: &Cx, amount: i64) -> Result<i64, StateError> {
        self.balance += amount;
        cx.save(self).await?;
        Ok(self.balance)
    }

    pub async fn rename(&mut self, cx: &Cx, name: String) -> Result<(), StateError> {
        self.owner.name = name;
        self.owner.save(cx).await
    }

    pub async fn read(&self) -> (i64, String) {
        (self.balance, self.owner.name.clone())
    }
}

async fn account() -> (Node, String) {
    open(Node::builder().http("127.0.0.1:0").configure(|config| config.shards = 2).register::<Account>()).await
}

async fn change(door: &str, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    raw(door, request.as_bytes()).await
}

async fn shown(door: &str, path: &str) -> Value {
    let answer = get(door, path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn states_are_listed_page_by_page_and_one_is_shown_with_its_value() {
    let (node, door) = account().await;
    for key in ["a", "b", "c/d"] {
        call(&door, &format!("/account/{}/deposit", key.replace('/', "%2F")), r#"{"amount":7}"#).await;
    }
    call(&door, "/account/a/rename", r#"{"name":"ada"}"#).await;
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = shown(&door, &format!("/-/state?prefix=account%2F&limit=2{after}")).await;
        let keys = page["keys"].as_array().expect("a list");
        names.extend(
            keys.iter().map(|one| format!("{} {}", one["actor"].as_str().unwrap(), one["field"].as_str().unwrap())),
        );
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(names, ["account/a owner", "account/a self", "account/b self", "account/c/d self"]);
    let one = shown(&door, "/-/state/account/self/c%2Fd").await;
    assert_eq!((&one["value"]["balance"], &one["type_version"]), (&7.into(), &1.into()), "{one}");
    assert_eq!((&one["active_on"], &one["writer"]["sequence"]), (&node.name().into(), &1.into()), "{one}");
    let raw = one["raw"].as_str().expect("digits");
    assert_eq!(one["bytes"].as_u64(), Some(raw.len() as u64 / 2));
    assert_eq!(shown(&door, "/-/state/account/owner/a").await["value"]["name"], "ada");
    get(&door, "/-/state/account/self/nobody").await.problem(404, "no-such-state");
    get(&door, "/-/state?limit=0").await.problem(400, "bad-request");
    get(&door, "/-/state?store=other").await.problem(400, "bad-request");
    node.stop().await;
}

#[tokio::test]
async fn a_state_is_changed_as_it_was_seen_and_only_while_its_actor_is_not_active() {
    let (node, door) = account().await;
    let path = "/-/state/account/self/a";
    call(&door, "/account/a/deposit", r#"{"amount":7}"#).await;
    let seen = shown(&door, path).await;
    let matches = format!("if-match: {}\r\n", seen["version"].as_str().expect("a version"));
    let mut value = seen["value"].clone();
    value["balance"] = 100.into();
    let value = value.to_string();
    change(&door, "PUT", path, &matches, &value).await.problem(409, "still-active");
    change(&door, "PUT", path, "", &value).await.problem(400, "bad-request");
    change(&door, "PUT", path, &matches, r#"{"balance":"much"}"#).await.problem(400, "bad-request");
    let browser = format!("{matches}origin: http://localhost\r\n");
    for method in ["PUT", "DELETE"] {
        change(&door, method, path, &browser, &value).await.problem(403, "unnamed-change");
        let elsewhere = format!("{matches}origin: http://evil.example\r\ngreenroom-change: x\r\n");
        change(&door, method, path, &elsewhere, &value).await.problem(403, "other-site");
    }
    let ends = format!("{path}?deactivate=true");
    change(&door, "PUT", &ends, "if-match: 0\r\n", &value).await.problem(412, "changed-meanwhile");
    assert_eq!(call(&door, "/account/a/read", "").await.body, r#"[7,""]"#, "nothing was written");
    let written = change(&door, "PUT", &ends, &matches, &value).await;
    assert_eq!(written.status, 200, "{written:?}");
    let (before, now) = (&seen["writer"], &shown(&door, path).await["writer"]);
    assert_eq!(now["epoch"], before["epoch"], "an activation that comes meanwhile is not ended by it");
    let number = |wrote: &Value| wrote["number"].as_str().expect("a number").to_owned();
    assert_ne!(number(now), number(before), "none takes it for a write of its own");
    assert_ne!(number(now), "0".repeat(16), "it names a writer");
    assert_eq!(call(&door, "/account/a/read", "").await.body, r#"[100,""]"#);
    change(&door, "PUT", &ends, &matches, &value).await.problem(412, "changed-meanwhile");
    // Another one, where nothing was.
    let path = "/-/state/account/owner/a?deactivate=true";
    change(&door, "PUT", path, "if-none-match: *\r\n", r#"{"name":"ada"}"#).await.json();
    change(&door, "PUT", path, "if-none-match: *\r\n", r#"{"name":"bob"}"#).await.problem(412, "changed-meanwhile");
    assert_eq!(call(&door, "/account/a/read", "").await.body, r#"[100,"ada"]"#);
    let version = shown(&door, "/-/state/account/owner/a").await["version"].as_str().unwrap().to_owned();
    assert_eq!(change(&door, "DELETE", path, &format!("if-match: \"{version}\"\r\n"), "").await.status, 200);
    assert_eq!(call(&door, "/account/a/read", "").await.body, r#"[100,""]"#);
    let events = get(&door, "/-/events?subject=account%2Fa").await.body;
    for what in ["the state self of account/a is written", "the state owner of account/a is removed"] {
        assert!(events.contains(what), "{what}: {events}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_activation_that_meets_such_a_change_goes_on_with_it() {
    let (node, door) = account().await;
    let path = "/-/state/account/self/a?deactivate=true";
    assert_eq!(change(&door, "PUT", path, "if-none-match: *\r\n", r#"{"balance":1,"owner":null}"#).await.status, 200);
    assert_eq!(
        call(&door, "/account/a/deposit", r#"{"amount":2}"#).await.body,
        "3",
        "its first activation has an epoch above"
    );
    node.stop().await;
}

#[tokio::test]
async fn an_actor_is_deactivated_by_its_name_wherever_it_is() {
    let (node, door) = account().await;
    call(&door, "/account/a/read", "").await;
    let ended = raw(&door, &post("/-/actors/account/a/deactivate", "", "")).await;
    assert_eq!((ended.status, &ended.json()["was_on"]), (202, &node.name().into()), "{ended:?}");
    while node.activations() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let again = raw(&door, &post("/-/actors/account/a/deactivate", "", "")).await;
    assert_eq!((again.status, &again.json()["was_on"]), (202, &Value::Null), "{again:?}");
    raw(&door, &post("/-/actors/nothing/a/deactivate", "", "")).await.problem(404, "unknown-kind");
    node.stop().await;
}
