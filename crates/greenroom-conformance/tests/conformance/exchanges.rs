//! Actors that talk with each other come to live on one node, and stay what they are on the way.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom::{Builder, Node};
use greenroom_sim::Faults;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::{calm, run};

/// Talks with another one, and counts what it has heard.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Pal {
    heard: u64,
}

#[actor(migrate, placement = "random")]
impl Pal {
    pub async fn tell(&mut self, cx: &Cx, other: String) -> u64 {
        PalRef::of(cx, other.as_str()).hear().await.unwrap_or_default()
    }

    pub async fn hear(&mut self) -> u64 {
        self.heard += 1;
        self.heard
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// The same, of a kind that is to stay where it is.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Post {}

#[actor(migrate, placement = "random")]
impl Post {
    pub async fn tell(&mut self, cx: &Cx, other: String) {
        let _ = PostRef::of(cx, other.as_str()).hear().await;
    }

    pub async fn hear(&mut self) {}

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn optimised(builder: Builder, name: &str) -> Builder {
    let _ = name;
    builder.register::<Pal>().register::<Post>().configure(|config| {
        config.optimiser.mode = OptimiserMode::On;
        config.kinds.entry("post".to_owned()).or_default().optimise = Some(false);
    })
}

const PAIRS: usize = 6;

fn names(pair: usize) -> (String, String) {
    (format!("ada{pair}"), format!("bob{pair}"))
}

/// Lets all pairs talk for so many rounds, as long as all nodes live; `heard` is the most that each of the second ones has said that it heard, which
/// must only rise.
async fn talk(node: &Node, rounds: u32, heard: &mut [u64; PAIRS]) {
    for _ in 0..rounds {
        // What was in the memory of a node goes with it.
        if node.members().len() < 3 {
            return;
        }
        for (pair, most) in heard.iter_mut().enumerate() {
            let (ada, bob) = names(pair);
            // What is lost on the way is nobody's fault here.
            if let Ok(now) = PalRef::of(node, ada.as_str()).tell(bob).await
                && now > 0
            {
                assert!(now > *most, "pair {pair} heard {now} after {most}: what it carried is older than it was");
                *most = now;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How many pairs are together.
async fn together(node: &Node) -> usize {
    let mut together = 0;
    for pair in 0..PAIRS {
        let (ada, bob) = names(pair);
        let (ada, bob) = (PalRef::of(node, ada.as_str()).node().await, PalRef::of(node, bob.as_str()).node().await);
        together += usize::from(ada.is_ok() && ada.ok() == bob.ok());
    }
    together
}

fn moves(cluster: &Cluster) -> usize {
    cluster.three().iter().map(|node| node.moved_actors().len()).sum()
}

#[test]
fn actors_that_talk_with_each_other_come_to_live_on_one_node() {
    calm(10, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        let mut heard = [0; PAIRS];
        let mut minutes = 0;
        loop {
            talk(&a, 200, &mut heard).await;
            minutes += 1;
            if together(&a).await == PAIRS {
                break;
            }
            assert!(minutes < 15, "some pairs are still apart: {} of {PAIRS} are together", together(&a).await);
        }
        // Nobody goes who is where it wants to be.
        let before = moves(&cluster);
        talk(&a, 200, &mut heard).await;
        assert_eq!((together(&a).await, moves(&cluster)), (PAIRS, before));
        for moved in cluster.three().iter().flat_map(Node::moved_actors) {
            assert!(moved.actor.starts_with("pal/") && moved.from != moved.to, "{moved:?}");
        }
    });
}

#[test]
fn what_an_actor_has_counted_never_falls_while_exchanges_move_it_over_bad_links() {
    let faults = Faults { store: Faults::none().store, ..Faults::rough() };
    run(10, faults, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        talk(&a, 600, &mut [0; PAIRS]).await;
    });
}

#[test]
fn a_kind_that_is_not_to_be_optimised_stays_where_it_is() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        let mut seen = vec![BTreeSet::new(); PAIRS];
        for _ in 0..600 {
            for (pair, seen) in seen.iter_mut().enumerate() {
                let (ada, bob) = names(pair);
                let ada = PostRef::of(&a, ada.as_str());
                ada.tell(bob).await.expect("it answers");
                seen.insert(ada.node().await.expect("it answers"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(seen.iter().all(|nodes| nodes.len() == 1), "some have moved: {seen:?}");
    });
}

#[test]
fn nobody_moves_while_the_optimisers_pause_and_all_come_together_when_they_go_on() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        cluster.three().iter().for_each(|node| node.pause_optimiser(true));
        let mut heard = [0; PAIRS];
        talk(&a, 600, &mut heard).await;
        let apart = together(&a).await;
        assert_eq!(moves(&cluster), 0);
        cluster.three().iter().for_each(|node| node.pause_optimiser(false));
        for _ in 0..15 {
            talk(&a, 200, &mut heard).await;
        }
        assert_eq!(together(&a).await, PAIRS, "{apart} were before");
    });
}
