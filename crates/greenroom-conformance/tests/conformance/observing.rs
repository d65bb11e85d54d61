//! What a node remembers of what happened to it and its cluster.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Event, Level, Node};
use serde::{Deserialize, Serialize};

use crate::scenario::calm;

/// Does what is asked.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Walker {}

#[actor(migrate)]
impl Walker {
    pub async fn walk(&mut self, cx: &Cx, to: String) -> Result<(), String> {
        cx.migrate_to(&to).map_err(|unmoved| unmoved.to_string())
    }

    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn doze(&mut self) {
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Walker>().configure(|config| config.long_turn = Duration::from_secs(2))
}

/// Waits until the node remembers an event of this name.
async fn remembers(node: &Node, event: &str) -> Event {
    loop {
        if let Some(found) = node.events(usize::MAX).into_iter().find(|known| known.event == event) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn each_node_remembers_who_joined_who_died_and_who_left() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let joined: Vec<String> =
            a.events(usize::MAX).into_iter().rev().filter_map(|event| event.subject.node).collect();
        assert_eq!(joined, ["a", "b", "c"], "in the order in which they came");
        cluster.sim.crash("c");
        let died = remembers(&a, "died").await;
        assert_eq!((died.level, died.subject.node.as_deref()), (Level::Bad, Some("c")), "{died:?}");
        assert!(a.events(usize::MAX).iter().any(|event| event.event == "suspected" && event.number < died.number));
        b.drain().await;
        let left = remembers(&a, "left").await;
        assert_eq!(left.subject.node.as_deref(), Some("b"));
        let draining = remembers(&a, "draining").await;
        assert!(draining.number < left.number && draining.at <= left.at, "{draining:?} {left:?}");
    });
}

#[test]
fn a_node_remembers_that_it_lost_its_lease() {
    calm(20, equip, |cluster| async move {
        let [_, _, c] = cluster.three();
        cluster.sim.partition(&["a", "b"], &["c"]);
        c.halted().await;
        let lost = remembers(&c, "lease-lost").await;
        assert_eq!((lost.level, lost.subject.node.as_deref()), (Level::Bad, Some("c")), "{lost:?}");
    });
}

#[test]
fn a_node_remembers_moves_that_were_asked_for_and_turns_that_ran_for_long() {
    calm(20, equip, |cluster| async move {
        let [a, _, _] = cluster.three();
        let walker = WalkerRef::of(&a, "w");
        let from = walker.place().await.expect("nothing is wrong");
        let to = if from == "b" { "c" } else { "b" };
        walker.walk(to.to_owned()).await.expect("nothing is wrong");
        while walker.place().await.as_deref() != Ok(to) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let moved = remembers(&cluster.node(&from).expect("it lives"), "moved").await;
        assert_eq!(moved.text, format!("walker/w has moved from {from} to {to}: it was asked for"));
        let target = cluster.node(to).expect("it lives");
        walker.doze().await.expect("it ends in time");
        let long = remembers(&target, "long-turn").await;
        assert!(long.text.starts_with("walker/w.doze has run for 2"), "{long:?}");
        assert_eq!(target.events(usize::MAX).iter().filter(|event| event.event == "long-turn").count(), 1, "once");
    });
}
