//! A node that takes nothing more, or a network that holds things up: bounded memory, honest ends, and others go on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::cluster::Cluster;
use crate::scenario::calm;

thread_local! {
    /// The numbers of the calls that have run in this scenario, which has its thread for itself.
    static RAN: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
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

/// A key whose actor is on the node called `wanted`, which node `from` knows.
async fn key_on(cluster: &Cluster, from: &str, wanted: &str) -> u64 {
    let node = cluster.node(from).expect("it lives");
    for key in 0.. {
        if SinkRef::of(&node, key).node().await.unwrap() == wanted {
            return key;
        }
    }
    unreachable!("some key is there")
}

#[test]
fn a_stalled_connection_costs_bounded_memory_and_its_calls_end_and_others_go_on() {
    calm(
        6,
        |builder, _| builder.register::<Sink>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            let [a, ..] = cluster.three();
            let (on_b, on_c) = (key_on(&cluster, "a", "b").await, key_on(&cluster, "a", "c").await);
            let take = |key, number, len: usize, limit| {
                SinkRef::of(&a, key).take(number, "x".repeat(len)).by(Duration::from_millis(limit)).once().into_future()
            };
            cluster.sim.cut("a", "b");
            // Four times what may wait on a connection.
            let ends = join_all((0..256).map(|number| take(on_b, number, 256 << 10, 1_000)));
            let others = join_all((1_000..1_020).map(|number| take(on_c, number, 1_000, 500)));
            let (ends, others) = tokio::join!(ends, others);
            assert!(others.iter().all(Result::is_ok), "they have nothing to do with it: {others:?}");
            let full = |end: &&Result<_, _>| matches!(end, Err(CallError::Refused(Refusal::Overloaded { .. })));
            let full = ends.iter().filter(full).count();
            assert!((180..250).contains(&full), "of 64 MiB, 16 may wait: {full} were refused");
            let late = |end: &&Result<_, _>| matches!(end, Err(CallError::Unknown(Doubt::TimedOut(_))));
            assert_eq!(ends.iter().filter(late).count(), 256 - full);
            tokio::time::sleep(Duration::from_secs(2)).await;
            cluster.sim.heal();
            // What was on its way arrives now, two seconds after its time.
            while take(on_b, 2_000, 10, 1_000).await.is_err() {}
            let ran = RAN.with_borrow(|ran| ran.range(..256).count());
            assert_eq!(ran, 0, "what was late did not run");
        },
    );
}

#[test]
fn more_calls_than_there_is_credit_for_all_arrive_in_time() {
    calm(
        6,
        |builder, _| builder.register::<Sink>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            let [a, ..] = cluster.three();
            let on_b = key_on(&cluster, "a", "b").await;
            // Three times the credit, and less than may wait.
            let calls = (0..50).map(|number| SinkRef::of(&a, on_b).take(number, "x".repeat(256 << 10)).once());
            let ends = join_all(calls.map(IntoFuture::into_future)).await;
            assert!(ends.iter().all(|end| *end == Ok(256 << 10)), "{ends:?}");
        },
    );
}

#[test]
fn what_had_no_credit_when_its_connection_broke_was_surely_not_sent() {
    calm(
        6,
        |builder, _| builder.register::<Sink>(),
        |cluster| async move {
            RAN.with_borrow_mut(BTreeSet::clear);
            let [a, ..] = cluster.three();
            let on_b = key_on(&cluster, "a", "b").await;
            cluster.sim.cut("a", "b");
            let calls = (0..60).map(|number| SinkRef::of(&a, on_b).take(number, "x".repeat(256 << 10)).once());
            let (ends, ()) = tokio::join!(join_all(calls.map(IntoFuture::into_future)), async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                cluster.sim.reset("a", "b");
            });
            let unknown = ends.iter().filter(|end| matches!(end, Err(CallError::Unknown(_)))).count();
            let refused = ends.iter().filter(|end| matches!(end, Err(CallError::Refused(_)))).count();
            assert!(unknown > 0 && unknown <= 20, "4 MiB may have left, of {unknown} calls");
            assert_eq!(unknown + refused, 60, "{ends:?}");
        },
    );
}
