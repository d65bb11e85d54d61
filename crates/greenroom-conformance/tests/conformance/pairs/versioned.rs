//! Actors with versioned states and what else an actor may use.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, Refusal, ReminderError, Topic};
use serde::{Deserialize, Serialize};

use super::{SEEDS, pair, until};

#[derive(Default, Clone, Serialize, Deserialize)]
struct Count {
    count: u64,
}

impl VersionedState for Count {
    type Update = u64;

    fn apply(&mut self, more: &u64) {
        self.count += more;
    }
}

/// A count whose updates are confirmed by its protocol.
#[derive(Default, Actor)]
struct Tally {
    state: Versioned<Count>,
}

#[actor(placement = "local", idle = "2s")]
impl Tally {
    #[update]
    pub async fn add(&self, more: u64) -> Result<u64, StateError> {
        self.state.enqueue(more);
        self.state.confirm_updates().await?;
        Ok(self.state.confirmed().0.count)
    }

    pub async fn count(&self) -> u64 {
        self.state.confirmed().0.count
    }

    pub fn count_down(&self) -> impl Stream<Item = u64> {
        stream::iter((0..=self.state.confirmed().0.count).rev())
    }

    pub async fn add_later(&mut self, cx: &Cx, more: u64) -> Result<(), Refusal> {
        cx.after(Duration::from_millis(300), TallyRef::me(cx).add(more)).map(drop)
    }

    pub async fn add_by_reminder(&mut self, cx: &Cx, more: u64) -> Result<(), ReminderError> {
        TallyRef::me(cx).add(more).after(Duration::from_secs(3)).named("add").await
    }

    pub async fn move_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Tally>().subscribe("tallies", |node, key, more: u64| TallyRef::of(node, key).add(more))
}

/// Waits until the actor `x` has this count, wherever it is.
async fn counts(cluster: &greenroom_test::Cluster, count: u64) {
    until(|| TallyRef::of(&cluster.any(), "x").count(), |have| *have == count).await;
}

#[test]
fn events_of_a_topic_are_updates_of_a_versioned_state() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        for more in 1..=10 {
            Topic::<u64>::of(&cluster.node("b"), "tallies/x").publish(&more).await.unwrap();
        }
        counts(&cluster, 55).await;
    });
}

#[test]
fn a_stream_begins_from_the_confirmed_state() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        assert_eq!(TallyRef::of(&cluster.node("a"), "x").add(2).await, Ok(2));
        let items = TallyRef::of(&cluster.node("b"), "x").count_down().await.unwrap();
        assert_eq!(items.collect::<Vec<_>>().await, [Ok(2), Ok(1), Ok(0)]);
    });
}

#[test]
fn timers_and_reminders_update_a_versioned_state_once() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let x = TallyRef::of(&cluster.node("a"), "x");
        x.add_later(1).await.unwrap();
        x.add_by_reminder(10).await.unwrap();
        counts(&cluster, 11).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        counts(&cluster, 11).await;
    });
}

#[test]
fn confirmed_updates_outlive_a_drain_and_a_move_is_refused_with_the_remedy() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        assert_eq!(TallyRef::of(&cluster.node("b"), "x").add(3).await, Ok(3));
        let refused = TallyRef::of(&cluster.node("a"), "x").move_to("a").await.unwrap_err().to_string();
        assert!(refused.contains("`#[actor(migrate)]`"), "{refused}");
        assert!(cluster.drain("b").await.is_whole());
        until(|| TallyRef::of(&cluster.node("a"), "x").node(), |node| node == "a").await;
        counts(&cluster, 3).await;
        assert_eq!(TallyRef::of(&cluster.node("a"), "x").add(1).await, Ok(4));
    });
}
