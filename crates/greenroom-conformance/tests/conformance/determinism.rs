//! A seed decides everything.

use std::time::Duration;

use greenroom_protocols::checks::Checks;
use greenroom_sim::{Exclusive, Faults};

use crate::cluster::sim;
use crate::guarded::{self, GuardedRef};

/// Three nodes under faults for a while; the trace's hash and what the callers saw.
fn run(seed: u64) -> (u64, Vec<String>) {
    sim(seed, Faults::rough()).run(|sim| async move {
        let watch = Exclusive::fenced(&sim);
        let cluster = guarded::cluster(&sim, &watch, Checks::default());
        for name in ["a", "b", "c"] {
            cluster.start(name).await;
        }
        let mut seen = Vec::new();
        for round in 0..30 {
            if round == 10 {
                sim.crash("b");
            }
            let node = cluster.node("a").expect("a is not crashed");
            let touched = GuardedRef::of(&node, round % 4).touch().by(Duration::from_secs(1)).await;
            seen.push(format!("{touched:?}"));
        }
        (sim.trace_hash(), seen)
    })
}

#[test]
fn one_seed_run_twice_gives_one_trace() {
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
fn two_seeds_give_two_traces() {
    assert_ne!(run(1).0, run(2).0);
}
