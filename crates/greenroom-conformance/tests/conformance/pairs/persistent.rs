//! Persistent actors and what else an actor may use.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, Refusal, Topic};
use serde::{Deserialize, Serialize};

use super::{SEEDS, pair, until};

/// A sum that is saved with each turn that changes it.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Sum {
    total: u64,
}

#[actor(persistent, save = "turn", placement = "local", idle = "2s")]
impl Sum {
    pub async fn add(&mut self, more: u64) -> u64 {
        self.total += more;
        self.total
    }

    pub async fn total(&self) -> u64 {
        self.total
    }

    /// Adds each item of the stream, by which it is fed from another actor.
    pub async fn add_all(&mut self, cx: &Cx, from: String) -> Result<u64, String> {
        let mut items = SumRef::of(cx, from).count_down().await.map_err(|error| error.to_string())?;
        while let Some(item) = items.next().await {
            self.total += item.map_err(|error| error.to_string())?;
        }
        Ok(self.total)
    }

    /// The total and all numbers below it.
    pub fn count_down(&self) -> impl Stream<Item = u64> {
        stream::iter((0..=self.total).rev())
    }

    pub async fn add_later(&mut self, cx: &Cx, more: u64) -> Result<(), Refusal> {
        cx.after(Duration::from_millis(300), SumRef::me(cx).add(more)).map(drop)
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Sum>().subscribe("sums", |node, key, more: u64| SumRef::of(node, key).add(more))
}

#[test]
fn a_persistent_subscriber_keeps_the_events_that_it_has_saved() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        for more in 1..=10 {
            let topic = Topic::<u64>::of(&cluster.node("b"), "sums/x");
            assert_eq!(topic.publish(&more).await.unwrap().subscribers, 1);
        }
        until(|| SumRef::of(&cluster.node("a"), "x").total(), |total| *total == 55).await;
        for name in ["a", "b"] {
            cluster.restart(name).await;
        }
        until(|| SumRef::of(&cluster.node("b"), "x").total(), |total| *total == 55).await;
    });
}

#[test]
fn a_stream_that_a_persistent_actor_consumes_is_saved_with_its_turn() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        assert_eq!(SumRef::of(&a, "source").add(4).await, Ok(4));
        assert_eq!(SumRef::of(&b, "sink").add_all("source").await, Ok(4 + 3 + 2 + 1));
        for name in ["a", "b"] {
            cluster.restart(name).await;
        }
        until(|| SumRef::of(&cluster.node("a"), "sink").total(), |total| *total == 10).await;
        let source = SumRef::of(&cluster.node("b"), "source");
        until(|| source.total(), |total| *total == 4).await;
        let items: Vec<_> = source.count_down().await.unwrap().collect().await;
        assert_eq!(items, [Ok(4), Ok(3), Ok(2), Ok(1), Ok(0)], "a stream begins from the saved state");
    });
}

#[test]
fn the_turn_of_a_timer_is_saved_as_any_other() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let a = cluster.node("a");
        SumRef::of(&a, "x").add_later(7).await.unwrap();
        until(|| SumRef::of(&a, "x").total(), |total| *total == 7).await;
        cluster.restart("a").await;
        until(|| SumRef::of(&cluster.node("b"), "x").total(), |total| *total == 7).await;
    });
}
