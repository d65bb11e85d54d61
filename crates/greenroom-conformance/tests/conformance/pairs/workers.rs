//! Stateless workers and what else an actor may use.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, Refusal, ReminderError, Topic};

use super::{SEEDS, pair, until};

thread_local! {
    /// Names of the messages that workers have handled, with the numbers of the events.
    static HANDLED: RefCell<BTreeSet<(String, u64)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Up to two activations of it are on each node.
#[derive(Default, Actor)]
struct Clerk;

#[actor(workers = 2)]
impl Clerk {
    pub async fn handle(&mut self, what: String, number: u64) {
        HANDLED.with_borrow_mut(|handled| handled.insert((what, number)));
    }

    pub fn count_down(&self, from: u64) -> impl Stream<Item = u64> {
        stream::iter((0..=from).rev())
    }

    pub async fn handle_later(&mut self, cx: &Cx) -> Result<(), Refusal> {
        cx.after(Duration::from_millis(300), ClerkRef::me(cx).handle("timer", 1)).map(drop)
    }

    pub async fn handle_by_reminder(&mut self, cx: &Cx) -> Result<(), ReminderError> {
        ClerkRef::me(cx).handle("reminder", 1).after(Duration::from_secs(2)).named("handle").await
    }

    pub async fn move_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn equip(builder: Builder) -> Builder {
    HANDLED.take();
    builder
        .register::<Clerk>()
        .subscribe("jobs", |node, key, number: u64| ClerkRef::of(node, key).handle("event", number))
}

async fn handled(what: &str, number: u64) {
    while !HANDLED.with_borrow(|handled| handled.contains(&(what.to_owned(), number))) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn workers_hear_topics_and_stream() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        for number in 0..10 {
            Topic::<u64>::of(&cluster.node("b"), "jobs/x").publish(&number).await.unwrap();
        }
        for number in 0..10 {
            handled("event", number).await;
        }
        let items = ClerkRef::of(&cluster.node("a"), "x").count_down(2).await.unwrap();
        assert_eq!(items.collect::<Vec<_>>().await, [Ok(2), Ok(1), Ok(0)]);
    });
}

#[test]
fn workers_have_timers_and_reminders() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let clerk = ClerkRef::of(&cluster.node("a"), "x");
        clerk.handle_later().await.unwrap();
        clerk.handle_by_reminder().await.unwrap();
        handled("timer", 1).await;
        handled("reminder", 1).await;
    });
}

#[test]
fn workers_do_not_move_and_are_on_the_callers_node_after_a_drain() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let refused = ClerkRef::of(&cluster.node("a"), "x").move_to("b").await.unwrap_err().to_string();
        assert!(refused.contains("stateless worker"), "{refused}");
        assert_eq!(ClerkRef::of(&cluster.node("b"), "x").node().await.as_deref(), Ok("b"));
        assert!(cluster.drain("b").await.is_whole());
        until(|| ClerkRef::of(&cluster.node("a"), "x").node(), |node| node == "a").await;
    });
}
