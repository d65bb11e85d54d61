//! Actors that go to the cluster that calls them most.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Config};
use greenroom_sim::{Sim, SimStore, seeds};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::world::{CLUSTERS, World, run};

/// Entries that must not be lost.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Ledger {
    entries: BTreeSet<u64>,
}

#[actor(persistent, save = "turn", placement = "random")]
impl Ledger {
    /// Where it was entered.
    pub async fn enter(&mut self, cx: &Cx, entry: u64) -> String {
        self.entries.insert(entry);
        cx.node_name().to_owned()
    }

    pub async fn entries(&self) -> BTreeSet<u64> {
        self.entries.clone()
    }
}

/// Two clusters with one store for ledgers, of which the nodes are told if that is `said`.
async fn world(sim: &Sim, said: bool) -> World {
    let store = SimStore::new(sim, "ledgers", Arc::new(MemoryStore::new()));
    let change = move |config: &mut Config| {
        if let (true, Some(geo)) = (said, &mut config.geo) {
            geo.stores.insert("default".to_owned(), "eu".to_owned());
        }
    };
    let all = CLUSTERS[..2].iter().map(|(name, nodes)| (*name, &nodes[..])).collect();
    let equip = move |builder: Builder, node: &str| builder.register::<Ledger>().state_store("", store.seen_by(node));
    let world = World::boot_of(sim, all, change, equip).await;
    world.all_answer(2).await;
    world
}

/// Enters things for two minutes, from each cluster so many a second; in which cluster each one was entered, and how often one was given up
/// for the other's sake.
async fn enter(world: &World, a_second: [u64; 2]) -> (Vec<char>, u64) {
    let nodes = ["e1", "u1"].map(|name| world.node(name));
    let (mut at, mut entered) = (Vec::new(), 0);
    for _ in 0..120 {
        for (node, times) in nodes.iter().zip(a_second) {
            for _ in 0..times {
                let place = LedgerRef::of(node, "main").enter(entered).await.expect("it is entered");
                at.extend(place.chars().next());
                entered += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let entries = LedgerRef::of(&nodes[0], "main").entries().await.expect("it answers");
    assert!(entries.into_iter().eq(0..entered), "what was entered is there");
    let all = CLUSTERS[..2].iter().flat_map(|(_, nodes)| nodes);
    let given_up = all.map(|name| world.node(name).multi_cluster().expect("it is in one").counts.yielded).sum();
    (at, given_up)
}

#[test]
fn who_is_called_from_another_cluster_goes_there_and_nothing_is_lost_on_the_way() {
    seeds("who_is_called_from_another_cluster_goes_there", 10, |seed| {
        run(seed, |sim| async move {
            let world = world(&sim, true).await;
            LedgerRef::of(&world.node("e1"), "main").entries().await.expect("it begins in eu");
            let (at, given_up) = enter(&world, [1, 9]).await;
            assert_eq!(at[0], 'e');
            let last = &at[at.len() - 300..];
            assert!(last.iter().all(|cluster| *cluster == 'u'), "it is not in us: {last:?}");
            assert!((1..=3).contains(&given_up), "it was given up {given_up} times");
        });
    });
}

#[test]
fn who_is_called_from_both_clusters_stays() {
    seeds("who_is_called_from_both_clusters_stays", 5, |seed| {
        run(seed, |sim| async move {
            let world = world(&sim, true).await;
            LedgerRef::of(&world.node("e1"), "main").entries().await.expect("it begins in eu");
            let (at, given_up) = enter(&world, [4, 5]).await;
            assert_eq!((at.iter().all(|cluster| *cluster == 'e'), given_up), (true, 0));
        });
    });
}

#[test]
fn who_keeps_what_it_holds_in_a_store_that_may_be_its_clusters_own_stays_and_people_are_told() {
    seeds("who_keeps_what_it_holds_in_a_store_of_its_cluster_stays", 2, |seed| {
        run(seed, |sim| async move {
            let world = world(&sim, false).await;
            LedgerRef::of(&world.node("e1"), "main").entries().await.expect("it begins in eu");
            let (at, given_up) = enter(&world, [0, 9]).await;
            assert_eq!((at.iter().all(|cluster| *cluster == 'e'), given_up), (true, 0));
            let mut far = Vec::new();
            for name in CLUSTERS[..2].iter().flat_map(|(_, nodes)| *nodes) {
                far.extend(world.node(name).advice(1).await.far);
            }
            let [far] = &far[..] else { panic!("one node is told that a home would help: {far:?}") };
            assert_eq!((&*far.kind, &*far.cluster, far.actors), ("ledger", "us", 1));
        });
    });
}
