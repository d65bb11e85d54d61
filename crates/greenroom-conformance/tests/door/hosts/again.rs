//! Turns of reliable actors in hosts that a test's node runs twice: what would be another one after a failover is found.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_describe::Description;
use greenroom_host::{Actor, CallError, Connection, Cx, Dial, Ended, Host, Kind, Turning, arguments, payload};
use greenroom_wire::codec;
use greenroom_world::real::RealWorld;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::with_socket;
use crate::client::{Answer, call};
use crate::kinds::{node, open};

/// What it has drawn, and how many turns this instance has had, which is not kept.
struct Urn {
    drawn: Vec<u64>,
    turns: u64,
    /// No two turns get the same.
    chance: Arc<AtomicU64>,
}

impl Urn {
    async fn run(&mut self, cx: &Cx, method: &str, given: &[u8]) -> Result<Vec<u8>, Ended> {
        let failed = |error: CallError| Ended::Failed(error.to_string());
        self.turns += 1;
        let chance = || self.chance.fetch_add(1, Ordering::Relaxed);
        let other = payload(&json!({}))?;
        match method {
            "choose" => self.drawn.push(cx.choose(chance).await.map_err(failed)?),
            "draw" => self.drawn.push(chance()),
            "count" => self.drawn.push(self.turns),
            "tell" => {
                let amount = payload(&json!({"n": chance()}))?;
                cx.send("urn", "other", "put", &amount).await.map_err(failed)?;
            }
            "later" => {
                let name = format!("timer {}", chance());
                cx.after(&name, Duration::from_millis(1), "put", &payload(&json!({"n": 7}))?).await.map_err(failed)?;
            }
            "ask" | "peek" => {
                let asked = ["other", "third"].map(|key| cx.call("urn", key, "look", &other));
                let looked = futures_util::future::try_join_all(asked).await.map_err(failed)?;
                self.drawn.push(looked.iter().map(|seen| seen.len() as u64).sum());
                if method == "peek" {
                    self.drawn.push(chance());
                }
            }
            "put" => self.drawn.push(arguments::<Value>(given)?["n"].as_u64().unwrap_or_default()),
            "answer" => return cx.reply(&chance()),
            "look" => {}
            other => return Err(Ended::Invalid(format!("there is no method {other}"))),
        }
        cx.reply(&self.drawn)
    }
}

impl Actor for Urn {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(self.run(cx, method, given))
    }

    fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![("drawn", payload(&self.drawn).expect("it has an encoding"))]
    }

    fn load_field(&mut self, _: &str, value: &[u8]) -> Result<(), String> {
        self.drawn = codec::decode(value).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn serve(path: &Path) {
    let path = path.to_owned();
    let dial: Dial = Arc::new(move || {
        let path = path.clone();
        Box::pin(async move { Ok(Box::new(tokio::net::UnixStream::connect(path).await?) as Box<dyn Connection>) })
    });
    let methods =
        ["choose", "draw", "count", "tell", "later", "ask", "peek", "put", "answer"].map(|name| json!({"name": name}));
    let methods: Vec<Value> = methods.into_iter().chain([json!({"name": "look", "read": true})]).collect();
    let document = json!({"greenroom": 1, "kind": "urn", "version": 1, "compatible": 1, "options": {"reliable": true}, "methods": methods});
    let description = Description::of_document(document).expect("it is a description");
    let chance = Arc::<AtomicU64>::default();
    tokio::spawn(async move {
        let world = RealWorld::start().expect("there are threads");
        let kind = Kind::new(description, move |_| Urn { drawn: Vec::new(), turns: 0, chance: chance.clone() });
        let _ = Host::new("urns").offer(kind).serve(world, &dial).await;
    });
}

async fn opened(folder: &TempDir, rerun: bool) -> (Node, String) {
    let (builder, path) = with_socket(node(), folder, "a");
    let reliable = |config: &mut greenroom::Config| {
        (config.reliable.journal, config.reliable.rerun) = ("memory:".to_owned(), rerun);
    };
    let (node, door) = open(builder.configure(reliable)).await;
    serve(&path);
    (node, door)
}

async fn called(door: &str, key: &str, method: &str) -> Answer {
    loop {
        let answer = call(door, &format!("/urn/{key}/{method}"), "{}").await;
        if answer.status != 404 && answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_turn_in_a_host_that_comes_to_the_same_twice_is_committed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door) = opened(&folder, true).await;
    for method in ["choose", "choose", "later", "ask"] {
        assert_eq!(called(&door, "urn", method).await.status, 200, "{method}");
    }
    // Both runs have had one instance each: a turn that is run again counts as none.
    while called(&door, "urn", "look").await.json().as_array().map(Vec::len) != Some(4) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(node.interference(), Vec::<String>::new());
    node.stop().await;
}

#[tokio::test]
async fn what_chance_and_memory_decide_in_a_host_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door) = opened(&folder, true).await;
    for (method, what) in [
        ("draw", "field `drawn` differs"),
        ("count", "field `drawn` differs"),
        ("tell", "what it sends to"),
        // What it has read is known, so it is run twice.
        ("peek", "field `drawn` differs"),
        ("answer", "its answer differs"),
    ] {
        // What fails has its activation made anew: this one remembers a turn.
        assert_eq!(called(&door, "urn", "choose").await.status, 200);
        let problem = called(&door, "urn", method).await.problem(500, "not-committed");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("urn.{method}")) && detail.contains(what), "{method}: {detail}");
    }
    assert_eq!(node.interference().len(), 5);
    assert_eq!(
        called(&door, "urn", "look").await.json().as_array().map(Vec::len),
        Some(5),
        "of them none was committed"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_is_no_tests_runs_turns_in_hosts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door) = opened(&folder, false).await;
    for (turns, method) in [(1, "draw"), (2, "count"), (3, "choose")] {
        let drawn = called(&door, "urn", method).await.json();
        assert_eq!(drawn.as_array().map(Vec::len), Some(turns), "{method}: {drawn}");
    }
    assert_eq!(node.interference(), Vec::<String>::new());
    node.stop().await;
}
