//! Work that blocks, in the simulated world: closures run there at once, and a seed decides everything.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;
use greenroom::{Builder, PoolSize};
use greenroom_sim::Faults;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::cluster::{Cluster, sim};
use crate::scenario::calm;

/// Adds up, on other threads.
#[derive(Default, Actor)]
struct Sum {
    total: u64,
}

#[actor(placement = "random")]
impl Sum {
    pub async fn add(&mut self, cx: &Cx, value: u64) -> Result<u64, NotBegun> {
        let total = self.total;
        self.total = cx.blocking(move || total + value).await?;
        Ok(self.total)
    }

    pub async fn fail(&mut self, cx: &Cx) -> Result<u64, NotBegun> {
        self.total = 1_000;
        cx.blocking(|| panic!("the disk is gone")).await
    }
}

/// Adds up on other threads, itself.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Tally {
    total: u64,
}

#[actor(placement = "random", migrate)]
impl Tally {
    #[blocking]
    pub fn add(&mut self, value: u64) -> u64 {
        self.total += value;
        self.total
    }

    #[blocking]
    pub fn fail(&mut self) -> u64 {
        self.total = 1_000;
        panic!("the disk is gone")
    }

    pub async fn total(&self) -> u64 {
        self.total
    }
}

fn sums(builder: Builder, _: &str) -> Builder {
    builder.register::<Sum>().register::<Tally>()
}

fn figure(node: &Node, name: &str) -> f64 {
    let figures = node.figures();
    figures.iter().find(|figure| figure.name() == name).expect("the pool says it").value()
}

/// Sums that are added to from all nodes under faults; the trace's hash and what the callers saw.
fn run(seed: u64) -> (u64, Vec<String>) {
    sim(seed, Faults::rough()).run(|sim| async move {
        let cluster = Cluster::new(&sim, sums);
        cluster.start_all(&["a", "b", "c"]).await;
        let mut seen = Vec::new();
        for round in 0..30_u64 {
            if round == 10 {
                sim.crash("b");
            }
            let node = cluster.node("a").expect("it is not crashed");
            let added = SumRef::of(&node, round % 4).add(round).by(Duration::from_secs(1)).await;
            seen.push(format!("{added:?}"));
        }
        (sim.trace_hash(), seen)
    })
}

#[test]
fn one_seed_run_twice_gives_one_trace_of_closures_too() {
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
fn turns_of_many_nodes_get_what_their_closures_give() {
    calm(20, sums, async |cluster| {
        let nodes = cluster.three();
        for round in 1..=20_u64 {
            for (key, node) in nodes.iter().enumerate() {
                let total = SumRef::of(node, key as u64).add(round).await.expect("it answers");
                assert_eq!(total, round * (round + 1) / 2);
            }
        }
        let done: f64 = nodes.iter().map(|node| figure(node, "greenroom_blocking_done_total")).sum();
        assert_eq!(done, 60.0);
    });
}

#[test]
fn an_activation_whose_closure_panics_begins_anew() {
    calm(20, sums, async |cluster| {
        let [a, ..] = cluster.three();
        let sum = SumRef::of(&a, "one");
        sum.add(1).await.expect("it answers");
        let failed = sum.fail().await.expect_err("it panics");
        assert_eq!(failed, CallError::Unknown(Doubt::Panicked { message: "the disk is gone".to_owned() }));
        assert_eq!(sum.add(5).await, Ok(5));
    });
}

#[test]
fn a_node_that_never_blocks_has_no_threads_for_it_and_others_as_few_as_they_need() {
    calm(5, sums, async |cluster| {
        let [a, b, c] = cluster.three();
        let threads = || [&a, &b, &c].map(|node| figure(node, "greenroom_blocking_threads"));
        assert_eq!(threads(), [0.0; 3]);
        let sum = SumRef::of(&a, "one");
        for _ in 0..50 {
            sum.add(1).await.expect("it answers");
            sleep(Duration::from_secs(1)).await;
        }
        let (mut threads, least) = (threads(), figure(&a, "greenroom_blocking_threads_max"));
        threads.sort_by(f64::total_cmp);
        assert_eq!((threads, least), ([0.0, 0.0, 1.0], 4.0), "one node has the actor, and one call comes at a time");
    });
}

#[test]
fn a_pool_of_one_thread_runs_what_many_turns_ask_of_it() {
    let one =
        |builder: Builder, _: &str| sums(builder, "").configure(|config| config.threads.blocking = PoolSize::Fixed(1));
    calm(10, one, async |cluster| {
        let [a, ..] = cluster.three();
        let calls = (0..50_u64).map(|key| SumRef::of(&a, key).add(key).into_future());
        for (key, added) in join_all(calls).await.into_iter().enumerate() {
            assert_eq!(added, Ok(key as u64));
        }
    });
}

#[test]
fn a_method_that_blocks_takes_its_actor_along_and_brings_it_back() {
    calm(20, sums, async |cluster| {
        for round in 1..=20_u64 {
            for (key, node) in cluster.three().iter().enumerate() {
                let tally = TallyRef::of(node, key as u64);
                let total = round * (round + 1) / 2;
                assert_eq!((tally.add(round).await, tally.total().await), (Ok(total), Ok(total)));
            }
            if round == 10 {
                cluster.three()[1].drain().await;
                cluster.start("b").await;
            }
        }
    });
}

#[test]
fn an_activation_whose_blocking_method_panics_begins_anew() {
    calm(10, sums, async |cluster| {
        let [a, ..] = cluster.three();
        let tally = TallyRef::of(&a, "one");
        tally.add(1).await.expect("it answers");
        let failed = tally.fail().await.expect_err("it panics");
        assert_eq!(failed, CallError::Unknown(Doubt::Panicked { message: "the disk is gone".to_owned() }));
        assert_eq!((tally.total().await, tally.add(5).await), (Ok(0), Ok(5)));
    });
}
