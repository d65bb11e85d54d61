//! Clusters that are lost together, over two cuts: no two of them own one actor, and the list goes on.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use greenroom::{ClusterChange, MultiCluster};
use greenroom_sim::{Sim, seeds};

use super::world::{SafeRef, World, run};

type Listed = (&'static str, &'static [&'static str]);

const FIVE: [Listed; 5] =
    [("ash", &["a1"]), ("beech", &["b1"]), ("cedar", &["c1"]), ("dogwood", &["d1"]), ("elm", &["e1"])];
const LOST_AFTER: Duration = Duration::from_secs(20);

/// Clusters of one node each, of which the last but one owns a safe that it goes on to call.
struct Grove {
    sim: Sim,
    world: World,
    over: Rc<Cell<bool>>,
}

impl Grove {
    async fn start(sim: &Sim, count: usize) -> Self {
        let change = |config: &mut greenroom::Config| {
            if let Some(geo) = &mut config.geo {
                geo.lost_after = LOST_AFTER;
            }
        };
        let world = World::boot_of(sim, FIVE[..count].to_vec(), change, |builder, _| builder).await;
        let grove = Self { sim: sim.clone(), world, over: Rc::default() };
        for (_, nodes) in &FIVE[..count] {
            grove.until(nodes[0], |status| status.clusters.iter().all(|cluster| cluster.answers)).await;
        }
        let (owner, over) = (grove.world.node("d1"), grove.over.clone());
        while SafeRef::of(&owner, "safe").post("it is owned here").await.is_err() {}
        sim.spawn(async move {
            // An actor that is called does not end because it is idle.
            while !over.get() {
                let _ = SafeRef::of(&owner, "safe").post("still").by(Duration::from_secs(1)).await;
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        });
        grove
    }

    fn status(&self, node: &str) -> MultiCluster {
        self.world.node(node).multi_cluster().expect("it is in a multi-cluster")
    }

    async fn until(&self, node: &str, sees: impl Fn(&MultiCluster) -> bool) {
        while !sees(&self.status(node)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Parts `side` from `others`, until each side knows that the other one is silent.
    async fn cut(&self, side: &[&str], others: &[&str]) {
        self.cut_now(side, others);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    fn cut_now(&self, side: &[&str], others: &[&str]) {
        self.sim.heal();
        self.sim.partition(side, others);
    }

    async fn remove(&self, node: &str, clusters: &[&str], vouch: bool) -> Result<(), String> {
        let clusters = clusters.iter().map(|name| (*name).to_owned()).collect();
        let change = ClusterChange::RemoveLost { clusters, vouch };
        let made = self.world.node(node).change_clusters(&change).await;
        made.map(|_| ()).map_err(|refused| refused.to_string())
    }

    async fn is_served(&self, node: &str) -> bool {
        SafeRef::of(&self.world.node(node), "safe").post("who has it?").by(Duration::from_secs(2)).await.is_ok()
    }

    /// Waits until the safe is served to this node; two of it at a time are a violation.
    async fn served(&self, node: &str) {
        while !self.is_served(node).await {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

#[test]
fn a_list_that_a_minority_has_acknowledged_removes_nobody_over_a_second_cut() {
    seeds("a_list_that_a_minority_has_acknowledged_removes_nobody_over_a_second_cut", 2, |seed| {
        run(seed, |sim| async move {
            let grove = Grove::start(&sim, 5).await;
            grove.cut(&["a1", "b1", "c1"], &["d1", "e1"]).await;
            grove.remove("a1", &["dogwood", "elm"], false).await.expect("three of five answer");
            // The third cluster is cut off before it hears of it.
            grove.cut(&["a1", "b1"], &["c1", "d1", "e1"]).await;
            for _ in 0..40 {
                let refused = grove.remove("a1", &["cedar"], false).await.expect_err("two of five are too few");
                assert!(refused.contains("is not in force: 2 of 5 clusters"), "{refused}");
                assert!(!grove.is_served("a1").await, "a removed cluster may own it");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert!(grove.status("a1").fenced && grove.status("a1").waits_for.is_some());
            assert!(!grove.status("d1").fenced && grove.is_served("d1").await, "three of five go on");
            // The list comes into force after healing, and its removed clusters leave.
            sim.heal();
            grove.until("a1", |status| status.in_force && status.clusters.len() == 3).await;
            grove.served("a1").await;
            assert!(!grove.is_served("d1").await, "it was removed");
            grove.over.set(true);
        });
    });
}

#[test]
fn a_cluster_that_acknowledged_a_removal_keeps_it_over_a_restart_of_all_its_nodes() {
    seeds("a_cluster_that_acknowledged_a_removal_keeps_it_over_a_restart_of_all_its_nodes", 2, |seed| {
        run(seed, |sim| async move {
            let grove = Grove::start(&sim, 5).await;
            grove.cut(&["a1", "b1", "c1"], &["d1", "e1"]).await;
            grove.remove("a1", &["dogwood", "elm"], false).await.expect("three of five answer");
            grove.until("a1", |status| status.in_force).await;
            grove.cut_now(&["a1", "b1"], &["c1", "d1", "e1"]);
            grove.world.cluster("cedar").stop("c1");
            grove.world.cluster("cedar").start("c1").await;
            assert_eq!(grove.status("c1").epoch, 2, "its table has the list that it has acknowledged");
            tokio::time::sleep(Duration::from_secs(5)).await;
            grove.remove("a1", &["cedar"], false).await.expect("two of three answer");
            grove.until("a1", |status| status.clusters.len() == 2).await;
            grove.served("a1").await;
            assert!(!grove.is_served("d1").await, "the third cluster does not confirm it");
            grove.over.set(true);
        });
    });
}

#[test]
fn two_pairs_that_a_cut_parts_do_not_remove_each_other() {
    seeds("two_pairs_that_a_cut_parts_do_not_remove_each_other", 2, |seed| {
        run(seed, |sim| async move {
            let grove = Grove::start(&sim, 4).await;
            grove.cut(&["a1", "b1"], &["c1", "d1"]).await;
            for (node, others) in [("a1", ["cedar", "dogwood"]), ("c1", ["ash", "beech"])] {
                let refused = grove.remove(node, &others, false).await.expect_err("two of four");
                assert!(refused.contains("2 of 4 clusters") && refused.contains("--vouch"), "{refused}");
            }
            for node in ["a1", "b1", "c1", "d1"] {
                grove.until(node, |status| status.fenced).await;
            }
            assert!(!grove.is_served("a1").await && !grove.is_served("d1").await, "neither side may own it");
            sim.heal();
            grove.served("a1").await;
            grove.served("d1").await;

            grove.over.set(true);
            for (cluster, node) in [("cedar", "c1"), ("dogwood", "d1")] {
                grove.world.cluster(cluster).stop(node);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            grove.remove("a1", &["cedar", "dogwood"], true).await.expect("none of their nodes runs");
            grove.served("a1").await;
            grove.until("a1", |status| status.in_force && !status.fenced).await;
        });
    });
}
