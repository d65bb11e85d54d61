//! A node that takes nothing more, or a network that holds things up: bounded memory, honest ends, and others go on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::calm;

thread_local! {
    /// The numbers of the calls that have run in this scenario, which has its thread for itself.
    static RAN: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
    /// What the last flood ended with.
    static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) };
}

#[derive(Default, Actor)]
struct Sink {}

#[actor(placement = "random")]
impl Sink {
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn take(&self, number: u64, bytes: String) -> u64 {
        RAN.with_borrow_mut(|ran| ran.insert(number));
        bytes.len() as u64
    }
}

/// What its calls ended with.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
struct Ends {
    answered: u64,
    full: u64,
    unreachable: u64,
    late: u64,
    broken: u64,
    others: Vec<String>,
}

/// Calls from its own node, whose connection it knows.
#[derive(Default, Actor)]
struct Flooder {}

#[actor(placement = "local")]
impl Flooder {
    /// Makes calls from `first` on, each with so many bytes.
    pub async fn flood(&self, cx: &Cx, key: u64, first: u64, count: u64, len: u64, millis: u64) -> Ends {
        let sink = SinkRef::of(cx, key);
        sink.node().await.unwrap();
        // The scenario cuts the connection now.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let calls = (first..first + count).map(|number| {
            let call = sink.take(number, "x".repeat(len as usize));
            call.by(Duration::from_millis(millis)).into_future()
        });
        let mut ends = Ends::default();
        for end in join_all(calls).await {
            match end {
                Ok(_) => ends.answered += 1,
                Err(CallError::Refused(Refusal::Overloaded { .. })) => ends.full += 1,
                Err(CallError::Refused(Refusal::Unreachable { .. })) => ends.unreachable += 1,
                Err(CallError::Unknown(Doubt::TimedOut(_))) => ends.late += 1,
                Err(CallError::Unknown(Doubt::Disconnected { .. })) => ends.broken += 1,
                Err(other) => ends.others.push(other.to_string()),
            }
        }
        ENDS.set(Some(ends.clone()));
        ends
    }
}

/// A key whose actor is on the node called `wanted`, which node `a` knows.
async fn key_on(cluster: &Cluster, wanted: &str) -> u64 {
    key_from(0, cluster, wanted).await
}

/// The first such key from `first` on.
async fn key_from(first: u64, cluster: &Cluster, wanted: &str) -> u64 {
    let node = cluster.node("a").expect("it lives");
    for key in first.. {
        if SinkRef::of(&node, key).node().await.unwrap() == wanted {
            return key;
        }
    }
    unreachable!("some key is there")
}

#[test]
fn calls_to_one_actor_leave_room_on_a_stalled_connection_for_those_to_another() {
    calm(
        6,
        |builder, _| builder.register::<Sink>().register::<Flooder>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let first = key_on(&cluster, "b").await;
            let second = key_from(first + 1, &cluster, "b").await;
            // What a connection holds for one actor, and more, then little for another.
            let flood = FlooderRef::of(&a, "much").flood(first, 0, 256, 256 << 10, 3_000).into_future();
            let (much, (), little) = tokio::join!(
                flood,
                async {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    cluster.sim.cut("a", "b");
                },
                async {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    FlooderRef::of(&a, "little").flood(second, 1_000, 8, 256 << 10, 1_000).await
                },
            );
            let (much, little) = (much.unwrap(), little.unwrap());
            assert!((200..250).contains(&much.full), "{much:?}");
            assert_eq!((little.full, little.late), (0, 8), "all of them waited for the connection: {little:?}");
        },
    );
}

#[test]
fn a_stalled_connection_costs_bounded_memory_and_its_calls_end_and_others_go_on() {
    calm(
        6,
        |builder, _| builder.register::<Sink>().register::<Flooder>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            ENDS.take();
            let [a, ..] = cluster.three();
            let (on_b, on_c) = (key_on(&cluster, "b").await, key_on(&cluster, "c").await);
            // Five times what may wait for one actor on a connection.
            let stalled = FlooderRef::of(&a, "to b").flood(on_b, 0, 256, 256 << 10, 1_000).into_future();
            let fine = FlooderRef::of(&a, "to c").flood(on_c, 1_000, 20, 1_000, 500).into_future();
            let (stalled, fine, ()) = tokio::join!(stalled, fine, async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                cluster.sim.cut("a", "b");
            });
            let (stalled, fine) = (stalled.unwrap(), fine.unwrap());
            assert_eq!(fine.answered, 20, "they have nothing to do with it: {fine:?}");
            assert!((200..250).contains(&stalled.full), "of 64 MiB, 12 may wait: {stalled:?}");
            assert_eq!(stalled.full + stalled.late, 256, "{stalled:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
            cluster.sim.heal();
            // What was on its way arrives now, a second after its time.
            while SinkRef::of(&a, on_b).take(2_000, String::new()).by(Duration::from_secs(1)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let ran = RAN.with_borrow(|ran| ran.range(..256).count());
            assert_eq!(ran, 0, "what was late did not run");
        },
    );
}

#[test]
fn more_calls_than_there_is_credit_for_all_arrive_in_time() {
    calm(
        6,
        |builder, _| builder.register::<Sink>().register::<Flooder>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            ENDS.take();
            let [a, ..] = cluster.three();
            let on_b = key_on(&cluster, "b").await;
            // More than twice the credit, and less than may wait.
            let ends = FlooderRef::of(&a, "to b").flood(on_b, 0, 40, 256 << 10, 4_000).await.unwrap();
            assert_eq!(ends.answered, 40, "{ends:?}");
        },
    );
}

#[test]
fn what_had_no_credit_when_its_connection_broke_was_surely_not_sent() {
    calm(
        6,
        |builder, _| builder.register::<Sink>().register::<Flooder>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            ENDS.take();
            let [a, ..] = cluster.three();
            let on_b = key_on(&cluster, "b").await;
            let flood = FlooderRef::of(&a, "to b").flood(on_b, 0, 44, 256 << 10, 4_000).into_future();
            let (ends, ()) = tokio::join!(flood, async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                cluster.sim.cut("a", "b");
                tokio::time::sleep(Duration::from_secs(1)).await;
                cluster.sim.reset("a", "b");
            });
            // The answer itself may have been on its way by `b`.
            drop(ends);
            while ENDS.with_borrow(Option::is_none) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let ends = ENDS.take().expect("it has ended");
            assert!(ends.broken > 0 && ends.broken <= 20, "4 MiB may have left: {ends:?}");
            assert_eq!(ends.broken + ends.unreachable, 44, "{ends:?}");
            assert_eq!(RAN.with_borrow(BTreeSet::len), 0);
        },
    );
}
