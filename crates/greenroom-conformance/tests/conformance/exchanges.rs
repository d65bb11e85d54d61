//! Actors that talk with each other come to live on one node, and stay what they are on the way.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom::{Brought, Builder, Inspected, Inspection, Node};
use greenroom_sim::Faults;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::{calm, run};

/// Talks with another one, and counts what it has heard.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Pal {
    heard: u64,
}

#[actor(migrate, placement = "random", idle = "30s")]
impl Pal {
    pub async fn tell(&mut self, cx: &Cx, other: String) -> u64 {
        PalRef::of(cx, other.as_str()).hear().await.unwrap_or_default()
    }

    pub async fn hear(&mut self) -> u64 {
        self.heard += 1;
        self.heard
    }

    pub async fn stay(&self, cx: &Cx, seconds: u64) {
        cx.pin(Duration::from_secs(seconds));
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// Is told things, and moves nevertheless: its keys say where it begins alone.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Ear {}

#[actor(migrate, placement = "hash", optimise)]
impl Ear {
    pub async fn hear(&mut self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// Tells one [`Ear`] things, and stays where it is.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Rock {}

#[actor(migrate, placement = "random", pinned)]
impl Rock {
    pub async fn tell(&mut self, cx: &Cx, other: String) -> [String; 2] {
        let other = EarRef::of(cx, other.as_str()).hear().await.unwrap_or_default();
        [cx.node_name().to_owned(), other]
    }
}

/// The same as [`Pal`], of a kind that is to stay where it is.
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
    let builder = builder.register::<Pal>().register::<Post>().register::<Ear>().register::<Rock>();
    builder.configure(|config| {
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
        // Nobody goes who is where it wants to be: pairs may go on as a whole to the node that calls them, once.
        let mut rounds = 0;
        loop {
            let before = moves(&cluster);
            talk(&a, 200, &mut heard).await;
            rounds += 1;
            if together(&a).await == PAIRS && moves(&cluster) == before {
                break;
            }
            assert!(rounds < 15, "{} of {PAIRS} are together, and some move", together(&a).await);
        }
        let most = moves(&cluster);
        assert!(most <= 4 * PAIRS, "{most} moves of {PAIRS} pairs");
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

#[test]
fn a_pinned_kind_stays_and_others_come_to_it_however_they_are_placed() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        let mut seen = vec![BTreeSet::new(); PAIRS];
        let mut apart = PAIRS;
        for _ in 0..900 {
            apart = 0;
            for (pair, seen) in seen.iter_mut().enumerate() {
                let [rock, ear] = RockRef::of(&a, names(pair).0).tell(names(pair).1).await.expect("it answers");
                apart += usize::from(rock != ear);
                seen.insert(rock);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(seen.iter().all(|nodes| nodes.len() == 1), "pinned ones have moved: {seen:?}");
        assert_eq!(apart, 0, "some have not come to those that are pinned");
    });
}

/// The node that has the actor, and what it says of it.
async fn inspected(cluster: &Cluster, key: &str) -> (Node, Inspection) {
    for node in cluster.three() {
        if let Inspected::Here(found) = node.inspect("pal", key).await {
            return (node, *found);
        }
    }
    panic!("no node has {key}")
}

#[test]
fn an_actor_that_asks_to_stay_stays_so_long_and_says_why_it_moved_then() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        let mut heard = [0; PAIRS];
        talk(&a, 1, &mut heard).await;
        let mut began = Vec::new();
        for pair in 0..PAIRS {
            for name in [names(pair).0, names(pair).1] {
                PalRef::of(&a, name.as_str()).stay(120).await.expect("it answers");
                began.push((PalRef::of(&a, name.as_str()).node().await.expect("it answers"), name));
            }
        }
        talk(&a, 600, &mut heard).await;
        assert_eq!(moves(&cluster), 0, "who asked to stay has moved");
        let apart: Vec<usize> = (0..PAIRS).filter(|pair| began[2 * pair].0 != began[2 * pair + 1].0).collect();
        for pair in &apart {
            // The first ones have callers here, the second ones nobody but them.
            let (node, found) = inspected(&cluster, &names(*pair).1).await;
            let advice = node.explain("pal", names(*pair).1).await.expect("it is hot");
            assert!(advice.why.ends_with("it has asked to stay on this node"), "{}", advice.why);
            assert!(found.brought.is_none() && advice.brought.is_none(), "{found:?}");
        }
        for _ in 0..6 {
            talk(&a, 200, &mut heard).await;
        }
        assert_eq!(together(&a).await, PAIRS, "{apart:?} were apart");
        for pair in apart {
            let mut brought = Vec::new();
            for (_, name) in &began[2 * pair..2 * pair + 2] {
                brought.extend(inspected(&cluster, name).await.1.brought);
            }
            assert!(!brought.is_empty(), "pair {pair} is together, and neither has come");
            for Brought { from, why, .. } in &brought {
                assert!(cluster.three().iter().any(|node| node.name() == from), "{from}");
                let known =
                    ["% of its last messages went here", "it came with all 2 that talk mostly among themselves"];
                assert!(known.iter().any(|known| why.contains(known)), "{why}");
            }
        }
    });
}

/// As [`optimised`], of nodes of which one alone moves actors.
fn one_moves(builder: Builder, name: &str) -> Builder {
    let mode = if name == "a" { OptimiserMode::On } else { OptimiserMode::Advise };
    optimised(builder, name).configure(|config| config.optimiser.mode = mode)
}

/// The key of an actor that `is_there`, as its node's name goes.
async fn placed(node: &Node, is_there: impl Fn(&str) -> bool) -> String {
    let mut number = 0;
    loop {
        let key = format!("eve{number}");
        if is_there(&PalRef::of(node, key.as_str()).node().await.expect("it answers")) {
            return key;
        }
        number += 1;
    }
}

#[test]
fn who_would_do_better_on_a_node_that_takes_nobody_says_so_and_who_has_ended_says_nothing() {
    calm(5, one_moves, async |cluster| {
        let [a, ..] = cluster.three();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let (near, far) = (placed(&a, |node| node == "a").await, placed(&a, |node| node != "a").await);
        for _ in 0..100 {
            PalRef::of(&a, far.as_str()).tell(near.clone()).await.expect("it answers");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let advice = a.explain("pal", near.as_str()).await.expect("it is hot");
        let there = &advice.places[0].0;
        assert!(advice.why.contains(&format!("would do better at {there}")), "{}", advice.why);
        assert!(
            advice.why.contains(&format!("but {there} takes nobody: its optimiser is off, paused")),
            "{}",
            advice.why
        );
        assert!(!a.advice(1).await.paused);
        a.pause_optimiser(true);
        assert!(a.advice(1).await.paused);
        let advice = a.explain("pal", near.as_str()).await.expect("it is hot");
        assert!(advice.why.ends_with("the optimiser of this node is paused"), "{}", advice.why);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(a.activations(), 0, "they are idle");
        assert_eq!(a.explain("pal", near.as_str()).await, None);
    });
}

#[test]
fn who_has_come_to_a_node_of_one_shard_has_no_messages_with_others() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        let mut heard = [0; PAIRS];
        while moves(&cluster) == 0 {
            talk(&a, 1, &mut heard).await;
        }
        for moved in cluster.three().iter().flat_map(Node::moved_actors) {
            let key = moved.actor.strip_prefix("pal/").expect("pals move alone");
            let at = PalRef::of(&a, key).node().await.expect("it answers");
            let node = cluster.three().into_iter().find(|node| node.name() == at).expect("it is one of them");
            let advice = node.explain("pal", key).await.expect("what was known of it came along");
            assert_eq!(advice.beside, 0.0, "{advice:?}");
            let kinds = node.advice(0).await.shards.into_iter().flat_map(|shard| shard.kinds);
            assert!(kinds.into_iter().all(|kind| kind.beside == 0.0));
        }
    });
}

