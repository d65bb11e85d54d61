//! Spawned actors: their addresses, their ends, and who hears of them.

mod addresses;
mod ends;
mod supervision;
mod watches;

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Spawnable};

/// Spawned only. Its state is lost with it.
pub(crate) struct Worker {
    count: u64,
}

impl Actor for Worker {}

impl Spawnable for Worker {
    type Args = u64;

    const SUPERVISE: Supervise = Supervise::restart();

    fn spawned(_: &Cx, count: u64) -> Result<Self, String> {
        Ok(Self { count })
    }
}

#[actor]
impl Worker {
    pub async fn add(&mut self, more: u64) -> u64 {
        self.count += more;
        self.count
    }

    pub async fn count(&self) -> u64 {
        self.count
    }

    /// Adds one after a while.
    pub async fn work(&mut self, millis: u64) -> u64 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        self.count += 1;
        self.count
    }

    pub async fn fall(&mut self) {
        panic!("it was told to");
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    /// Calls another.
    pub async fn ask(&mut self, other: Pid<Worker>) -> Result<u64, String> {
        other.add(1).await.map_err(|error| error.to_string())
    }

    /// Stops another, or itself.
    pub async fn stop_other(&mut self, other: Pid<Worker>) -> Result<(), String> {
        other.stop().await.map_err(|error| error.to_string())
    }
}

/// A virtual actor that spawns and watches. It lives where it is first called from.
#[derive(Default, Actor)]
pub(crate) struct Boss {
    heard: Vec<(String, String)>,
}

#[actor(placement = "local", idle = "2s")]
impl Boss {
    pub async fn hire(&mut self, cx: &Cx) -> Pid<Worker> {
        cx.spawn(Worker { count: 0 })
    }

    pub async fn hire_with(&mut self, cx: &Cx, supervise: Supervise) -> Pid<Worker> {
        cx.spawn_with(supervise, || Worker { count: 0 })
    }

    pub async fn hire_on(&mut self, cx: &Cx, node: String, count: u64) -> Result<Pid<Worker>, String> {
        cx.spawn_on(&node, count).await.map_err(|error| error.to_string())
    }

    pub async fn watch(&mut self, cx: &Cx, pid: Pid<Worker>) {
        cx.watch(&pid);
    }

    pub async fn unwatch(&mut self, cx: &Cx, pid: Pid<Worker>) {
        cx.unwatch(&pid);
    }

    /// Who ended, and why, as far as it was told.
    pub async fn heard(&self) -> Vec<(String, String)> {
        self.heard.clone()
    }

    pub async fn epoch(&self, cx: &Cx) -> u64 {
        cx.epoch()
    }

    pub async fn fall(&mut self) {
        panic!("it was told to");
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }

    async fn ended(&mut self, ended: Ended) {
        self.heard.push((ended.id.to_string(), format!("{:?}", ended.why)));
    }
}

/// All nodes host bosses and let others spawn workers.
pub(crate) fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Boss>().spawnable::<Worker>()
}

/// What a call of a spawned actor that is no more ends with.
pub(crate) fn is_dead<T>(result: Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Refused(Refusal::DeadLetter { .. })))
}

/// Calls again while that can help.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, CallError>>>(call: impl Fn() -> F) -> T {
    loop {
        match call().await {
            Ok(reply) => return reply,
            Err(CallError::Refused(refusal)) if refusal.retry_after().is_none() => panic!("{refusal}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits until `holds`.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 30 s: {what}");
}
