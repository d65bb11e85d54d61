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

/// A store at which some saves take over a second.
#[derive(Debug)]
struct Troubled {
    store: Arc<dyn Store>,
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
            if is_troubled {
                tokio::time::sleep(Duration::from_millis(1_500)).await;
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
fn run<F: Future<Output = ()> + 'static>(scenario: fn(Node, Arc<AtomicU64>) -> F) {
    seeds(&test_name(), 2, |seed| {
        sim(seed, Faults::none()).deadline(Duration::from_secs(600)).run(|of| {
            let every = Arc::new(AtomicU64::new(0));
            let (states, kept) = (Rc::new(OnceCell::<SimStore>::new()), every.clone());
            let seen = states.clone();
            let cluster = Cluster::new(&of, move |builder, name| {
                let store = seen.get().expect("no node starts before the cluster is there").seen_by(name);
                let store = Troubled { store, every: kept.clone(), saves: AtomicU64::new(0) };
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
        ClerkRef::of(node, "c").count().await.expect("it is only slow");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn saves_that_take_long_are_a_finding_and_a_few_of_them_are_none() {
    run(|node, every| async move {
        every.store(50, Ordering::Relaxed);
        save(&node, 120).await;
        assert_eq!(found(&node), [""; 0], "one in fifty");
        every.store(5, Ordering::Relaxed);
        save(&node, 120).await;
        assert_eq!(found(&node), ["saves-slow"], "one in five");
    });
}

#[test]
fn a_reminder_that_waits_for_long_is_a_finding_and_one_that_waits_a_little_is_none() {
    run(|node, _| async move {
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