#[test]
fn an_actor_that_was_idle_goes_on_where_it_had_moved() {
    calm(5, optimised, async |cluster| {
        let [a, ..] = cluster.three();
        for _ in 0..6 {
            talk(&a, 200, &mut [0; PAIRS]).await;
        }
        let moved: BTreeSet<_> = cluster.three().iter().flat_map(Node::moved_actors).map(|moved| moved.actor).collect();
        assert!(!moved.is_empty(), "nobody has moved");
        let pal = |actor: &str| PalRef::of(&a, actor.strip_prefix("pal/").expect("pals move alone"));
        let mut went = Vec::new();
        for actor in &moved {
            went.push((actor, pal(actor).node().await.expect("it answers")));
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(cluster.three().iter().all(|node| node.activations() == 0), "they are idle");
        for (actor, to) in went {
            assert_eq!(pal(actor).node().await.expect("it answers"), to, "{actor}");
        }
    });
}

#[test]
fn actors_that_talk_with_each_other_leave_together() {
    calm(10, optimised, async |cluster| {
        let nodes = cluster.three();
        let [a, b, _] = &nodes;
        let mut rounds = 0;
        loop {
            let before = moves(&cluster);
            for _ in 0..200 {
                for (pair, caller) in (0..PAIRS).zip(nodes.iter().cycle()) {
                    let (ada, bob) = names(pair);
                    PalRef::of(caller, ada.as_str()).tell(bob).await.expect("it answers");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            rounds += 1;
            if together(a).await == PAIRS && moves(&cluster) == before {
                break;
            }
            assert!(rounds < 15, "{} of {PAIRS} are together, and some move", together(a).await);
        }
        let leaving = b.activations();
        assert!(b.drain().await.is_whole());
        assert_eq!(together(a).await, PAIRS, "{leaving} left");
    });
}
