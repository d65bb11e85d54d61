//! Where an actor is: one activation whoever asks, found again when it has moved, kept when its directory moves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::Builder;
use greenroom::prelude::*;

use crate::cluster::Cluster;
use crate::scenario::calm;

/// Remembers what it was told, where it was first called.
#[derive(Default, Actor)]
struct Guest {
    heard: Vec<u64>,
}

#[actor(placement = "local", idle = "1h")]
impl Guest {
    /// Its activation takes a while.
    async fn activated(&mut self) -> Result<(), String> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }

    pub async fn hear(&mut self, number: u64) {
        self.heard.push(number);
    }

    /// Its node, its activation, and what it has heard.
    pub async fn tell(&self, cx: &Cx) -> (String, u64, Vec<u64>) {
        (cx.node_name().to_owned(), cx.epoch(), self.heard.clone())
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Guest>()
}

/// What a guest tells, as soon as it does.
async fn told(node: &Node, key: u64) -> (String, u64, Vec<u64>) {
    loop {
        match GuestRef::of(node, key).tell().by(Duration::from_secs(1)).await {
            Ok(told) => return told,
            Err(CallError::Refused(_) | CallError::Unknown(_)) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(other) => panic!("guest {key}: {other}"),
        }
    }
}

/// As many activations as there are, on all nodes.
fn activations(cluster: &Cluster, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| cluster.node(name)).map(|node| node.activations()).sum()
}

#[test]
fn racing_first_calls_from_all_nodes_activate_once() {
    calm(40, equip, |cluster| async move {
        let nodes = cluster.three();
        for key in 0..5 {
            let calls = nodes.iter().flat_map(|node| (0..4).map(move |_| GuestRef::of(node, key).tell().into_future()));
            let answers: BTreeSet<_> = join_all(calls).await.into_iter().map(|told| told.unwrap()).collect();
            assert_eq!(answers.len(), 1, "{answers:?}");
        }
        assert_eq!(activations(&cluster, &["a", "b", "c"]), 5);
    });
}

#[test]
fn first_calls_that_race_with_a_joining_node_activate_once_and_none_is_lost() {
    calm(40, equip, |cluster| async move {
        let nodes = cluster.three();
        cluster.restart("d");
        let mut random = cluster.sim.random();
        let mut registered = Vec::new();
        for key in 0..60 {
            let calls = nodes.iter().map(|node| told(node, key));
            let answers: BTreeSet<_> = join_all(calls).await.into_iter().collect();
            assert_eq!(answers.len(), 1, "guest {key}: {answers:?}");
            registered.extend(answers);
            tokio::time::sleep(random.within(&(Duration::ZERO..Duration::from_millis(60)))).await;
        }
        cluster.settled(&["a", "b", "c", "d"]).await;
        let d = cluster.node("d").expect("it has joined");
        for (key, before) in registered.iter().enumerate() {
            assert_eq!(&told(&d, key as u64).await, before, "guest {key} was handed over with its range");
        }
        assert_eq!(activations(&cluster, &["a", "b", "c", "d"]), 60, "and nothing was activated twice");
    });
}

#[test]
fn an_actor_outlives_the_owner_of_its_range_and_the_newest_activation_is_kept() {
    calm(40, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let mut before = Vec::new();
        for key in 0..40 {
            // Some have been elsewhere before: an older entry of theirs may still be about.
            if key % 2 == 0 {
                told(&b, key).await;
                GuestRef::of(&b, key).leave().await.unwrap();
            }
            GuestRef::of(&a, key).hear(key).await.unwrap();
            before.push(told(&a, key).await);
        }
        // It owns a third of the ranges.
        cluster.sim.crash("c");
        let mut kept = 0;
        for (key, before) in before.iter().enumerate() {
            let after = told(&b, key as u64).await;
            assert!(after.0 != "c" && before.0 != "c", "nobody was ever there");
            assert_eq!(&after, before, "guest {key} has its activation still");
            kept += 1;
        }
        assert_eq!(kept, 40);
    });
}

