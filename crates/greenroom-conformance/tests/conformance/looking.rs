//! Looking at a cluster by way of any of its nodes.

use std::time::Duration;

use greenroom::Builder;
use greenroom::prelude::*;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::scenario::{NODES, calm, rough};

#[derive(Default, Actor)]
struct Seat {
    taken: u64,
}

#[actor(placement = "random", idle = "20s")]
impl Seat {
    pub async fn take(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }
}

fn seats(builder: Builder, _: &str) -> Builder {
    builder.register::<Seat>()
}

async fn look(cluster: &Cluster, at: &str) -> Value {
    cluster.node(at).expect("it was started").overview(60).await
}

fn node<'a>(seen: &'a Value, name: &str) -> &'a Value {
    let nodes = seen["clusters"][0]["nodes"].as_array().expect("a list");
    nodes.iter().find(|node| node["name"] == name).unwrap_or_else(|| panic!("{name} is not in {seen}"))
}

async fn take_seats(cluster: &Cluster) {
    let node = cluster.node("a").expect("it was started");
    for key in 0..SEATS {
        SeatRef::of(&node, key).take().await.expect("a seat answers");
    }
}

#[test]
fn any_node_says_what_all_of_them_say_of_themselves() {
    calm(20, seats, |cluster| async move {
        take_seats(&cluster).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        for at in NODES {
            let seen = look(&cluster, at).await;
            assert_eq!((&seen["here"], &seen["silent"]), (&(*at).into(), &Value::Array(Vec::new())), "{seen}");
            let active = |name| node(&seen, name)["kinds"]["seat"].as_u64().unwrap_or_default();
            assert_eq!(NODES.iter().map(|name| active(name)).sum::<u64>(), SEATS, "each seat is on one node: {seen}");
            assert_eq!((&seen["totals"]["calls"], &seen["totals"]["failed"]), (&SEATS.into(), &0.into()), "{seen}");
        }
    });
}

#[test]
fn who_is_dead_or_cut_off_is_named_and_holds_nobody_up() {
    calm(20, seats, |cluster| async move {
        take_seats(&cluster).await;
        assert_eq!(node(&look(&cluster, "a").await, "c")["answers"], true);
        cluster.sim.crash("c");
        let asked = tokio::time::Instant::now();
        let seen = look(&cluster, "a").await;
        assert!(asked.elapsed() <= Duration::from_millis(510), "who looks is told by then: {:?}", asked.elapsed());
        assert_eq!(node(&seen, "c")["answers"], false, "{seen}");
        assert_eq!(node(&seen, "b")["answers"], true, "{seen}");
        let silent = &seen["silent"][0];
        assert_eq!(silent["node"], "c", "{seen}");
        assert!(silent["why"].as_str().is_some_and(|why| !why.is_empty()), "{seen}");
        cluster.restart("c");
        loop {
            cluster.settled(NODES).await;
            let seen = look(&cluster, "a").await;
            if seen["silent"] == Value::Array(Vec::new()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    calm(20, seats, |cluster| async move {
        // So that there is a connection to it.
        look(&cluster, "a").await;
        cluster.sim.pause("c");
        let asked = tokio::time::Instant::now();
        let seen = look(&cluster, "a").await;
        assert!(asked.elapsed() <= Duration::from_millis(510), "half a second each: {:?}", asked.elapsed());
        assert_eq!(seen["silent"][0]["why"], "it gave no answer within 500 ms", "{seen}");
        assert_eq!(node(&seen, "b")["answers"], true, "{seen}");
    });
}

#[test]
fn actors_that_are_gone_are_told_no_more() {
    calm(10, seats, |cluster| async move {
        take_seats(&cluster).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let seen = look(&cluster, "b").await;
        assert_eq!((&seen["totals"]["activations"], &seen["silent"]), (&0.into(), &Value::Array(Vec::new())), "{seen}");
        assert!(NODES.iter().all(|name| node(&seen, name)["kinds"] == serde_json::json!({})), "{seen}");
    });
}

#[test]
fn a_node_that_is_asked_often_says_what_it_said_a_moment_ago() {
    calm(10, seats, |cluster| async move {
        let first = look(&cluster, "a").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let soon = look(&cluster, "b").await;
        assert_eq!(node(&first, "c")["uptime"], node(&soon, "c")["uptime"], "whoever asks");
        tokio::time::sleep(Duration::from_millis(900)).await;
        let later = look(&cluster, "a").await;
        assert_ne!(node(&first, "c")["uptime"], node(&later, "c")["uptime"]);
    });
}

#[test]
fn looking_activates_nobody_whatever_the_network_does() {
    rough(20, seats, |cluster| async move {
        for round in 0..20 {
            let seen = look(&cluster, NODES[round % NODES.len()]).await;
            assert_eq!(seen["totals"]["activations"], 0, "{seen}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
}

const SEATS: u64 = 24;
