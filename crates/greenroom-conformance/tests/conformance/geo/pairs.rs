//! Clusters and what else an actor may use, at one instance over two clusters.

use std::cell::RefCell;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Refusal, ReminderError};
use greenroom_sim::{Sim, seeds, test_name};
use serde::{Deserialize, Serialize};

use super::world::{CLUSTERS, World, run};

thread_local! {
    /// Nodes on which turns of timers and reminders have run, in order.
    static RANG: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// An actor that notes where its timers and reminders find it.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Courier {}

#[actor(migrate, placement = "local", idle = "60s")]
impl Courier {
    pub async fn ring(&mut self, cx: &Cx, by: String) {
        RANG.with_borrow_mut(|rang| rang.push((by, cx.node_name().to_owned())));
    }

    pub async fn set_timer(&mut self, cx: &Cx) -> Result<(), Refusal> {
        cx.after(Duration::from_secs(1), CourierRef::me(cx).ring("timer")).map(drop)
    }

    pub async fn set_reminder(&mut self, cx: &Cx) -> Result<(), ReminderError> {
        CourierRef::me(cx).ring("reminder").after(Duration::from_secs(3)).named("ring").await
    }

    pub async fn move_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

async fn world(sim: &Sim) -> World {
    RANG.take();
    let all = CLUSTERS[..2].iter().map(|(name, nodes)| (*name, &nodes[..])).collect();
    let world = World::boot_of(sim, all, |_| {}, |builder: Builder, _| builder.register::<Courier>()).await;
    world.all_answer(2).await;
    world
}

#[test]
fn timers_and_reminders_run_once_at_the_one_instance_wherever_they_were_set_from() {
    seeds(&test_name(), 3, |seed| {
        run(seed, |sim| async move {
            let world = world(&sim).await;
            assert_eq!(CourierRef::of(&world.node("e1"), "x").node().await.as_deref(), Ok("e1"));
            let from_us = CourierRef::of(&world.node("u1"), "x");
            from_us.set_timer().await.unwrap();
            from_us.set_reminder().await.unwrap();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let rang = RANG.take();
            let expected = ["timer", "reminder"].map(|by| (by.to_owned(), "e1".to_owned()));
            assert_eq!(rang, expected);
        });
    });
}

#[test]
fn an_actor_moves_within_its_cluster_and_is_found_from_the_other() {
    seeds(&test_name(), 3, |seed| {
        run(seed, |sim| async move {
            let world = world(&sim).await;
            let from_us = CourierRef::of(&world.node("u1"), "x");
            assert_eq!(CourierRef::of(&world.node("e1"), "x").node().await.as_deref(), Ok("e1"));
            let refused = from_us.move_to("u1").await.unwrap_err().to_string();
            assert!(refused.contains("no node called \"u1\""), "{refused}");
            from_us.move_to("e2").await.unwrap();
            while from_us.node().await.as_deref() != Ok("e2") {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    });
}
