//! After a death, everything answers again soon.

use std::time::Duration;

use greenroom::CallError;
use greenroom_protocols::checks::Checks;
use greenroom_sim::{Exclusive, Faults, seeds};

use crate::cluster::sim;
use crate::guarded::{self, GuardedRef};

const ACTORS: usize = 30;

#[test]
fn every_actor_of_a_killed_node_answers_again_within_ten_seconds() {
    seeds("every_actor_of_a_killed_node_answers_again_within_ten_seconds", 20, |seed| {
        sim(seed, Faults::none()).run(|sim| async move {
            let watch = Exclusive::strict(&sim);
            let cluster = guarded::cluster(&sim, &watch, Checks::default());
            for name in ["a", "b", "c"] {
                cluster.start(name).await;
            }
            let node = cluster.node("a").expect("it was started");
            for key in 0..ACTORS {
                GuardedRef::of(&node, key).touch().await.expect("nothing is wrong yet");
            }
            sim.crash("b");
            let died = sim.now();
            for key in 0..ACTORS {
                loop {
                    match GuardedRef::of(&node, key).touch().by(Duration::from_secs(1)).await {
                        Ok(_) => break,
                        Err(CallError::Refused(_) | CallError::Unknown(_)) => {}
                        Err(other) => panic!("seed {seed}: {other}"),
                    }
                    assert!(
                        sim.now() < died + Duration::from_secs(10),
                        "seed {seed}: actor {key} is silent for too long"
                    );
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
    });
}

/// Nobody evicts either of two nodes that cannot reach each other: what both have must still be found by the others.
#[test]
fn two_nodes_that_do_not_reach_each_other_silence_nobody_whom_others_call() {
    seeds("two_nodes_that_do_not_reach_each_other_silence_nobody_whom_others_call", 20, |seed| {
        sim(seed, Faults::none()).run(|sim| async move {
            let watch = Exclusive::strict(&sim);
            let cluster = guarded::cluster(&sim, &watch, Checks::default());
            for name in ["a", "b", "c", "d"] {
                cluster.start(name).await;
            }
            let (caller, node) = (cluster.node("a"), cluster.node("d").expect("it was started"));
            for key in 0..ACTORS {
                let known = GuardedRef::of(caller.as_ref().expect("it was started"), key);
                known.touch().await.expect("nothing is wrong yet");
            }
            sim.cut("a", "b");
            sim.cut("b", "a");
            // Its ranges go to others, who ask all for what they have of them.
            sim.crash("c");
            let changed = sim.now();
            for key in 0..ACTORS {
                while let Err(error) = GuardedRef::of(&node, key).touch().by(Duration::from_secs(1)).await {
                    assert!(
                        sim.now() < changed + Duration::from_secs(12),
                        "seed {seed}: actor {key} is silent for too long: {error}"
                    );
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
    });
}

/// A call goes round a cut with the grant of who sent it: whom it passes by must not take that for its own.
#[test]
fn a_grant_that_comes_round_a_cut_is_taken_by_the_host_that_it_names_alone() {
    seeds("a_grant_that_comes_round_a_cut_is_taken_by_the_host_that_it_names_alone", 20, |seed| {
        sim(seed, Faults::none()).run(|sim| async move {
            let watch = Exclusive::strict(&sim);
            let cluster = guarded::cluster(&sim, &watch, Checks::default());
            for name in ["a", "b", "c"] {
                cluster.start(name).await;
            }
            let [a, b, c] = ["a", "b", "c"].map(|name| cluster.node(name).expect("it was started"));
            for key in 0..ACTORS {
                GuardedRef::of(&a, key).touch().await.expect("nothing is wrong yet");
            }
            sim.cut("a", "c");
            sim.cut("c", "a");
            for round in 0..3 {
                for key in 0..ACTORS {
                    for node in [&a, &c] {
                        // Across the cut the call arrives, but its reply finds no way back.
                        let _ = GuardedRef::of(node, key).touch().by(Duration::from_millis(50)).await;
                    }
                    let known = GuardedRef::of(&b, key).touch().by(Duration::from_secs(1)).await;
                    assert!(round == 0 || known.is_ok(), "seed {seed}: actor {key}: {known:?}");
                }
            }
        });
    });
}
