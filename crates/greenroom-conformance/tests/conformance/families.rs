//! Actors that talk mostly among themselves move together, to nodes that have less to do.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom::{Builder, Node};
use serde::{Deserialize, Serialize};

use crate::scenario::calm_over;

/// One of a family: talks with its mother.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Kin {}

#[actor(migrate, placement = "local")]
impl Kin {
    /// Talks with its mother.
    pub async fn day(&self, cx: &Cx, mother: String) {
        for _ in 0..3 {
            let _ = KinRef::of(cx, mother.as_str()).hear().await;
        }
    }

    pub async fn hear(&self) {}

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn optimised(builder: Builder, _: &str) -> Builder {
    builder.register::<Kin>().configure(|config| config.optimiser.mode = OptimiserMode::On)
}

/// The mother, and her children.
fn family(number: usize, len: usize) -> Vec<String> {
    (0..len).map(|member| format!("kin{number}-{member}")).collect()
}

/// Lets all children of so many families talk for so many days, five a second.
async fn live(node: &Node, families: usize, len: usize, days: u32) {
    for _ in 0..days {
        let all = (0..families).flat_map(|number| {
            let members = family(number, len);
            let mother = members[0].clone();
            let children = members.into_iter().skip(1);
            children.map(move |child| KinRef::of(node, child.as_str()).day(mother.clone()).into_future())
        });
        join_all(all).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// On which nodes the members of a family are.
async fn places(node: &Node, number: usize, len: usize) -> Vec<String> {
    let members = family(number, len);
    let asked = members.iter().map(|member| KinRef::of(node, member.as_str()).node().into_future());
    join_all(asked).await.into_iter().map(|place| place.expect("it answers")).collect()
}

/// How many children are not where their mothers are.
async fn torn(node: &Node, families: usize, len: usize) -> usize {
    let all = join_all((0..families).map(|number| places(node, number, len))).await;
    all.iter().map(|places| places.iter().filter(|place| **place != places[0]).count()).sum()
}

#[test]
fn a_node_that_joins_fills_with_whole_families() {
    const FAMILIES: usize = 24;
    const LEN: usize = 9;
    calm_over(&["a"], 3, optimised, async |cluster| {
        let a = cluster.node("a").expect("it was started");
        live(&a, FAMILIES, LEN, 25).await;
        cluster.start("b").await;
        let (mut most, mut brought) = (0, 0);
        for _ in 0..60 {
            live(&a, FAMILIES, LEN, 5).await;
            most = most.max(torn(&a, FAMILIES, LEN).await);
            let places = join_all((0..FAMILIES).map(|number| places(&a, number, LEN))).await;
            brought = places.iter().flatten().filter(|place| *place == "b").count();
        }
        // Two nodes with a mean of 108 differ by a quarter of it.
        assert!((60..=108).contains(&brought), "{brought} of {} have come", FAMILIES * LEN);
        // Who is looked at may be on its way.
        assert!(most <= LEN, "{most} of {} children were apart from their mothers", FAMILIES * (LEN - 1));
        assert_eq!(torn(&a, FAMILIES, LEN).await, 0);
    });
}
