//! What a node finds wrong of saves and of reminders; and what is near to it and is nothing wrong.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom::prelude::*;
use greenroom::{Node, ReminderError};
use greenroom_sim::{Faults, SimStore, seeds, test_name};
use greenroom_store::{Page, Result, Store, Version, Versioned};
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, sim};

/// Saves what it counts.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Clerk {
    count: u64,
}

#[actor(persistent)]
impl Clerk {
    pub async fn count(&mut self, cx: &Cx) -> std::result::Result<(), StateError> {
        self.count += 1;
        cx.save(self).await
    }

    /// Is to be reminded in a second, and has no time for so many.
    pub async fn doze(&mut self, cx: &Cx, seconds: u64) -> std::result::Result<(), ReminderError> {
        ClerkRef::me(cx).wake().after(Duration::from_secs(1)).named("wake").await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    }

    pub async fn wake(&mut self) {}
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Some saves take over a second.
    Slow,
    /// Somebody else has written just before, what is [another actor's](ANOTHERS).
    Contested,
}

/// A store with which something is wrong.
#[derive(Debug)]
struct Troubled {
    store: Arc<dyn Store>,
    trouble: Trouble,
    /// Of so many saves one is troubled; none if it is 0.
    every: Arc<AtomicU64>,
    saves: AtomicU64,
}

impl Store for Troubled {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.store.read(key, timeout)
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.store.create(key, value, timeout)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        Box::pin(async move {
            let save = self.saves.fetch_add(1, Ordering::Relaxed);
            let is_troubled = save.checked_rem(self.every.load(Ordering::Relaxed)) == Some(0);
            match self.trouble {
                Trouble::Slow if is_troubled => tokio::time::sleep(Duration::from_millis(1_500)).await,
                Trouble::Contested if is_troubled => {
                    let theirs = self.store.read(ANOTHERS, timeout).await?.expect("it was saved first");
                    self.store.replace(key, theirs.value, expected, timeout).await?;
                }
                _ => {}
            }
            self.store.replace(key, value, expected, timeout).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.store.delete(key, expected, timeout)
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.store.scan(prefix, after, limit, timeout)
    }
}

/// Runs `scenario` at a node that keeps its states in such a store; it is handed of how many saves one is to be troubled.
fn run<F: Future<Output = ()> + 'static>(trouble: Trouble, scenario: fn(Node, Arc<AtomicU64>) -> F) {
    seeds(&test_name(), 2, |seed| {
        sim(seed, Faults::none()).deadline(Duration::from_secs(600)).run(|of| {
            let every = Arc::new(AtomicU64::new(0));
            let (states, kept) = (Rc::new(OnceCell::<SimStore>::new()), every.clone());
            let seen = states.clone();
            let cluster = Cluster::new(&of, move |builder, name| {
                let store = seen.get().expect("no node starts before the cluster is there").seen_by(name);
                let store = Troubled { store, trouble, every: kept.clone(), saves: AtomicU64::new(0) };
                builder.register::<Clerk>().state_store("", Arc::new(store))
            });
            assert!(states.set(cluster.store.clone()).is_ok(), "nobody else sets it");
            async move {
                cluster.start_all(&["a"]).await;
                scenario(cluster.node("a").expect("it was started"), every).await;
            }
        });
    });
}

fn found(node: &Node) -> Vec<String> {
    node.findings().iter().map(|finding| finding.check.to_string()).collect()
}

/// Saves five times a second for so long, or until something is found.
async fn save(node: &Node, seconds: u64) {
    for _ in 0..seconds * 5 {
        if !found(node).is_empty() {
            return;
        }
        // What conflicts is answered with an error.
        let _ = ClerkRef::of(node, "c").count().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Of a hundred saves two are troubled, which is nothing wrong; then many.
async fn troubled(node: Node, every: Arc<AtomicU64>, check: &str) {
    ClerkRef::of(&node, "another").count().await.expect("nothing is wrong yet");
    every.store(50, Ordering::Relaxed);
    save(&node, 120).await;
    assert_eq!(found(&node), [""; 0], "one in fifty");
    every.store(5, Ordering::Relaxed);
    save(&node, 120).await;
    assert_eq!(found(&node), [check], "one in five");
}

#[test]
fn saves_that_take_long_are_a_finding_and_a_few_of_them_are_none() {
    run(Trouble::Slow, |node, every| troubled(node, every, "saves-slow"));
}

#[test]
fn saves_that_meet_what_others_wrote_are_a_finding_and_a_few_of_them_are_none() {
    run(Trouble::Contested, |node, every| troubled(node, every, "saves-in-conflict"));
}

#[test]
fn a_reminder_that_waits_for_long_is_a_finding_and_one_that_waits_a_little_is_none() {
    run(Trouble::Slow, |node, _| async move {
        for (key, seconds, late) in [("briefly", 15, false), ("long", 28, true)] {
            let dozing = ClerkRef::of(&node, key).doze(seconds).by(Duration::from_secs(60));
            let looking = async {
                let mut seen = Vec::new();
                for _ in 0..seconds {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    seen.extend(found(&node));
                }
                seen.dedup();
                seen
            };
            let (dozed, seen) = tokio::join!(dozing, looking);
            dozed.expect("it ends in time");
            assert_eq!(seen, if late { vec!["reminders-late"] } else { vec![] }, "{key}");
        }
    });
}

/// Where the state of a clerk is that meets nobody.
const ANOTHERS: &str = "state/@greenroom/clerk/self/another";
