//! Calls whose time is over never run, wherever they waited.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::scenario::{calm, run};
use greenroom_sim::Faults;

/// Notes which of its calls have run, by the number that each has alone.
#[derive(Default, Actor)]
struct Slow {
    ran: Vec<u64>,
}

#[actor(placement = "random")]
impl Slow {
    pub async fn dawdle(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    pub async fn work(&mut self, number: u64) {
        self.ran.push(number);
    }

    pub async fn ran(&mut self) -> Vec<u64> {
        self.ran.clone()
    }
}

#[test]
fn a_call_that_expires_in_a_mailbox_is_refused_and_never_runs() {
    calm(
        20,
        |builder, _| builder.configure(|config| config.shards = 2).register::<Slow>(),
        |cluster| async move {
            let nodes = cluster.three();
            SlowRef::of(&nodes[0], "x").work(0).await.unwrap();
            SlowRef::of(&nodes[0], "x").dawdle(3_000).send();
            tokio::time::sleep(Duration::from_millis(100)).await;
            // From all nodes, so through each shard and over connections too.
            let calls = nodes.iter().enumerate().flat_map(|(at, node)| {
                (1..=8).map(move |n| {
                    let limit = Duration::from_millis(400 + 100 * n);
                    SlowRef::of(node, "x").work(at as u64 * 100 + n).by(limit).into_future()
                })
            });
            for end in join_all(calls).await {
                let refused = matches!(end, Err(CallError::Refused(Refusal::Expired(_))));
                assert!(refused, "it was told that nothing ran, before it gave up: {end:?}");
            }
            assert_eq!(SlowRef::of(&nodes[0], "x").ran().await.unwrap(), [0], "and nothing did, later");
        },
    );
}

#[test]
fn a_call_that_expires_while_the_directory_recovers_never_runs() {
    run(
        30,
        Faults { silent_crash: 1.0, ..Faults::none() },
        |builder, _| builder.register::<Slow>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            // Some of them are in ranges of the directory that `b` owns: nobody knows where, until `b` is declared dead.
            cluster.sim.crash("b");
            let calls = (0..40).map(|key| SlowRef::of(&a, key).work(1).by(Duration::from_millis(900)).into_future());
            let ends = join_all(calls).await;
            assert!(ends.iter().any(Result::is_err), "some had to wait for longer than they could");
            loop {
                let now = join_all((0..40).map(|key| SlowRef::of(&a, key).ran().into_future())).await;
                if now.iter().all(Result::is_ok) {
                    for (before, after) in ends.iter().zip(now) {
                        let ran = after.unwrap().len();
                        match before {
                            Ok(()) | Err(CallError::Unknown(_)) => {}
                            Err(refused) => assert_eq!(ran, 0, "what was refused did not run: {refused}"),
                        }
                    }
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        },
    );
}

/// Turns that began when nobody waited for them any more.
static LATE: AtomicU64 = AtomicU64::new(0);

/// Keeps its shard's thread for itself.
#[derive(Default, Actor)]
struct Hog {}

#[actor(placement = "local")]
impl Hog {
    pub async fn hog(&mut self, millis: u64) {
        std::thread::sleep(Duration::from_millis(millis));
    }

    pub async fn late(&mut self) {
        LATE.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_call_that_expires_behind_a_turn_that_keeps_the_thread_never_runs() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = Node::builder().configure(|config| config.shards = 1).register::<Hog>().start().await.unwrap();
        let keys = 0..4;
        join_all(keys.clone().map(|key| HogRef::of(&node, key).hog(0).into_future())).await;
        HogRef::of(&node, 0).hog(300).send();
        // All of them are taken in with the hog, or behind it: in the shard's round they are not late yet.
        let calls = keys.map(|key| HogRef::of(&node, key).late().by(Duration::from_millis(100)).into_future());
        let ends = join_all(calls).await;
        // The hog is over.
        HogRef::of(&node, 0).hog(0).await.unwrap();
        let late = LATE.load(Ordering::Relaxed);
        let ran = ends.iter().filter(|end| end.is_ok()).count() as u64;
        assert_eq!(late, ran, "{ends:?}");
    });
}
