//! What a drain keeps, under load and under faults.

use std::rc::Rc;
use std::time::Duration;

use greenroom_sim::Faults;

use super::ledger::{ClerkRef, Ledger, Tally, run, with_clerks};
use crate::cluster::Cluster;

const FOUR: &[&str] = &["a", "b", "c", "d"];
const THREE: &[&str] = &["a", "b", "c"];

/// Drains and restarts one node after the other while clients call; how the calls went.
async fn rolling_restart(cluster: &Cluster, names: &'static [&'static str]) -> Rc<Tally> {
    let tally = Rc::new(Tally::default());
    let done = Rc::new(std::cell::Cell::new(false));
    let running = Rc::new(std::cell::Cell::new(CLIENTS));
    for client in 0..CLIENTS {
        let (cluster, tally, done, running) = (cluster.clone(), tally.clone(), done.clone(), running.clone());
        cluster.sim.clone().spawn(async move {
            let mut operation = client * 1_000_000;
            while !done.get() {
                operation += 1;
                run(&cluster, names, operation % ACTORS, operation, &tally).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            running.set(running.get() - 1);
        });
    }
    for name in names {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let Some(node) = cluster.node(name) else { continue };
        let drained = node.drain().await;
        cluster.sim.note(format_args!("{name}: {drained:?}"));
        cluster.sim.crash(name);
        cluster.start(name).await;
    }
    for name in names {
        // Faults may have stopped some.
        if cluster.node(name).is_none_or(|node| node.is_stopped()) {
            cluster.sim.crash(name);
            cluster.start(name).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    done.set(true);
    while running.get() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tally
}

fn at_most_once(ledger: &Ledger) {
    let twice: Vec<_> = ledger.counts().into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "operations that ran more than once: {twice:?}");
}

#[test]
fn a_rolling_restart_under_load_loses_no_call_and_fails_none_that_is_retried_when_refused() {
    with_clerks(60, Faults::none(), FOUR, async |cluster, ledger| {
        let tally = rolling_restart(&cluster, FOUR).await;
        assert_eq!(tally.unknown.get(), 0, "every call was answered, or refused before it ran");
        assert!(tally.answered.get() > 300, "hardly any load: {}", tally.answered.get());
        assert_eq!(ledger.counts().len() as u64, tally.answered.get());
        at_most_once(&ledger);
    });
}

#[test]
fn a_rolling_restart_among_faults_runs_no_call_twice() {
    with_clerks(40, Faults::rough(), THREE, async |cluster, ledger| {
        let tally = rolling_restart(&cluster, THREE).await;
        let (ran, answered) = (ledger.counts().len() as u64, tally.answered.get());
        assert!((answered..=answered + tally.unknown.get()).contains(&ran), "{ran} ran, {answered} were answered");
    });
}

#[test]
fn pending_calls_are_forwarded_in_order_on_a_graceful_stop() {
    with_clerks(60, Faults::none(), THREE, async |cluster, ledger| {
        let [a, ..] = cluster.three();
        // An actor somewhere else than at its caller's.
        let mut place = None;
        for key in 0..50_u64 {
            let (at, _) = ClerkRef::of(&a, key).run(0, 0).await.expect("nothing is wrong");
            if at != "a" {
                place = Some((key, at));
                break;
            }
        }
        let (key, at) = place.expect("fifty actors are not all on one of three nodes");
        let clerk = ClerkRef::of(&a, key);
        let slow = clerk.run(1, 400);
        let slow = tokio::task::spawn_local(slow.into_future());
        tokio::time::sleep(Duration::from_millis(50)).await;
        for operation in 2..10 {
            clerk.run(operation, 0).send();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let waiting = tokio::task::spawn_local(clerk.run(10, 0).into_future());
        let leaving = cluster.node(&at).expect("it was started");
        let drained = leaving.drain().await;
        assert!(drained.is_whole(), "{drained:?}");
        let (first, last) = (slow.await.unwrap().expect("it was running"), waiting.await.unwrap());
        assert_eq!(first.0, at, "what ran ended where it ran");
        assert_ne!(last.expect("it was forwarded").0, at);
        assert_eq!(ledger.of(&key.to_string())[1..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });
}

#[test]
fn first_calls_activate_once_while_ranges_are_handed_over() {
    with_clerks(60, Faults::none(), THREE, async |cluster, ledger| {
        let tally = Rc::new(Tally::default());
        let mut calls = Vec::new();
        let draining = {
            let cluster = cluster.clone();
            tokio::task::spawn_local(async move {
                let (joins, leaves) = (cluster.start("d"), async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    cluster.node("b").expect("it was started").drain().await
                });
                tokio::join!(joins, leaves).1
            })
        };
        for operation in 0..300_u64 {
            let (cluster, tally) = (cluster.clone(), tally.clone());
            // Two callers for each actor that nobody has called before.
            calls.push(tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(operation / 2)).await;
                run(&cluster, THREE, 1000 + operation / 2, operation, &tally).await;
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
        assert!(draining.await.unwrap().is_whole());
        assert_eq!((tally.answered.get(), tally.unknown.get()), (300, 0));
        at_most_once(&ledger);
        cluster.settled(&["a", "c", "d"]).await;
    });
}

#[test]
fn a_one_way_message_to_an_actor_that_has_left_arrives() {
    with_clerks(60, Faults::none(), THREE, async |cluster, ledger| {
        let [a, b, c] = cluster.three();
        for key in 0..10 {
            ClerkRef::of(&a, key).run(0, 0).await.expect("nothing is wrong");
        }
        let clerks: Vec<_> = (0..10).map(|key| ClerkRef::of(&c, key)).collect();
        let leaving = tokio::task::spawn_local(async move { b.drain().await });
        for operation in 1..=50 {
            for clerk in &clerks {
                clerk.run(operation, 0).send();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(leaving.await.unwrap().is_whole());
        tokio::time::sleep(Duration::from_secs(1)).await;
        for key in 0..10_u64 {
            let mut seen = ledger.of(&key.to_string());
            seen.sort_unstable();
            assert_eq!(seen, (0..=50).collect::<Vec<_>>(), "actor {key}");
        }
    });
}

#[test]
fn a_reference_that_remembers_a_node_that_has_left_finds_the_actor() {
    with_clerks(60, Faults::none(), THREE, async |cluster, _| {
        let [a, ..] = cluster.three();
        let clerks: Vec<_> = (0..20).map(|key| ClerkRef::of(&a, key)).collect();
        for clerk in &clerks {
            clerk.run(0, 0).await.expect("nothing is wrong");
        }
        for name in ["b", "c"] {
            cluster.node(name).expect("it was started").drain().await;
            for clerk in &clerks {
                // Each reference, and the node's own memory, still name who has left.
                let (at, _) = clerk.run(1, 0).await.unwrap_or_else(|error| panic!("after {name} left: {error}"));
                assert_ne!(at, name);
            }
        }
    });
}

#[test]
fn a_node_that_drains_gets_nothing_new() {
    with_clerks(30, Faults::none(), THREE, async |cluster, _| {
        let [a, b, _] = cluster.three();
        let mut key = 1_000_u64;
        while ClerkRef::of(&b, key).run(0, 0).await.expect("nothing is wrong").0 != "b" {
            key += 1;
        }
        let held = ClerkRef::of(&b, key);
        let busy = tokio::task::spawn_local(held.run(1, 5_000).by(Duration::from_secs(20)).into_future());
        let leaving = b.clone();
        let leaving = tokio::task::spawn_local(async move { leaving.drain().await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        for key in 0..60_u64 {
            assert_ne!(ClerkRef::of(&a, key).run(2, 0).await.expect("two nodes serve").0, "b");
        }
        assert_eq!(busy.await.unwrap().expect("it was running").0, "b");
        assert!(leaving.await.unwrap().is_whole());
    });
}

#[test]
fn a_drain_that_nobody_waits_for_any_more_goes_to_its_end() {
    with_clerks(20, Faults::none(), THREE, async |cluster, _| {
        let [_, b, _] = cluster.three();
        let abandoned = b.clone();
        let abandoned = tokio::task::spawn_local(async move { abandoned.drain().await });
        tokio::time::sleep(Duration::from_millis(cluster.sim.random().below(20))).await;
        abandoned.abort();
        // As one that is told to stop while it stops.
        b.stop().await;
        assert!(b.is_stopped());
        cluster.settled(&["a", "c"]).await;
    });
}

const CLIENTS: u64 = 6;
const ACTORS: u64 = 40;
