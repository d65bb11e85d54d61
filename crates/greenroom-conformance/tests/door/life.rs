//! What a node's log says of its life and its cluster's, and what doors say of nodes that have left.

use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span;

use crate::client::get;
use crate::kinds::{node, open};

/// All that this process logs at `info` and above, an event a line.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps what is logged.
struct Log;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Waits for a line that has all of `words`.
async fn logged(words: &[&str]) {
    for _ in 0..PATIENCE_POLLS {
        let has = |line: &String| words.iter().all(|word| line.contains(word));
        if LINES.lock().unwrap_or_else(PoisonError::into_inner).iter().any(has) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no line has {words:?}: {:#?}", LINES.lock().unwrap_or_else(PoisonError::into_inner));
}

#[tokio::test]
async fn who_joins_drains_and_leaves_is_in_the_log_and_is_left_and_not_dead() {
    tracing::subscriber::set_global_default(Log).expect("nobody else logs here");
    let directory = tempfile::tempdir().unwrap();
    let table = format!("sqlite:{}", directory.path().join("table.db").display());
    let over = |name: &'static str| node().name(name).table(table.clone());
    let (stays, door) = open(over("stays")).await;
    logged(&["this node has joined the cluster", "name=\"stays\""]).await;
    let (goes, _) = open(over("goes")).await;
    logged(&["a node has joined", "name=\"goes\""]).await;

    goes.drain().await;
    logged(&["this node drains", "name=\"goes\""]).await;
    logged(&["a node is about to leave", "name=\"goes\""]).await;
    logged(&["this node has left the cluster", "name=\"goes\""]).await;
    logged(&["a node has left", "name=\"goes\""]).await;
    let status = get(&door, "/-/status").await.json();
    let members = status["cluster"]["members"].as_array().unwrap();
    let gone = members.iter().find(|member| member["name"] == "goes").unwrap_or_else(|| panic!("{status}"));
    assert_eq!((gone["status"].as_str(), gone["why"].as_str()), (Some("left"), Some("it left")));
    let metrics = get(&door, "/metrics").await.body;
    assert!(metrics.contains("greenroom_members{status=\"left\"} 1"), "{metrics}");
    assert!(metrics.contains("greenroom_members{status=\"dead\"} 0"), "{metrics}");

    // A second process that is called like the one that stays.
    let refused = over("stays").start().await.expect_err("it lives");
    let said = format!("{refused:?}");
    assert!(said.starts_with("a node called \"stays\" is alive"), "what `main` prints is the sentence: {said}");
    logged(&["a node has this node's name", "name=\"stays\""]).await;
    assert!(!stays.is_stopped());
    stays.stop().await;
}

/// Half a minute.
const PATIENCE_POLLS: u32 = 600;
