//! Bounds on what a node takes on: by kind, and by how long work waits.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::scenario::calm;

/// At most four at once on a node.
#[derive(Default, Actor)]
struct Scarce {}

#[actor(placement = "local", in_flight = 4)]
impl Scarce {
    pub async fn hold(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

#[derive(Default, Actor)]
struct Plain {}

#[actor(placement = "local")]
impl Plain {
    pub async fn hold(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

#[test]
fn a_kind_with_a_bound_is_refused_above_it_on_each_node_and_other_kinds_are_not() {
    calm(
        20,
        |builder, _| builder.register::<Scarce>().register::<Plain>(),
        |cluster| async move {
            for node in cluster.three() {
                for _ in 0..3 {
                    let name = node.name().to_owned();
                    let calls = (0..10)
                        .map(|key| ScarceRef::of(&node, format!("{name}/{}", key % 3)).hold(500).once().into_future());
                    let others =
                        (0..10).map(|key| PlainRef::of(&node, format!("{name}/{key}")).hold(500).once().into_future());
                    let (ends, others) = tokio::join!(join_all(calls), join_all(others));
                    let full = |end: &&Result<_, _>| match end {
                        Err(CallError::Refused(refusal @ Refusal::Overloaded { bound: 4, .. })) => {
                            assert!(refusal.to_string().contains("kind scarce"), "{refusal}");
                            true
                        }
                        end => {
                            assert_eq!(**end, Ok(()));
                            false
                        }
                    };
                    assert_eq!(ends.iter().filter(full).count(), 6, "four are inside, and they leave again");
                    assert!(others.iter().all(Result::is_ok), "{others:?}");
                }
            }
        },
    );
}

#[test]
fn the_nodes_configuration_bounds_a_kind_that_has_no_bound_of_its_own() {
    calm(
        10,
        |builder, _| {
            builder.register::<Plain>().configure(|config| {
                config.in_flight_max.insert("plain".to_owned(), 2);
            })
        },
        |cluster| async move {
            let [a, ..] = cluster.three();
            let calls = (0..5).map(|key| PlainRef::of(&a, key).hold(500).once().into_future());
            let ends = join_all(calls).await;
            assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 2, "{ends:?}");
            let waits = join_all((0..5).map(|key| PlainRef::of(&a, key).hold(50).into_future())).await;
            assert!(waits.iter().all(Result::is_ok), "callers who come back are taken in turn: {waits:?}");
        },
    );
}

/// Keeps its thread busy.
#[derive(Default, Actor)]
struct Burner {}

#[actor(placement = "local")]
impl Burner {
    pub async fn burn(&mut self, millis: u64) {
        let until = std::time::Instant::now() + Duration::from_millis(millis);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// Calls another for as long as it is told, and says how many of the calls were not answered.
    pub async fn chain(&mut self, cx: &Cx, to: String, count: u64) -> u64 {
        let mut failed = 0;
        for _ in 0..count {
            failed += u64::from(BurnerRef::of(cx, to.clone()).burn(1).await.is_err());
        }
        failed
    }
}

#[test]
fn a_node_that_cannot_keep_up_sheds_calls_from_outside_and_none_between_actors() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = Node::builder()
            .configure(|config| {
                config.shards = 1;
                config.shed_after = Duration::from_millis(100);
                config.call_timeout = Duration::from_secs(60);
            })
            .register::<Burner>()
            .start()
            .await
            .unwrap();
        let inside = tokio::spawn(BurnerRef::of(&node, "chain").chain("link".to_owned(), 20).into_future());
        // Sixty callers, who come back at once: each turn takes 4 ms, so that most of the sixty wait.
        let callers = (0..60).map(|key| {
            let node = node.clone();
            tokio::spawn(async move {
                let mut shed = None;
                for _ in 0..10 {
                    match BurnerRef::of(&node, key).burn(4).once().await {
                        Ok(()) => {}
                        Err(CallError::Refused(refusal @ Refusal::Shed { .. })) => shed = Some(refusal),
                        Err(other) => panic!("{other}"),
                    }
                }
                shed
            })
        });
        let shed: Vec<_> = join_all(callers).await.into_iter().filter_map(|shed| shed.unwrap()).collect();
        let refusal = shed.first().expect("some were turned away");
        assert!(refusal.retry_after() >= Some(Duration::from_millis(100)), "{refusal}");
        assert!(refusal.to_string().contains("work waits for"), "{refusal}");
        assert_eq!(inside.await.unwrap(), Ok(0), "actors' calls to each other went on");
        // Once the load is over, the node takes everything again.
        while BurnerRef::of(&node, 0).burn(0).once().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}
