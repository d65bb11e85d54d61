//! Actors that talk mostly among themselves move together, to the partners that they share and to nodes that have less to do.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom::{Builder, Node};
use serde::{Deserialize, Serialize};

use crate::scenario::{calm, calm_over};

/// One of a family: talks with its mother, and now and then with a desk.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Kin {}

#[actor(migrate, placement = "local")]
impl Kin {
    /// Talks with its mother, three times a day, and twice with the desk.
    pub async fn live(&self, cx: &Cx, days: u32, mother: String, desk: Option<String>) {
        for hour in (0..days).flat_map(|_| 0..5) {
            let _ = match &desk {
                Some(desk) if hour % 2 == 1 => DeskRef::of(cx, desk.as_str()).ask().await,
                None if hour % 2 == 1 => continue,
                _ => KinRef::of(cx, mother.as_str()).hear().await,
            };
        }
    }

    pub async fn hear(&self) {}

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// Stays where it is.
#[derive(Default, Actor)]
struct Desk {}

#[actor(placement = "local")]
impl Desk {
    pub async fn ask(&self) {}
}

fn optimised(builder: Builder, _: &str) -> Builder {
    builder.register::<Kin>().register::<Desk>().configure(|config| config.optimiser.mode = OptimiserMode::On)
}

/// The mother, and her children.
fn family(number: usize, len: usize) -> Vec<String> {
    (0..len).map(|member| format!("kin{number}-{member}")).collect()
}

fn desk(number: usize) -> String {
    format!("desk{number}")
}

/// Lets all children of so many families talk for so many times so many days, five days a second. Who lets them is no actor, and on `node`.
async fn live(node: &Node, families: usize, len: usize, (times, days): (u32, u32), has_desks: bool) {
    for _ in 0..times {
        let all = (0..families).flat_map(|number| {
            let members = family(number, len);
            let mother = members[0].clone();
            let children = members.into_iter().skip(1);
            children.map(move |child| {
                KinRef::of(node, child.as_str())
                    .live(days, mother.clone(), has_desks.then(|| desk(number)))
                    .into_future()
            })
        });
        join_all(all).await;
        tokio::time::sleep(Duration::from_millis(200) * days).await;
    }
}

/// On which nodes the members of a family are.
async fn places(node: &Node, number: usize, len: usize) -> Vec<String> {
    let members = family(number, len);
    let asked = members.iter().map(|member| KinRef::of(node, member.as_str()).node().into_future());
    join_all(asked).await.into_iter().map(|place| place.expect("it answers")).collect()
}

#[test]
fn a_family_goes_as_a_whole_to_the_partner_that_none_of_them_would_go_to_alone() {
    const FAMILIES: usize = 3;
    const LEN: usize = 6;
    calm(5, optimised, async |cluster| {
        let [a, b, _] = cluster.three();
        for number in 0..FAMILIES {
            DeskRef::of(&b, desk(number)).ask().await.expect("it answers");
            assert!(places(&a, number, LEN).await.iter().all(|place| place == "a"));
        }
        for minute in 0.. {
            live(&a, FAMILIES, LEN, (10, 10), true).await;
            let all = join_all((0..FAMILIES).map(|number| places(&a, number, LEN))).await;
            if all.iter().flatten().all(|place| place == "b") {
                break;
            }
            assert!(minute < 10, "they are still apart from their desks: {all:?}");
        }
    });
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
        live(&a, FAMILIES, LEN, (25, 1), false).await;
        cluster.start("b").await;
        let (mut most, mut brought) = (0, 0);
        for _ in 0..60 {
            live(&a, FAMILIES, LEN, (5, 1), false).await;
            most = most.max(torn(&a, FAMILIES, LEN).await);
            let places = join_all((0..FAMILIES).map(|number| places(&a, number, LEN))).await;
            brought = places.iter().flatten().filter(|place| *place == "b").count();
        }
        // Two nodes are let be that differ by 32, which of 216 is up to 124 on one of them.
        assert!((60..=124).contains(&brought), "{brought} of {} have come", FAMILIES * LEN);
        // Who is looked at may be on its way.
        assert!(most <= LEN, "{most} of {} children were apart from their mothers", FAMILIES * (LEN - 1));
        assert_eq!(torn(&a, FAMILIES, LEN).await, 0);
    });
}
