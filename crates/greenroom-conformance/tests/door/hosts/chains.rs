//! Chains of calls through hosts, on nodes of two shards: a cycle is named at once, and nothing else is taken for one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_describe::Description;
use greenroom_host::{self as host, CallError, Connection, Dial, Ended, Host, Kind, Turning, arguments, payload};
use greenroom_protocols::wait_for::WaitFor;
use greenroom_wire::Status;
use greenroom_wire::codec;
use greenroom_world::real::RealWorld;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use super::{opened, with_socket};
use crate::client::call;
use crate::kinds::{node, open};

/// The actors that are still to be called, in their order, as `kind/key`.
#[derive(Serialize, Deserialize)]
struct Given {
    rest: Vec<String>,
}

/// An actor in a host that calls on.
struct HostedLink {
    gate: watch::Receiver<bool>,
}

impl HostedLink {
    async fn run(&mut self, cx: &host::Cx, method: &str, given: &[u8]) -> Result<Vec<u8>, Ended> {
        let Given { rest } = arguments(given)?;
        if method == "wait_and_pass" {
            let _ = self.gate.wait_for(|is_open| *is_open).await;
        }
        let Some((next, rest)) = rest.split_first() else { return cx.reply(&"the end") };
        let (kind, key) = next.split_once('/').expect("it is a name");
        let onward = if method == "look" { "look" } else { "pass" };
        match cx.call(kind, key, onward, &payload(&Given { rest: rest.to_vec() })?).await {
            Ok(reply) => Ok(reply),
            Err(CallError::Failed(Status::Cycle, said)) => {
                let said: Value = codec::decode(&said).map_err(|error| Ended::Failed(error.to_string()))?;
                let path = said["Cycle"].as_array().into_iter().flatten().filter_map(Value::as_str);
                cx.reply(&path.collect::<Vec<_>>().join(" -> "))
            }
            Err(error) => Err(Ended::Failed(error.to_string())),
        }
    }
}

impl host::Actor for HostedLink {
    fn turn<'a>(&'a mut self, cx: &'a host::Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(self.run(cx, method, given))
    }
}

/// What links look like to actors in Rust.
#[actor]
#[expect(dead_code, reason = "the attribute makes a reference of it, and nothing in Rust implements it")]
trait Link {
    async fn pass(&mut self, rest: Vec<String>) -> String;
}

/// An actor of a node that calls on.
#[derive(Default, Actor)]
struct Relay {}

#[actor]
impl Relay {
    pub async fn pass(&mut self, cx: &Cx, mut rest: Vec<String>) -> String {
        let next = rest.remove(0);
        let (_, key) = next.split_once('/').expect("it is a name");
        LinkRef::of(cx, key).pass(rest).await.unwrap_or_else(|error| error.to_string())
    }
}

/// Serves links; what waits at their gate goes on when that is opened.
fn serve(path: &Path) -> watch::Sender<bool> {
    let path = path.to_owned();
    let dial: Dial = Arc::new(move || {
        let path = path.clone();
        Box::pin(async move { Ok(Box::new(tokio::net::UnixStream::connect(path).await?) as Box<dyn Connection>) })
    });
    let methods = json!([{"name": "pass"}, {"name": "wait_and_pass"}, {"name": "look", "read": true}]);
    let document = json!({"greenroom": 1, "kind": "link", "version": 1, "compatible": 1, "methods": methods});
    let description = Description::of_document(document).expect("it is a description");
    let (opens, gate) = watch::channel(false);
    tokio::spawn(async move {
        let world = RealWorld::start().expect("there are threads");
        let kind = Kind::new(description, move |_| HostedLink { gate: gate.clone() });
        let _ = Host::new("links").offer(kind).serve(world, &dial).await;
    });
    opens
}

/// A node on which no call is late while others are looked for.
async fn patient(folder: &TempDir) -> (Node, String, PathBuf) {
    let (builder, path) = with_socket(node(), folder, "a");
    let (node, door) = open(builder.configure(|config| config.call_timeout = Duration::from_secs(60))).await;
    (node, door, path)
}

