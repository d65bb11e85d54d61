//! Spawned actors over the shards of one real node, each a thread.

use std::time::Duration;

use greenroom::prelude::*;

use super::node;

/// Spawned only.
struct Worker {
    count: u64,
}

impl Actor for Worker {}

#[actor]
impl Worker {
    pub async fn add(&mut self, more: u64) -> u64 {
        self.count += more;
        self.count
    }

    /// Tells another to add, one-way, so many times.
    pub async fn pass(&mut self, other: Pid<Worker>, times: u64) {
        for _ in 0..times {
            other.add(1).send();
        }
    }

    pub async fn fall(&mut self) {
        panic!("it was told to");
    }
}

/// Watches whom it is told to.
#[derive(Default, Actor)]
struct Watcher {
    told: Vec<Why>,
}

#[actor]
impl Watcher {
    pub async fn watch(&mut self, cx: &Cx, pid: Pid<Worker>) {
        cx.watch(&pid);
    }

    pub async fn told(&self) -> Vec<String> {
        self.told.iter().map(|why| format!("{why:?}")).collect()
    }

    async fn ended(&mut self, ended: Ended) {
        self.told.push(ended.why);
    }
}

/// Watches, and does not listen.
#[derive(Default, Actor)]
struct Deaf {}

#[actor]
impl Deaf {
    pub async fn watch(&mut self, cx: &Cx, pid: Pid<Worker>) {
        cx.watch(&pid);
    }
}

async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it comes to hold");
}

#[tokio::test]
async fn messages_and_ends_cross_the_shards_of_a_node() {
    let node = node(|builder| builder.register::<Watcher>().configure(|config| config.shards = 4)).await;
    let mut pids = Vec::new();
    for _ in 0..16 {
        pids.push(node.spawn(Worker { count: 0 }).await.unwrap());
    }
    let shards: std::collections::BTreeSet<u16> = node.spawned().await.iter().map(|spawned| spawned.shard).collect();
    assert_eq!((shards.len(), node.activations()), (4, 16), "they are on all shards");
    for (at, pid) in pids.iter().enumerate() {
        pid.pass(pids[(at + 1) % pids.len()].clone(), 100).await.unwrap();
    }
    for pid in &pids {
        until(|| async { pid.add(0).await == Ok(100) }).await;
    }
    let watchers: Vec<_> = (0..4).map(|key| WatcherRef::of(&node, key)).collect();
    for watcher in &watchers {
        for pid in &pids {
            watcher.watch(pid.clone()).await.unwrap();
        }
    }
    for (at, pid) in pids.iter().enumerate() {
        match at % 2 {
            0 => pid.stop().await.unwrap(),
            _ => pid.fall().await.unwrap_err().split::<Never>().map(drop).unwrap(),
        }
    }
    for watcher in &watchers {
        until(|| async { watcher.told().await.unwrap().len() == pids.len() }).await;
        let told = watcher.told().await.unwrap();
        assert_eq!(told.iter().filter(|why| *why == "Stopped").count(), pids.len() / 2, "{told:?}");
        assert_eq!(told.iter().filter(|why| *why == "Failed").count(), pids.len() / 2, "{told:?}");
    }
    assert!(node.spawned().await.is_empty());
    node.stop().await;
}

#[tokio::test]
async fn who_watches_without_a_hook_is_told_by_a_panic() {
    let node = node(|builder| builder.register::<Deaf>()).await;
    let pid = node.spawn(Worker { count: 0 }).await.unwrap();
    let deaf = DeafRef::of(&node, "d").watch(pid.clone()).await;
    assert!(matches!(deaf, Err(CallError::Unknown(Doubt::Panicked { message })) if message.contains("has no hook")));
    node.stop().await;
    assert!(matches!(pid.add(1).await, Err(CallError::Refused(Refusal::Stopping))));
}

#[tokio::test]
async fn an_end_outside_of_all_actors_is_awaited() {
    let node = node(|builder| builder).await;
    let pid = node.spawn_with(Supervise::restart(), || Worker { count: 0 }).await.unwrap();
    assert!(pid.fall().await.is_err());
    assert_eq!(pid.add(1).await, Ok(1), "a restart is no end");
    let ended = pid.ended();
    let (ended, killed) = tokio::join!(ended, pid.kill().into_future());
    assert_eq!((ended.map(|ended| ended.why), killed), (Ok(Why::Killed), Ok(())));
    let unbound: Pid<Worker> = serde_json::from_str(&serde_json::to_string(&pid).unwrap()).unwrap();
    assert_eq!(unbound.ended().await, Err(Refusal::Unbound));
    node.stop().await;
}
