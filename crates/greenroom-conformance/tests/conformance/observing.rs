//! What a node remembers of what happened to it and its cluster, and what it finds wrong.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Event, Level, Node};
use serde::{Deserialize, Serialize};

use crate::scenario::{calm, calm_over};

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

    pub async fn fail(&mut self, fails: bool) -> Result<(), String> {
        if fails { Err("as it was asked to".to_owned()) } else { Ok(()) }
    }

    pub async fn ask(&mut self, cx: &Cx, other: String) -> Result<(), String> {
        // The other one is asked once it asks this one.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let asked = WalkerRef::of(cx, other).by_itself().by(Duration::from_secs(8)).await;
        asked.map_err(|error| error.to_string())
    }

    pub async fn by_itself(&mut self) {}
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

/// Waits until the checks that `node` finds something by are these.
async fn finds(node: &Node, checks: &[&str]) {
    loop {
        let found = node.findings();
        let found: Vec<&str> = found.iter().map(|finding| &*finding.check).collect();
        if found == checks {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Checks that nothing is found in so many seconds.
async fn finds_nothing_for(node: &Node, seconds: u64) {
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(node.findings().is_empty(), "{:?}", node.findings());
    }
}

#[test]
fn a_node_that_died_is_a_finding_until_it_is_back_and_one_that_left_is_none() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        b.drain().await;
        finds_nothing_for(&a, 20).await;
        cluster.stop("c");
        finds(&a, &["member-silent"]).await;
        let [finding] = &a.findings()[..] else { panic!("one") };
        assert_eq!((finding.level, finding.subject.node.as_deref()), (Level::Bad, Some("c")), "{finding:?}");
        cluster.start("c").await;
        finds(&a, &[]).await;
    });
}

fn equip_with_a_long_lease(builder: Builder, name: &str) -> Builder {
    equip(builder, name).configure(|config| config.lease = Duration::from_secs(40))
}

#[test]
fn a_table_that_does_not_answer_is_a_finding_until_it_does() {
    calm(20, equip_with_a_long_lease, |cluster| async move {
        let [a, ..] = cluster.three();
        finds_nothing_for(&a, 20).await;
        cluster.store.serve(false);
        let failing = || a.findings().iter().any(|finding| finding.check == "table-failing");
        while !failing() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        cluster.store.serve(true);
        // The outage may have cost it its lease, and then it looks no more.
        while failing() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let told = |event: &str| a.events(usize::MAX).iter().filter(|known| known.event == event).count();
        assert_eq!(told("table-failing"), 1, "{:?}", a.events(9));
        assert!(a.is_stopped() || told("over") > 0, "{:?}", a.events(9));
    });
}

#[test]
fn a_method_that_fails_mostly_is_a_finding_and_one_that_fails_now_and_then_is_none() {
    calm(10, equip, |cluster| async move {
        let nodes = cluster.three();
        // The optimiser may move it.
        let found = || nodes.iter().flat_map(Node::findings).collect::<Vec<_>>();
        let walker = WalkerRef::of(&nodes[0], "w");
        for call in 0..600 {
            let _ = walker.fail(call % 25 == 0).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(found().is_empty(), "four in a hundred: {:?}", found());
        while found().is_empty() {
            assert!(walker.fail(true).await.is_err());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let [finding] = &found()[..] else { panic!("one") };
        assert_eq!(finding.check, "method-failing", "{finding:?}");
        assert_eq!(finding.subject.method.as_deref(), Some("fail"), "{finding:?}");
    });
}

#[test]
fn turns_that_wait_for_each_other_are_a_finding_and_one_that_takes_long_is_no_deadlock() {
    calm_over(&["a"], 20, equip, |cluster| async move {
        let a = cluster.node("a").expect("it was started");
        let dozing = WalkerRef::of(&a, "d").doze();
        let found = async {
            finds(&a, &["long-turn"]).await;
        };
        let (dozed, ()) = tokio::join!(dozing, found);
        dozed.expect("it ends in time");
        finds(&a, &[]).await;
        let (one, other) = (WalkerRef::of(&a, "1"), WalkerRef::of(&a, "2"));
        let limit = Duration::from_secs(20);
        let asking = async { tokio::join!(one.ask("2".to_owned()).by(limit), other.ask("1".to_owned()).by(limit)) };
        let found = async {
            finds(&a, &["deadlock", "long-turn", "long-turn"]).await;
        };
        let ((one, other), ()) = tokio::join!(asking, found);
        assert!(one.is_err() || other.is_err(), "a deadline ends it");
        finds(&a, &[]).await;
    });
}
