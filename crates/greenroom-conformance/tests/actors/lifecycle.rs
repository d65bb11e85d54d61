//! Activation and deactivation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::prelude::*;

use super::node;

type Log = Arc<Mutex<Vec<String>>>;

struct Guest {
    log: Log,
    calls: u64,
}

impl Actor for Guest {}

#[actor(idle = "300ms")]
impl Guest {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.log.lock().unwrap().push(format!("{} comes", cx.key()));
        if cx.key().starts_with("unwanted") { Err("not today".into()) } else { Ok(()) }
    }

    async fn deactivating(&mut self, cx: &Cx, why: Why) {
        self.log.lock().unwrap().push(format!("{} goes: {why:?}", cx.key()));
    }

    pub async fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub async fn leave(&mut self, cx: &Cx) -> u64 {
        cx.deactivate();
        cx.epoch()
    }
}

async fn guests() -> (Node, Log) {
    let log = Log::default();
    let theirs = log.clone();
    let node = node(|builder| builder.register_with(move |_| Guest { log: theirs.clone(), calls: 0 })).await;
    (node, log)
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn racing_first_calls_activate_once() {
    let (node, log) = guests().await;
    let guest = GuestRef::of(&node, "ada");
    let calls: Vec<_> = (0..50).map(|_| tokio::spawn(guest.call().into_future())).collect();
    let mut counts = Vec::new();
    for call in calls {
        counts.push(call.await.unwrap().unwrap());
    }
    counts.sort_unstable();
    assert_eq!(counts, (1..=50).collect::<Vec<_>>());
    assert_eq!(*log.lock().unwrap(), ["ada comes"]);
}

#[tokio::test]
async fn an_idle_activation_goes_and_the_next_call_begins_anew() {
    let (node, log) = guests().await;
    let guest = GuestRef::of(&node, "ada");
    assert_eq!(guest.call().await, Ok(1));
    until(|| node.activations() == 0).await;
    assert_eq!(*log.lock().unwrap(), ["ada comes", "ada goes: Idle"]);
    assert_eq!(guest.call().await, Ok(1));
}

#[tokio::test]
async fn an_actor_may_ask_to_go_and_comes_back_under_a_higher_epoch() {
    let (node, log) = guests().await;
    let guest = GuestRef::of(&node, "ada");
    let first = guest.leave().await.unwrap();
    let second = guest.leave().await.unwrap();
    assert!(second > first);
    until(|| log.lock().unwrap().len() == 4).await;
}

#[tokio::test]
async fn a_failed_activation_tells_all_who_wait_and_is_tried_again() {
    let (node, log) = guests().await;
    let guest = GuestRef::of(&node, "unwanted");
    for _ in 0..2 {
        let refused = guest.call().await;
        let Err(CallError::Refused(Refusal::Activation { message })) = refused else { panic!("{refused:?}") };
        assert_eq!(message, "not today");
    }
    assert_eq!(log.lock().unwrap().len(), 2);
    assert_eq!(node.activations(), 0);
}

#[derive(Default, Actor)]
struct Grump {}

#[actor]
impl Grump {
    async fn activated(&mut self) -> Result<(), String> {
        Err("no".into())
    }

    pub async fn call(&self) {}
}

#[tokio::test]
async fn an_activation_that_fails_without_waiting_says_so_too() {
    let node = node(|builder| builder.register::<Grump>()).await;
    let refused = GrumpRef::of(&node, "x").call().await;
    assert_eq!(refused, Err(CallError::Refused(Refusal::Activation { message: "no".into() })));
}

#[tokio::test]
async fn stopping_a_node_runs_the_last_hooks() {
    let (node, log) = guests().await;
    for key in ["ada", "bob"] {
        GuestRef::of(&node, key).call().await.unwrap();
    }
    node.stop().await;
    let mut log = log.lock().unwrap().clone();
    log.sort();
    assert_eq!(log, ["ada comes", "ada goes: Stopping", "bob comes", "bob goes: Stopping"]);
}