/// Calls the first actor of a chain, which calls the next one.
async fn chain(door: &str, method: &str, actors: &[&str]) -> Value {
    let rest = json!({"rest": actors[1..]}).to_string();
    loop {
        let answer = call(door, &format!("/{}/{method}", actors[0]), &rest).await;
        if answer.status == 200 {
            return answer.json();
        }
        // Until the node knows the kind.
        assert!([404, 503].contains(&answer.status), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_cycle_of_actors_in_hosts_is_named_whichever_shards_they_are_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let _gate = serve(&path);
    for key in 0..8 {
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("link/{name}{key}"));
        // Each is on the shard of its first caller.
        for actor in [&a, &b, &c] {
            assert_eq!(chain(&door, "pass", &[actor]).await, "the end");
        }
        for actors in [vec![&*a, &a], vec![&a, &b, &a], vec![&a, &b, &c, &a]] {
            assert_eq!(chain(&door, "pass", &actors).await, actors.join(" -> "));
        }
        // A chain that does not come back ends.
        assert_eq!(chain(&door, "look", &[&a, &b]).await, "the end");
    }
    node.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_busy_actor_in_a_host_is_no_cycle_and_is_named_by_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    // On a fresh node the first turns of both shards have the same numbers.
    let (node, door, path) = patient(&folder).await;
    let gate = serve(&path);
    let busy = chain(&door, "wait_and_pass", &["link/busy"]);
    let waiting: Vec<String> = (0..8).map(|key| format!("link/a{key}")).collect();
    let turn_of_busy = async || {
        let turns = node.waits(Duration::ZERO).await.turns;
        turns.into_iter().find(|turn| turn.turn == "link/busy.wait_and_pass")
    };
    let pass = async |actor: &String| chain(&door, "pass", &[actor, "link/busy"]).await;
    let calls = async {
        // A call that comes first would not wait.
        while turn_of_busy().await.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        futures_util::future::join_all(waiting.iter().map(pass)).await
    };
    let look = async {
        loop {
            if turn_of_busy().await.is_some_and(|turn| turn.waiters == waiting) {
                break gate.send_replace(true);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let both = async { tokio::join!(busy, calls) };
    tokio::pin!(both);
    let ended = tokio::select! {
        ended = &mut both => ended,
        _ = look => both.await,
    };
    assert_eq!((ended.0, ended.1), ("the end".into(), vec!["the end".into(); 8]));
    node.stop().await;
}

#[tokio::test]
async fn a_deadlock_of_two_chains_through_hosts_is_seen_in_what_waits_for_what() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = patient(&folder).await;
    let gate = serve(&path);
    let pairs: Vec<[String; 2]> = (0..4).map(|key| ["l", "r"].map(|side| format!("link/{side}{key}"))).collect();
    let crossing = pairs.iter().flatten().zip(pairs.iter().flat_map(|[left, right]| [right, left]));
    let calls: Vec<_> = crossing
        .map(|(from, to)| {
            let (door, from, to) = (door.clone(), from.clone(), to.clone());
            tokio::spawn(async move { chain(&door, "wait_and_pass", &[&from, &to]).await })
        })
        .collect();
    let graph = async || {
        let waits = node.waits(Duration::ZERO).await;
        let mut graph = WaitFor::default();
        for turn in &waits.turns {
            turn.waiters.iter().for_each(|waiter| graph.insert(waiter, &turn.actor));
        }
        (waits.turns.len(), graph.cycles())
    };
    // Each holds what another one needs.
    while graph().await.0 < 8 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gate.send_replace(true);
    while graph().await.1 != pairs {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    node.stop().await;
}

#[tokio::test]
async fn a_cycle_by_way_of_another_node_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = format!("sqlite:{}", folder.path().join("table").display());
    let named = |name: &'static str| node().table(&table).configure(move |config| config.name = name.into());
    let (builder, path) = with_socket(named("a"), &folder, "a");
    let (one, door) = open(builder).await;
    let (other, _) = open(named("b").register::<Relay>()).await;
    let _gate = serve(&path);
    for key in 0..8 {
        let [a, b, relay] = ["link/a", "link/b", "relay/r"].map(|name| format!("{name}{key}"));
        for actor in [&a, &b] {
            assert_eq!(chain(&door, "pass", &[actor]).await, "the end");
        }
        let said = chain(&door, "pass", &[&a, &b, &relay, &a]).await;
        let path = [&*a, &b, &relay, &a].join(" -> ");
        assert!(said.as_str().is_some_and(|said| said.contains(&path)), "{said} does not name {path}");
        assert_eq!(chain(&door, "pass", &[&a, &relay, &b]).await, "the end");
    }
    one.stop().await;
    other.stop().await;
}
