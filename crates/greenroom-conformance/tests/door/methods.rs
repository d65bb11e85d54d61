//! What a node counts and times of its actors' methods.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{call, get};
use crate::kinds::{NoteError, NotesRef, node, open};

async fn method(door: &str, kind: &str, method: &str) -> Value {
    let said = get(door, &format!("/-/methods?kind={kind}")).await.json();
    let methods = said["methods"].as_array().expect("a list");
    methods.iter().find(|one| one["method"] == method).cloned().unwrap_or_default()
}

#[tokio::test]
async fn turns_are_counted_by_method_and_by_how_they_failed() {
    let (node, door) = open(node()).await;
    for _ in 0..7 {
        call(&door, "/notes/a/add", r#"{"text":"a line","times":1}"#).await;
    }
    call(&door, "/notes/a/add", r#"{"text":"a line that is too long","times":1}"#).await.problem(422, "actor-error");
    call(&door, "/notes/a/fall_over", "").await.problem(500, "panicked");
    let added = method(&door, "notes", "add").await;
    assert_eq!((&added["turns"], &added["failed"]["error"]), (&8.into(), &1.into()), "{added}");
    let fell = method(&door, "notes", "fall_over").await;
    assert_eq!((&fell["turns"], &fell["failed"]["broken"]), (&1.into(), &1.into()), "{fell}");
    let timed: u64 = added["run"]["buckets"].as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert!((1..=8).contains(&timed), "each that is timed stands for those before it: {added}");
    let metrics = get(&door, "/metrics").await.body;
    for line in [
        "greenroom_method_turns_total{kind=\"notes\",method=\"add\"} 8",
        "greenroom_turn_seconds_bucket{kind=\"notes\",method=\"fall_over\",le=\"+Inf\"} ",
        "greenroom_turns_failed_total{kind=\"notes\",method=\"add\",class=\"error\"} 1",
        "greenroom_turns_failed_total{kind=\"notes\",method=\"fall_over\",class=\"broken\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    assert_eq!(get(&door, "/-/methods?kinds=notes").await.status, 400);
    assert_eq!(
        get(&door, "/-/methods").await.json()["methods"].as_array().unwrap().len(),
        2,
        "what was never called is left out"
    );
    node.stop().await;
}

#[tokio::test]
async fn what_waits_in_a_mailbox_and_what_finds_no_room_there_is_told() {
    let (node, door) = open(node()).await;
    let doze = |ms: u64| {
        let door = door.clone();
        tokio::spawn(async move { call(&door, "/narrow/a/doze", &format!("{{\"ms\":{ms}}}")).await.status })
    };
    let first = doze(3_000);
    while method(&door, "narrow", "doze").await["turns"] != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (one, other) = (doze(1), doze(1));
    let answers = [first.await.unwrap(), one.await.unwrap(), other.await.unwrap()];
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 2, "one of the two found no room: {answers:?}");
    let dozed = method(&door, "narrow", "doze").await;
    assert_eq!((&dozed["turns"], &dozed["failed"]["refused"]), (&2.into(), &1.into()), "{dozed}");
    assert!(dozed["run"]["max"].as_f64() >= Some(3.0), "{dozed}");
    assert!(dozed["mailbox"]["max"].as_f64() >= Some(0.1), "{dozed}");
    node.stop().await;
}

#[tokio::test]
async fn turns_that_failed_and_turns_that_were_slow_are_kept_for_a_look() {
    let (node, door) = open(node()).await;
    call(&door, "/notes/a/add", r#"{"text":"a line","times":1}"#).await;
    for key in ["a", "b"] {
        let path = format!("/notes/{key}/add");
        call(&door, &path, r#"{"text":"a line that is too long","times":1}"#).await.problem(422, "actor-error");
    }
    call(&door, "/notes/a/fall_over", "").await.problem(500, "panicked");
    call(&door, "/narrow/a/doze", r#"{"ms":50}"#).await;
    let failed = get(&door, "/-/turns?outcome=failed").await.json();
    let turns = failed["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 3, "what went well is not among them: {failed}");
    let of = |actor: &str, method: &str| turns.iter().find(|turn| turn["actor"] == actor && turn["method"] == method);
    let fell = of("notes/a", "fall_over").unwrap();
    assert_eq!((&fell["outcome"], &fell["node"]), (&"broken".into(), &failed["node"]), "{fell}");
    let added = of("notes/b", "add").unwrap();
    assert!(added["outcome"] == "error" && added["error"].is_string() && added["at"].is_u64(), "{added}");
    let group = &failed["groups"][0];
    assert_eq!((&group["method"], &group["count"]), (&"add".into(), &2.into()), "the largest group is first: {failed}");
    let some = get(&door, "/-/turns?kind=notes&method=fall_over&seconds=600").await.json();
    assert_eq!(some["turns"].as_array().unwrap().len(), 1, "{some}");
    let slow = get(&door, "/-/turns?outcome=slow&kind=narrow").await.json();
    let dozed = &slow["turns"][0];
    assert_eq!((&dozed["actor"], &dozed["outcome"]), (&"narrow/a".into(), &"slow".into()), "{slow}");
    assert!(dozed["ran"].as_f64() >= Some(0.04), "{slow}");
    for wrong in ["outcome=good", "seconds=-1", "kinds=notes", "kind"] {
        get(&door, &format!("/-/turns?{wrong}")).await.problem(400, "bad-request");
    }
    node.stop().await;
}

/// Passes on what notes refuse.
#[derive(Default, Actor)]
struct Clerk {}

#[actor]
impl Clerk {
    pub async fn write(&mut self, cx: &Cx) -> Result<usize, NoteError> {
        match NotesRef::of(cx, cx.key()).add("a line that is too long".to_owned(), 1).await {
            Err(CallError::Actor(refused)) => Err(refused),
            other => Ok(other.expect("it answers")),
        }
    }
}

/// Is saved before it answers.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Archive {
    looks: u64,
}

#[actor(persistent, save = "turn")]
impl Archive {
    pub async fn look(&mut self) -> Result<u64, NoteError> {
        self.looks += 1;
        Err(NoteError::TooLong { max: 0 })
    }
}

#[tokio::test]
async fn a_turn_that_answers_an_error_is_counted_once() {
    let node = node().register::<Clerk>().register::<Archive>().state_store("", Arc::new(MemoryStore::default()));
    let (node, door) = open(node).await;
    // Some clerks are on the same thread as their notes, and others are not.
    let keys = ["a", "b", "c", "d", "e", "f"];
    for key in keys {
        call(&door, &format!("/clerk/{key}/write"), "").await.problem(422, "actor-error");
        call(&door, &format!("/archive/{key}/look"), "").await.problem(422, "actor-error");
    }
    for (kind, named) in [("clerk", "write"), ("notes", "add"), ("archive", "look")] {
        let counted = method(&door, kind, named).await;
        assert_eq!((&counted["turns"], &counted["failed"]["error"]), (&6.into(), &6.into()), "{counted}");
    }
    let failed = get(&door, "/-/turns?outcome=failed").await.json();
    let turns = failed["turns"].as_array().unwrap();
    let mut actors: Vec<&str> = turns.iter().map(|turn| turn["actor"].as_str().unwrap()).collect();
    actors.sort_unstable();
    let once: Vec<String> =
        ["archive", "clerk", "notes"].iter().flat_map(|kind| keys.map(|key| format!("{kind}/{key}"))).collect();
    assert_eq!(actors, once, "{failed}");
    node.stop().await;
}
