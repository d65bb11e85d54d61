//! Calls that call, over nodes: chains that come back, deadlines that travel.

use std::time::Duration;

use greenroom::prelude::*;

use crate::scenario::calm;

/// Calls on to another of its kind.
#[derive(Default, Actor)]
struct Link {}

#[actor(placement = "random")]
impl Link {
    /// Calls `other`, which calls back with an exclusive turn.
    pub async fn there_and_back(&mut self, cx: &Cx, other: String) -> Result<(), String> {
        LinkRef::of(cx, other).back(cx.key().to_string()).await.map_err(|error| error.to_string())
    }

    pub async fn back(&mut self, cx: &Cx, first: String) -> Result<(), String> {
        LinkRef::of(cx, first).touch().await.map_err(|error| error.to_string())
    }

    /// As `there_and_back`, by reads all the way.
    pub async fn look_there_and_back(&self, cx: &Cx, other: String) -> Result<String, String> {
        LinkRef::of(cx, other).look_back(cx.key().to_string()).await.map_err(|error| error.to_string())
    }

    pub async fn look_back(&self, cx: &Cx, first: String) -> Result<String, String> {
        LinkRef::of(cx, first).look().await.map_err(|error| error.to_string())
    }

    pub async fn touch(&mut self) {}

    pub async fn look(&self) -> String {
        "seen".to_owned()
    }

    /// What is left of the caller's time after so many more calls.
    pub async fn left(&mut self, cx: &Cx, more: u64) -> Option<u64> {
        if more == 0 {
            return cx.time_left().map(|left| left.as_millis() as u64);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        LinkRef::of(cx, format!("{}+", cx.key())).left(more - 1).await.ok().flatten()
    }
}

#[test]
fn a_chain_from_a_to_b_and_back_to_a_is_refused_at_once_and_names_itself() {
    calm(
        20,
        |builder, _| builder.register::<Link>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let began = cluster.sim.now();
            for round in 0..5 {
                let said = LinkRef::of(&a, format!("a{round}")).there_and_back(format!("b{round}")).await.unwrap_err();
                let said = said.to_string();
                assert!(said.contains(&format!("link/a{round} -> link/b{round} -> link/a{round}")), "{said}");
            }
            assert!(cluster.sim.now() - began < Duration::from_secs(2), "nobody waited for a deadline");
        },
    );
}

#[test]
fn a_chain_of_reads_from_a_to_b_and_back_to_a_is_answered() {
    calm(
        20,
        |builder, _| builder.register::<Link>(),
        |cluster| async move {
            for node in cluster.three() {
                assert_eq!(LinkRef::of(&node, "a").look_there_and_back("b").await, Ok("seen".to_owned()));
            }
        },
    );
}

#[test]
fn a_deadline_travels_along_a_chain_and_only_shrinks() {
    calm(
        20,
        |builder, _| builder.register::<Link>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            for round in 0..5 {
                let left = LinkRef::of(&a, round).left(4).by(Duration::from_secs(2)).await.unwrap();
                let left = left.expect("somebody waits");
                // Clocks drift by a hundredth, and time under way is nobody's.
                assert!((1_000..=1_650).contains(&left), "four links of 100 ms leave {left} ms of 2 s");
            }
        },
    );
}
