//! Timers, reminders, topics, streams and moves, two of them at a time.

use std::time::Duration;

use futures_util::stream;
use greenroom::prelude::*;
use greenroom::{Builder, Delivery, ReminderError, Topic};
use serde::{Deserialize, Serialize};

use super::{SEEDS, pair, until};

/// An actor that publishes what it does to the topic `news`.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Herald {
    read: u64,
}

#[actor(migrate, placement = "local", idle = "60s")]
impl Herald {
    /// Publishes its name and the node that it is on.
    pub async fn announce(&mut self, cx: &Cx, what: String) -> Result<(), String> {
        let news = Topic::<(String, String)>::of(cx, "news");
        news.publish(&(what, cx.node_name().to_owned())).await.map(drop).map_err(|error| error.to_string())
    }

    /// Reads a stream of another herald to its end, and sets a timer that says so.
    pub async fn read_and_announce(&mut self, cx: &Cx, other: String) -> Result<(), String> {
        let mut items = HeraldRef::of(cx, other).numbers(3).await.map_err(|error| error.to_string())?;
        while let Some(item) = items.next().await {
            self.read += item.map_err(|error| error.to_string())?;
        }
        cx.after(Duration::from_millis(100), HeraldRef::me(cx).announce(format!("read {}", self.read)))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    pub async fn remind(&mut self, cx: &Cx, other: String) -> Result<(), ReminderError> {
        HeraldRef::me(cx).read_and_announce(other).after(Duration::from_secs(2)).named("read").await
    }

    pub async fn announce_later(&mut self, cx: &Cx, what: String) -> Result<(), String> {
        let call = HeraldRef::me(cx).announce(what);
        cx.after(Duration::from_secs(2), call).map(drop).map_err(|error| error.to_string())
    }

    pub fn numbers(&self, to: u64) -> impl Stream<Item = u64> {
        stream::iter(1..=to)
    }

    /// Numbers without an end, one every 100 ms.
    pub fn ticks(&self) -> impl Stream<Item = u64> {
        stream::unfold(0, |at| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Some((at, at + 1))
        })
    }

    /// The names of all announcements from now on, as a stream of replies.
    pub async fn follow(&self, cx: &Cx) -> Result<impl Stream<Item = String>, String> {
        let news = Topic::<(String, String)>::of(cx, "news").watch().await.map_err(|error| error.to_string())?;
        Ok(stream::unfold(news, |mut news| async move {
            match news.next().await {
                Some(Ok(Delivery::Event((what, _)))) => Some((what, news)),
                _ => None,
            }
        }))
    }

    pub async fn move_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Herald>()
}

async fn moves(cluster: &greenroom_test::Cluster, key: &str, to: &str) {
    HeraldRef::of(&cluster.node("a"), key).move_to(to).await.expect("it can be carried");
    until(|| HeraldRef::of(&cluster.node("a"), key).node(), |node| node == to).await;
}

#[test]
fn the_turn_of_a_reminder_reads_a_stream_and_sets_a_timer_whose_turn_publishes() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        let mut news = Topic::<(String, String)>::of(&b, "news").watch().await.unwrap();
        assert_eq!(HeraldRef::of(&b, "source").node().await.as_deref(), Ok("b"));
        HeraldRef::of(&a, "reader").remind("source").await.unwrap();
        let Some(Ok(Delivery::Event((what, node)))) = news.next().await else { panic!("nothing was published") };
        assert_eq!((&*what, &*node), ("read 6", "a"));
    });
}

#[test]
fn a_stream_of_replies_passes_on_the_events_of_a_topic() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        let mut followed = HeraldRef::of(&b, "follower").follow().await.unwrap();
        for what in ["one", "two"] {
            HeraldRef::of(&a, "x").announce(what).await.unwrap();
            assert_eq!(followed.next().await, Some(Ok(what.to_owned())));
        }
    });
}

#[test]
fn a_reminder_finds_its_actor_after_a_move_and_after_a_drain() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let mut news = Topic::<(String, String)>::of(&cluster.node("a"), "news").watch().await.unwrap();
        for key in ["moved", "drained"] {
            HeraldRef::of(&cluster.node("a"), key).remind("source").await.unwrap();
            moves(&cluster, key, "b").await;
            if key == "drained" {
                assert!(cluster.drain("b").await.is_whole());
            }
            let node = loop {
                match news.next().await {
                    Some(Ok(Delivery::Event((_, node)))) => break node,
                    Some(Ok(Delivery::Missed(_))) => {}
                    // The topic has moved with the drain.
                    _ => news = Topic::of(&cluster.node("a"), "news").watch().await.unwrap(),
                }
            };
            assert_eq!(node, if key == "drained" { "a" } else { "b" });
        }
    });
}

#[test]
fn a_timer_keeps_its_actor_from_the_optimiser_and_ends_with_a_move() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let a = cluster.node("a");
        let mut news = Topic::<(String, String)>::of(&a, "news").watch().await.unwrap();
        HeraldRef::of(&a, "x").announce_later("before the move").await.unwrap();
        moves(&cluster, "x", "b").await;
        HeraldRef::of(&a, "x").announce_later("after the move").await.unwrap();
        let Some(Ok(Delivery::Event((what, node)))) = news.next().await else { panic!("nothing was published") };
        assert_eq!((&*what, &*node), ("after the move", "b"), "a timer belongs to the activation that has set it");
    });
}

#[test]
fn a_stream_ends_for_its_reader_when_its_actor_moves_and_begins_again_at_its_next_place() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let mut ticks = HeraldRef::of(&cluster.node("a"), "x").ticks().await.unwrap();
        assert_eq!(ticks.next().await, Some(Ok(0)));
        moves(&cluster, "x", "b").await;
        let end = loop {
            match ticks.next().await {
                Some(Ok(_)) => {}
                end => break end,
            }
        };
        assert!(matches!(end, Some(Err(CallError::Unknown { .. }))), "{end:?}");
        let mut ticks = HeraldRef::of(&cluster.node("a"), "x").ticks().await.unwrap();
        assert_eq!(ticks.next().await, Some(Ok(0)));
    });
}

#[test]
fn a_timer_ends_with_a_drain_and_a_reminder_does_not() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let b = cluster.node("b");
        HeraldRef::of(&b, "x").announce_later("by a timer").await.unwrap();
        HeraldRef::of(&b, "x").remind("source").await.unwrap();
        assert!(cluster.drain("b").await.is_whole());
        let news = Topic::<(String, String)>::of(&cluster.node("a"), "news");
        let mut news = news.watch().await.unwrap();
        let Some(Ok(Delivery::Event((what, node)))) = news.next().await else { panic!("nothing was published") };
        assert_eq!((&*what, &*node), ("read 6", "a"));
    });
}
