//! A seed that fails says what has happened, in the names of kinds and methods, and how to see it again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_test::Cluster;

use crate::actors::{BookRef, CounterRef, LedgerRef, cluster, reliable_cluster};

/// Claims of a volatile counter what holds only for one that keeps its state.
async fn forgetful(cluster: Cluster) -> Result<(), String> {
    let (a, b) = (cluster.node("a"), cluster.node("b"));
    CounterRef::of(&b, "visits").add().await.map_err(|error| error.to_string())?;
    CounterRef::of(&a, "visits").add().await.map_err(|error| error.to_string())?;
    cluster.kill("b");
    let third = cluster.eventually(|| CounterRef::of(&a, "visits").add()).await;
    if third == 3 { Ok(()) } else { Err(format!("the third visitor is number {third}")) }
}

fn has(trace: &[String], parts: &[&str]) -> bool {
    trace.iter().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn a_broken_actor_is_found_and_its_trace_names_what_was_called() {
    let found = cluster(2).expect_violation(10, forgetful);
    assert!(found.what.contains("the third visitor is number 1"), "{}", found.what);
    let lines = found.trace.join("\n");
    assert!(has(&found.trace, &["a -> b", "call counter/visits.add"]), "{lines}");
    assert!(has(&found.trace, &["b -> a", "reply to counter/visits.add: Ok"]), "{lines}");
    assert!(has(&found.trace, &["b: counter/visits.add begins"]), "{lines}");
    assert!(has(&found.trace, &["b crashes"]), "{lines}");
}

#[test]
fn what_reliable_actors_send_goes_by_their_names() {
    let found = reliable_cluster(3).expect_violation(1, |cluster| async move {
        let a = cluster.node("a");
        for number in 0..8 {
            LedgerRef::of(&a, number).pass_on(format!("to {number}")).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
        Err::<(), _>("as asked")
    });
    let lines = found.trace.join("\n");
    assert!(has(&found.trace, &["call ledger/", ".pass_on"]), "{lines}");
    assert!(has(&found.trace, &["message ledger/to ", ".enter"]), "{lines}");
    assert!(!lines.contains("greenroom.partition"), "{lines}");
}

#[test]
fn a_failing_seed_prints_how_to_replay_it() {
    let failed = catch_unwind(AssertUnwindSafe(|| cluster(2).seeds(3..4, forgetful))).expect_err("it fails");
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(said.contains("a_failing_seed_prints_how_to_replay_it: seed 3 fails"), "{said}");
    assert!(said.contains("GREENROOM_SEED=3 cargo test -p greenroom-test --test kit"), "{said}");
}

#[test]
fn a_seed_run_twice_gives_one_trace() {
    let setup = cluster(3).rough();
    for seed in 0..5 {
        let run = || {
            setup.run(seed, |cluster| async move {
                let mut told = Vec::new();
                for number in 0..20_u64 {
                    if number == 8 {
                        cluster.kill("b");
                    }
                    let call = BookRef::of(&cluster.any(), number % 3).enter();
                    told.push(format!("{:?}", call.by(std::time::Duration::from_secs(2)).await));
                }
                (cluster.sim().trace_hash(), cluster.sim().trace_lines(), told)
            })
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}
