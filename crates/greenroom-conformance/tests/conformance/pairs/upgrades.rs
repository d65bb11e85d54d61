//! Upgrades and what an actor uses: a node of version 1 hands over to a node of version 2.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{ReminderError, Topic};
use greenroom_test::{Cluster, Setup};

use super::{SEEDS, until};

thread_local! {
    /// Versions and names of the messages that scribes have noted.
    static NOTED: RefCell<Vec<(u16, String)>> = const { RefCell::new(Vec::new()) };
}

macro_rules! versions {
    ($scribe:ident, $scribe_ref:ident, $till:ident, $version:tt) => {
        #[derive(Default, Actor)]
        struct $scribe;

        #[actor(kind = "scribe", interface = $version, placement = "local")]
        impl $scribe {
            pub async fn note(&mut self, what: String) {
                NOTED.with_borrow_mut(|noted| noted.push(($version, what)));
            }

            pub async fn remind(&mut self, cx: &Cx) -> Result<(), ReminderError> {
                $scribe_ref::me(cx).note("reminder").after(Duration::from_secs(10)).named("note").await
            }

            pub fn versions(&self) -> impl Stream<Item = u16> {
                stream::repeat($version)
            }
        }

        /// A sum under idempotency keys.
        #[derive(Default, Actor)]
        struct $till {
            total: Register<u64>,
        }

        #[actor(reliable, kind = "keyed_till", interface = $version)]
        impl $till {
            pub async fn pay(&mut self, more: u64) -> u64 {
                *self.total.get_mut() += more;
                *self.total.get()
            }
        }
    };
}

versions!(Scribe, ScribeRef, KeyedTill, 1);
versions!(ScribeTwo, ScribeTwoRef, KeyedTillTwo, 2);

/// Node `a` runs version 1 of the program, node `b` version 2.
fn two_versions() -> Setup {
    Cluster::named(&["a", "b"], |builder, name| {
        NOTED.take();
        let builder = builder.configure(|config| config.call_timeout = Duration::from_secs(5));
        match name {
            "a" => builder
                .register::<Scribe>()
                .register::<KeyedTill>()
                .subscribe("notes", |node, key, what: String| ScribeRef::of(node, key).note(what)),
            _ => builder
                .register::<ScribeTwo>()
                .register::<KeyedTillTwo>()
                .subscribe("notes", |node, key, what: String| ScribeTwoRef::of(node, key).note(what)),
        }
    })
}

async fn noted(version: u16, what: &str) {
    while !NOTED.with_borrow(|noted| noted.contains(&(version, what.to_owned()))) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs `before` while version 1 is alone, replaces it with version 2, and runs `after`.
async fn upgraded(cluster: &Cluster, before: impl AsyncFnOnce(Node), after: impl AsyncFnOnce(Node)) {
    assert!(cluster.drain("b").await.is_whole());
    before(cluster.node("a")).await;
    cluster.start("b").await;
    cluster.settled().await;
    assert!(cluster.drain("a").await.is_whole());
    after(cluster.node("b")).await;
}

#[test]
fn a_reminder_that_the_old_version_has_set_runs_at_the_new_one() {
    two_versions().seeds(SEEDS, |cluster| async move {
        let before = async |a: Node| ScribeRef::of(&a, "x").remind().await.unwrap();
        upgraded(&cluster, before, async |_| noted(2, "reminder").await).await;
    });
}

#[test]
fn a_topic_and_its_subscribing_kind_go_on_at_the_new_version() {
    two_versions().seeds(SEEDS, |cluster| async move {
        let publish = async |node: &Node, what: &str| {
            let topic = Topic::<String>::of(node, "notes/x");
            while topic.publish(&what.to_owned()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let before = async |a: Node| {
            publish(&a, "old").await;
            noted(1, "old").await;
        };
        let after = async |b: Node| {
            publish(&b, "new").await;
            noted(2, "new").await;
        };
        upgraded(&cluster, before, after).await;
    });
}

#[test]
fn a_stream_of_the_old_version_ends_and_begins_again_at_the_new_one() {
    two_versions().seeds(SEEDS, |cluster| async move {
        let mut old = None;
        let before = async |a: Node| {
            let mut versions = ScribeRef::of(&a, "x").versions().await.unwrap();
            assert_eq!(versions.next().await, Some(Ok(1)));
            old = Some(versions);
        };
        let after = async |b: Node| {
            let mut versions = ScribeRef::of(&b, "x").versions().await.unwrap();
            assert_eq!(versions.next().await, Some(Ok(2)));
        };
        upgraded(&cluster, before, after).await;
        let end = old.unwrap().skip_while(|item| std::future::ready(item.is_ok())).next().await;
        assert!(matches!(end, Some(Err(CallError::Unknown { .. }))), "{end:?}");
    });
}

#[test]
fn a_keyed_answer_of_the_old_version_is_known_to_the_new_one() {
    two_versions().seeds(SEEDS, |cluster| async move {
        let before = async |a: Node| {
            assert_eq!(until(|| KeyedTillRef::of(&a, "x").pay(3).idempotent("one"), |_| true).await, 3);
        };
        let after = async |b: Node| {
            assert_eq!(until(|| KeyedTillTwoRef::of(&b, "x").pay(3).idempotent("one"), |_| true).await, 3);
            assert_eq!(until(|| KeyedTillTwoRef::of(&b, "x").pay(1).idempotent("two"), |_| true).await, 4);
        };
        upgraded(&cluster, before, after).await;
    });
}
