//! Spawned actors, through the doors of two nodes.

use greenroom::prelude::*;
use serde_json::json;

use crate::client::{call, get};

/// Spawned only: neither node has registered it.
struct Session {
    said: Vec<String>,
}

impl Actor for Session {}

#[actor]
impl Session {
    pub async fn say(&mut self, text: String) -> usize {
        self.said.push(text);
        self.said.len()
    }
}

#[tokio::test]
async fn a_spawned_actor_is_listed_and_called_by_its_key_through_any_door_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let table = format!("sqlite:{}", folder.path().join("table.db").display());
    let start = |name: &str| Node::builder().name(name).table(table.as_str()).http("127.0.0.1:0").start();
    let (a, b) = (start("a").await.unwrap(), start("b").await.unwrap());
    let (near, far) = (a.http_address().unwrap(), b.http_address().unwrap());
    let pid = a.spawn(Session { said: Vec::new() }).await.unwrap();

    let path = format!("/session/{}/say", pid.key());
    assert_eq!(call(&near, &path, r#"{"text":"hi"}"#).await.body, "1");
    assert_eq!(call(&far, &path, r#"{"text":"there"}"#).await.body, "2");
    let listed = get(&near, "/-/pids").await.json();
    assert_eq!(listed["node"], "a");
    assert_eq!(listed["spawned"][0]["actor"], pid.id().to_string());
    assert_eq!(listed["spawned"][0]["parent"], json!(null));
    assert_eq!(get(&near, "/-/status").await.json()["spawned"], 1);
    let problem = call(&near, &format!("/session/{}/shout", pid.key()), "{}").await.problem(404, "unknown-method");
    assert_eq!(problem["method"], "shout");

    pid.stop().await.unwrap();
    for door in [&near, &far] {
        let problem = call(door, &path, r#"{"text":"hi"}"#).await.problem(410, "dead-letter");
        assert_eq!(problem["may_have_run"], false);
        // What nodes ask of each other is not for doors, whatever the key.
        let keeper = pid.key().rsplit_once('.').map(|(shard, _)| format!("{shard}.0")).unwrap();
        call(door, &format!("/greenroom.keeper/{keeper}/stop"), r#"{"number":1,"why":"Killed"}"#)
            .await
            .problem(404, "unknown-kind");
    }
    call(&near, "/session/~nothing/say", "{}").await.problem(400, "invalid-key");
    assert_eq!(get(&near, "/-/pids").await.json()["spawned"], json!([]));
    a.stop().await;
    b.stop().await;
}