#[test]
fn an_actor_that_leaves_while_its_range_moves_does_not_take_its_successor_along() {
    calm(40, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        for key in 0..30 {
            told(&a, key).await;
        }
        cluster.restart("d");
        let mut random = cluster.sim.random();
        for key in 0..30 {
            let _ = GuestRef::of(&a, key).leave().by(Duration::from_secs(1)).await;
            told(&b, key).await;
            tokio::time::sleep(random.within(&(Duration::ZERO..Duration::from_millis(80)))).await;
        }
        cluster.settled(&["a", "b", "c", "d"]).await;
        // Late removals, if any, have arrived.
        tokio::time::sleep(Duration::from_secs(5)).await;
        for key in 0..30 {
            let from_everywhere = ["a", "b", "c", "d"].map(|name| cluster.node(name).expect("it is up"));
            let answers: BTreeSet<_> =
                join_all(from_everywhere.iter().map(|node| told(node, key))).await.into_iter().collect();
            assert_eq!(answers.len(), 1, "guest {key}: {answers:?}");
        }
        assert_eq!(activations(&cluster, &["a", "b", "c", "d"]), 30);
    });
}

#[test]
fn a_place_that_a_caller_remembers_wrongly_is_healed_by_its_next_call() {
    calm(40, equip, |cluster| async move {
        let [a, b, c] = cluster.three();
        for key in 0..10 {
            assert_eq!(told(&b, key).await.0, "b");
            assert_eq!(told(&c, key).await.0, "b", "c has learnt where it is");
            GuestRef::of(&b, key).leave().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(told(&a, key).await.0, "a", "it has moved");
            let found = GuestRef::of(&c, key).tell().await.map(|told| told.0);
            assert_eq!(found, Ok("a".to_owned()), "not refused, not in doubt, and not activated anew");
        }
    });
}

#[test]
fn a_place_on_an_earlier_incarnation_of_a_node_is_healed() {
    calm(40, equip, |cluster| async move {
        let [_, b, c] = cluster.three();
        let first = told(&b, 1).await;
        told(&c, 1).await;
        cluster.sim.crash("b");
        cluster.start("b").await;
        cluster.settled(&["a", "b", "c"]).await;
        let again = told(&c, 1).await;
        assert!(again.1 > first.1, "another activation, under a higher epoch: {first:?}, {again:?}");
        assert_eq!(activations(&cluster, &["a", "b", "c"]), 1);
    });
}

#[test]
fn a_one_way_message_to_an_actor_that_has_moved_arrives() {
    calm(40, equip, |cluster| async move {
        let [a, b, c] = cluster.three();
        for key in 0..10 {
            told(&b, key).await;
            told(&c, key).await;
            GuestRef::of(&b, key).leave().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            told(&a, key).await;
            for number in 0..5 {
                GuestRef::of(&c, key).hear(number).send();
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(told(&a, key).await, ("a".to_owned(), told(&c, key).await.1, vec![0, 1, 2, 3, 4]));
        }
    });
}

/// Counts how often it is made.
struct Counted {
    made: Arc<AtomicU64>,
}

impl Actor for Counted {}

#[actor(workers = 3)]
impl Counted {
    pub async fn work(&mut self, cx: &Cx) -> String {
        tokio::time::sleep(Duration::from_millis(20)).await;
        format!("{} {}", cx.node_name(), self.made.load(Ordering::Relaxed))
    }
}

#[test]
fn stateless_workers_work_on_the_callers_own_node_and_are_no_more_than_told() {
    let equip = |builder: Builder, _: &str| {
        let made = Arc::new(AtomicU64::new(0));
        builder.register_with(move |_| {
            made.fetch_add(1, Ordering::Relaxed);
            Counted { made: made.clone() }
        })
    };
    calm(20, equip, |cluster| async move {
        for node in cluster.three() {
            let calls = (0..12).map(|_| CountedRef::of(&node, "any").work().into_future());
            for place in join_all(calls).await {
                let place = place.unwrap();
                assert_eq!(place.split(' ').next(), Some(node.name()));
            }
            assert!(node.activations() <= 3, "{} workers", node.activations());
        }
    });
}
