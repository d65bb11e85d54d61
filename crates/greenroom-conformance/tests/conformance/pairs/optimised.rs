//! The optimiser and what an actor uses: anchored actors stay, and reminders follow those that move.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom::{Builder, Refusal, ReminderError, Topic};
use greenroom_test::Cluster;
use serde::{Deserialize, Serialize};

use super::{SEEDS, pair};

thread_local! {
    /// Nodes on which turns of reminders have run.
    static REMINDED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Talks with a partner, which the optimiser brings together unless something anchors them.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Talker {
    heard: u64,
}

#[actor(migrate, placement = "local", optimise, idle = "600s")]
impl Talker {
    pub async fn talk(&mut self, cx: &Cx, partner: String) -> u64 {
        TalkerRef::of(cx, partner).hear().await.unwrap_or_default()
    }

    pub async fn hear(&mut self) -> u64 {
        self.heard += 1;
        self.heard
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn set_timer(&mut self, cx: &Cx) -> Result<(), Refusal> {
        cx.every(Duration::from_secs(3600), TalkerRef::me(cx).hear()).map(drop)
    }

    pub async fn subscribe(&mut self, cx: &Cx) {
        let me = TalkerRef::me(cx);
        Topic::<u64>::of(cx, "news").subscribe(cx, me, |me, _| me.hear());
    }

    /// Items without an end, one an hour.
    pub fn slow_items(&self) -> impl Stream<Item = u64> {
        stream::once(async { 0 }).chain(stream::pending())
    }

    pub async fn remind(&mut self, cx: &Cx) -> Result<(), ReminderError> {
        TalkerRef::me(cx).note().after(Duration::from_secs(240)).named("note").await
    }

    pub async fn note(&mut self, cx: &Cx) {
        REMINDED.with_borrow_mut(|reminded| reminded.push(cx.node_name().to_owned()));
    }
}

fn equip(builder: Builder) -> Builder {
    REMINDED.take();
    builder.register::<Talker>().configure(|config| config.optimiser.mode = OptimiserMode::On)
}

/// Returns the nodes of both talkers of a pair.
async fn nodes(cluster: &Cluster, name: &str) -> [String; 2] {
    let mut nodes = [String::new(), String::new()];
    for (node, side) in nodes.iter_mut().zip(["left", "right"]) {
        let talker = TalkerRef::of(&cluster.node("a"), format!("{name} {side}"));
        *node = cluster.eventually(|| talker.node()).await;
    }
    nodes
}

#[test]
fn timers_topics_and_streams_anchor_an_actor_and_reminders_follow_it() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        let mut open = Vec::new();
        for name in ["free", "timer", "topic", "stream"] {
            for (node, side) in [(&a, "left"), (&b, "right")] {
                let talker = TalkerRef::of(node, format!("{name} {side}"));
                match name {
                    "timer" => talker.set_timer().await.unwrap(),
                    "topic" => talker.subscribe().await.unwrap(),
                    "stream" => {
                        let mut items = talker.slow_items().await.unwrap();
                        assert_eq!(items.next().await, Some(Ok(0)));
                        open.push(items);
                    }
                    _ => talker.remind().await.unwrap(),
                }
            }
        }
        let mut together = false;
        while !together || REMINDED.with_borrow(Vec::len) < 2 {
            for name in ["free", "timer", "topic", "stream"] {
                let left = TalkerRef::of(&a, format!("{name} left"));
                for _ in 0..10 {
                    // A call that meets its actor on the way is not what is tested.
                    let _ = left.talk(format!("{name} right")).await;
                }
            }
            let [left, right] = nodes(&cluster, "free").await;
            together = left == right;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut reminded = REMINDED.take();
        reminded.sort();
        let mut now = nodes(&cluster, "free").await;
        now.sort();
        assert_eq!(reminded, now, "each reminder has run where its actor has moved");
        for name in ["timer", "topic", "stream"] {
            assert_eq!(nodes(&cluster, name).await, ["a", "b"], "{name}");
        }
    });
}
