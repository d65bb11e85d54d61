//! Persistent actors of which both sides of a cut have saved: after the heal, reads show each acknowledged save.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::{Sim, SimStore, seeds};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::world::{World, run};

/// A number that is saved with each change, once as the actor and once in a field of its own.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(super) struct Tally {
    count: u64,
    field: Stored<Count>,
    /// Calls that this activation has answered.
    #[serde(skip)]
    answered: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Count(u64);

impl State for Count {}

#[actor(persistent, kind = "tally", idle = "300s")]
impl Tally {
    /// Saves the next number as the actor's state.
    pub async fn add(&mut self, cx: &Cx) -> Result<u64, StateError> {
        self.count += 1;
        cx.save(self).await?;
        self.answered += 1;
        Ok(self.count)
    }

    /// Saves the next number as the field.
    pub async fn add_to_field(&mut self, cx: &Cx) -> Result<u64, StateError> {
        self.field.0 += 1;
        self.field.save(cx).await?;
        Ok(self.field.0)
    }

    pub async fn counts(&self) -> (u64, u64) {
        (self.count, self.field.0)
    }

    pub async fn answered(&self) -> u64 {
        self.answered
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// Two clusters that keep tallies in one store, which no cut reaches.
async fn tallies(sim: &Sim) -> World {
    let store = SimStore::new(sim, "tallies", Arc::new(MemoryStore::new()));
    let all = super::world::CLUSTERS[..2].iter().map(|(name, nodes)| (*name, &nodes[..])).collect();
    let equip =
        move |builder: greenroom::Builder, node: &str| builder.register::<Tally>().state_store("", store.seen_by(node));
    let world = World::boot_of(sim, all, |_| {}, equip).await;
    world.all_answer(2).await;
    world
}

/// Saves both numbers once more at `node`. A conflict is answered as an error, and made again.
async fn add_both(world: &World, node: &str, key: &str) -> (u64, u64) {
    let tally = TallyRef::of(&world.node(node), key);
    let count = loop {
        if let Ok(count) = tally.add().await {
            break count;
        }
    };
    loop {
        if let Ok(field) = tally.add_to_field().await {
            return (count, field);
        }
    }
}

const KEYS: [&str; 3] = ["a", "b", "c"];

#[test]
fn after_a_heal_reads_show_what_both_sides_of_the_cut_have_saved() {
    seeds("after_a_heal_reads_show_what_both_sides_of_the_cut_have_saved", 12, |seed| {
        run(seed, move |sim| async move {
            let world = tallies(&sim).await;
            for key in KEYS {
                add_both(&world, "e1", key).await;
            }
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            let order = if seed % 2 == 0 { ["u1", "e1"] } else { ["e1", "u1"] };
            let mut acknowledged = Vec::new();
            for key in KEYS {
                add_both(&world, order[1], key).await;
                add_both(&world, order[0], key).await;
                acknowledged.push(add_both(&world, order[1], key).await);
            }
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            for (key, acknowledged) in KEYS.into_iter().zip(acknowledged) {
                for node in ["e1", "u1", "e2", "u2"] {
                    let seen = TallyRef::of(&world.node(node), key).counts().await.expect("it runs");
                    assert_eq!(seen, acknowledged, "{key} seen from {node}, last saved at {}", order[1]);
                }
            }
        });
    });
}

#[test]
fn after_a_heal_reads_show_what_an_instance_has_saved_that_ended_in_the_cut() {
    seeds("after_a_heal_reads_show_what_an_instance_has_saved_that_ended_in_the_cut", 12, |seed| {
        run(seed, move |sim| async move {
            let world = tallies(&sim).await;
            add_both(&world, "e1", "gone").await;
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            let acknowledged = add_both(&world, "u1", "gone").await;
            if seed % 2 == 0 {
                TallyRef::of(&world.node("u1"), "gone").leave().await.expect("it ends");
            } else {
                // With both nodes goes what their cluster knew of it.
                for node in ["u1", "u2"] {
                    world.cluster("us").stop(node);
                    world.cluster("us").start(node).await;
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let tally = TallyRef::of(&world.node("e1"), "gone");
            assert_eq!(tally.counts().await.expect("it runs"), acknowledged, "nobody has called it in us since");
            assert!(tally.node().await.expect("it runs").starts_with('e'));
        });
    });
}

#[test]
fn an_instance_that_nobody_else_has_saved_keeps_its_memory_over_a_cut() {
    seeds("an_instance_that_nobody_else_has_saved_keeps_its_memory_over_a_cut", 6, |seed| {
        run(seed, move |sim| async move {
            let world = tallies(&sim).await;
            for _ in 0..3 {
                add_both(&world, "e1", "calm").await;
            }
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let tally = TallyRef::of(&world.node("e1"), "calm");
            assert_eq!(tally.counts().await.expect("it runs"), (3, 3));
            assert_eq!(tally.answered().await.expect("it runs"), 3, "what is not stored is kept as well");
        });
    });
}
