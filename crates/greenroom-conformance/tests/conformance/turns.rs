//! Turns on several nodes: exclusive ones alone, reads beside each other, messages in order.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::scenario::{calm, rough};

/// Keeps a list, and says when two turns were inside at once.
#[derive(Default, Actor)]
struct Notes {
    all: Vec<(String, u64)>,
    inside: u64,
}

#[actor(placement = "random")]
impl Notes {
    /// Takes a while, with a half-done state in between.
    pub async fn write(&mut self, by: String, number: u64) -> u64 {
        self.inside += 1;
        tokio::time::sleep(Duration::from_millis(number % 7)).await;
        self.inside -= 1;
        self.all.push((by, number));
        self.inside
    }

    /// How many turns are half done.
    pub async fn halves(&self) -> u64 {
        tokio::time::sleep(Duration::from_millis(3)).await;
        self.inside
    }

    /// Takes a second, which two reads may spend together.
    pub async fn linger(&self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    pub async fn all(&self) -> Vec<(String, u64)> {
        self.all.clone()
    }
}

#[test]
fn reads_from_several_nodes_interleave_and_writes_do_not() {
    calm(
        20,
        |builder, _| builder.register::<Notes>(),
        |cluster| async move {
            let nodes = cluster.three();
            // Until it is active the first call alone is under way.
            NotesRef::of(&nodes[0], "x").all().await.unwrap();
            let began = cluster.sim.now();
            let reads = nodes.iter().flat_map(|node| [NotesRef::of(node, "x"), NotesRef::of(node, "x")]);
            for read in join_all(reads.map(|notes| notes.linger().into_future())).await {
                read.unwrap();
            }
            assert!(cluster.sim.now() - began < Duration::from_millis(1500), "six reads took their second together");
            let writes = nodes.iter().flat_map(|node| (0..8).map(|n| NotesRef::of(node, "x").write("one", n)));
            let reads = nodes.iter().flat_map(|node| (0..8).map(|_| NotesRef::of(node, "x").halves()));
            let (writes, reads) = tokio::join!(
                join_all(writes.map(IntoFuture::into_future)),
                join_all(reads.map(IntoFuture::into_future))
            );
            assert!(writes.into_iter().all(|inside| inside.unwrap() == 0), "no write saw another half done");
            assert!(reads.into_iter().all(|inside| inside.unwrap() == 0), "no read saw a write half done");
        },
    );
}

#[test]
fn one_callers_messages_arrive_in_the_order_they_were_sent_from_any_node() {
    calm(
        20,
        |builder, _| builder.register::<Notes>(),
        |cluster| async move {
            let nodes = cluster.three();
            NotesRef::of(&nodes[0], "x").all().await.unwrap();
            for number in 0..50 {
                for node in &nodes {
                    NotesRef::of(node, "x").write(node.name(), number).send();
                }
            }
            let all = loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let all = NotesRef::of(&nodes[0], "x").all().await.unwrap();
                if all.len() == 150 {
                    break all;
                }
            };
            in_order(&all);
        },
    );
}

#[test]
fn one_callers_messages_keep_their_order_when_they_find_a_shorter_way() {
    calm(
        20,
        |builder, _| builder.register::<Notes>(),
        |cluster| async move {
            let nodes = cluster.three();
            let mut random = cluster.sim.random();
            const KEYS: u64 = 12;
            let kept: Vec<Vec<NotesRef>> =
                nodes.iter().map(|node| (0..KEYS).map(|key| NotesRef::of(node, key)).collect()).collect();
            for number in 0..40 {
                for (node, kept) in nodes.iter().zip(&kept) {
                    for key in 0..KEYS {
                        let made = NotesRef::of(node, key);
                        let notes = if random.chance(0.5) { &made } else { &kept[key as usize] };
                        match random.chance(0.1) {
                            true => drop(notes.write(node.name(), number).await.unwrap()),
                            false => notes.write(node.name(), number).send(),
                        }
                    }
                }
                tokio::time::sleep(random.within(&(Duration::ZERO..Duration::from_millis(4)))).await;
            }
            for key in 0..KEYS {
                let all = loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let all = NotesRef::of(&nodes[0], key).all().await.unwrap();
                    if all.len() == 120 {
                        break all;
                    }
                };
                in_order(&all);
            }
        },
    );
}

#[test]
fn a_call_in_doubt_runs_soon_or_never() {
    rough(
        20,
        |builder, _| builder.register::<Notes>(),
        |cluster| async move {
            let mut doubts = 0;
            for number in 0..40 {
                for name in ["a", "b"] {
                    let Some(node) = cluster.node(name) else { continue };
                    let told = NotesRef::of(&node, "x").write(name, number).by(Duration::from_secs(1)).await;
                    if told.is_err() {
                        doubts += 1;
                        // The rest of its time, and that of the slowest frame: what comes after that is refused as late.
                        tokio::time::sleep(Duration::from_secs(4)).await;
                    }
                }
            }
            cluster.sim.note(format_args!("{doubts} in doubt"));
            let Some(node) = cluster.node("a") else { return };
            if let Ok(all) = NotesRef::of(&node, "x").all().await {
                in_order(&all);
            }
        },
    );
}

/// Each writer's numbers rise.
fn in_order(all: &[(String, u64)]) {
    let mut last = BTreeMap::new();
    for (by, number) in all {
        let before = last.insert(by, number);
        assert!(before < Some(number), "{by} wrote {number} after {before:?}: {all:?}");
    }
}
