//! Who is in the cluster: joining, leaving, being voted out.

use std::time::Duration;

use bytes::BytesMut;
use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_wire::{Encoder, Hello, HelloBody, Lane};
use greenroom_world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::Cluster;
use crate::scenario::{calm, calm_over};

/// Says where it is.
#[derive(Default, Actor)]
struct Somewhere {}

#[actor(placement = "balanced")]
impl Somewhere {
    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Somewhere>()
}

/// Whether the nodes called `names` all know `member`, or all do not.
fn know(cluster: &Cluster, names: &[&str], member: &str) -> Option<bool> {
    let known = |name: &&str| cluster.node(name).is_some_and(|node| node.members().iter().any(|known| known == member));
    match names.iter().filter(|name| known(name)).count() {
        0 => Some(false),
        count if count == names.len() => Some(true),
        _ => None,
    }
}

/// Waits until all of `names` have dropped `member`; how long it took.
async fn dropped(cluster: &Cluster, names: &[&str], member: &str) -> Duration {
    let began = cluster.sim.now();
    while know(cluster, names, member) != Some(false) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.sim.now() - began
}

#[test]
fn a_node_that_stops_in_order_is_gone_from_every_view_within_a_second() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        a.stop().await;
        let stopped = cluster.sim.now();
        cluster.settled(&["b", "c"]).await;
        assert!(cluster.sim.now() - stopped < Duration::from_secs(1));
    });
}

#[test]
fn two_votes_evict_a_node_whose_lease_goes_on() {
    calm(20, equip, |cluster| async move {
        let [_, _, c] = cluster.three();
        // It still reaches the store.
        cluster.sim.partition(&["a", "b"], &["c"]);
        let took = dropped(&cluster, &["a", "b"], "c").await;
        assert!(took < Duration::from_secs(15), "it took {took:?}");
        let why = c.halted().await.to_string();
        assert!(why.contains("declared this node dead"), "{why}");
    });
}

#[test]
fn one_vote_evicts_nobody_whose_lease_goes_on() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        cluster.sim.partition(&["a"], &["c"]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        for node in nodes {
            assert_eq!(node.members().len(), 3, "b reaches both, and both reach b");
            assert!(!node.is_stopped());
        }
    });
}

#[test]
fn one_vote_evicts_a_node_whose_lease_has_run_out() {
    calm_over(&["a", "b"], 20, equip, |cluster| async move {
        cluster.sim.crash("b");
        let took = dropped(&cluster, &["a"], "b").await;
        assert!(took < Duration::from_secs(15), "it took {took:?}");
    });
}

#[test]
fn two_nodes_that_do_not_reach_each_other_do_not_evict_each_other() {
    calm_over(&["a", "b"], 20, equip, |cluster| async move {
        cluster.sim.partition(&["a"], &["b"]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        for name in ["a", "b"] {
            let node = cluster.node(name).expect("it was started");
            assert!(!node.is_stopped() && node.members().len() == 2, "{name} holds its lease");
        }
    });
}

#[test]
fn a_node_that_does_not_reach_its_table_stops_by_itself_and_is_replaced() {
    calm(20, equip, |cluster| async move {
        let [a, _, c] = cluster.three();
        let mut hosted = Vec::new();
        for key in 0..30 {
            if SomewhereRef::of(&a, key).place().await.unwrap() == "c" {
                hosted.push(key);
            }
        }
        assert!(!hosted.is_empty());
        cluster.sim.cut("c", "store");
        c.halted().await;
        dropped(&cluster, &["a", "b"], "c").await;
        for key in hosted {
            let place = loop {
                if let Ok(place) = SomewhereRef::of(&a, key).place().by(Duration::from_secs(1)).await {
                    break place;
                }
            };
            assert_ne!(place, "c");
        }
    });
}

/// What comes of a process on `host` that wants to be the node called `name`.
async fn start_as(cluster: &Cluster, host: &str, name: &str) -> greenroom::Result<Node> {
    let config = |config: &mut greenroom::Config| {
        config.name = name.to_owned();
        config.listen = format!("{host}:0");
        config.insecure_listen = true;
        config.shards = 1;
    };
    let builder = Node::builder().configure(config).world(cluster.sim.node(host)).store(cluster.store.seen_by(host));
    equip(builder, name).start().await
}

#[test]
fn a_node_that_is_started_again_replaces_its_dead_self_when_its_lease_has_run_out() {
    calm(20, equip, |cluster| async move {
        cluster.sim.crash("b");
        cluster.start("b").await;
        cluster.settled(&["a", "b", "c"]).await;
    });
}

#[test]
fn a_node_that_has_stopped_in_order_is_started_again_at_once() {
    calm(20, equip, |cluster| async move {
        let [_, b, _] = cluster.three();
        b.stop().await;
        cluster.sim.crash("b");
        let stopped = cluster.sim.now();
        cluster.start("b").await;
        assert!(cluster.sim.now() - stopped < Duration::from_secs(4), "nobody waits for the lease of one that left");
    });
}

#[test]
fn a_second_process_with_the_name_of_a_living_node_is_refused_by_name_and_the_living_one_stays() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        let refused = start_as(&cluster, "elsewhere", "b").await.expect_err("b lives");
        assert!(matches!(&refused, greenroom::Error::NameTaken { name, .. } if name == "b"), "{refused}");
        let said = refused.to_string();
        assert!(said.contains(nodes[1].address()) && said.contains("--name"), "it says where and what helps: {said}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(nodes.iter().all(|node| !node.is_stopped() && node.members().len() == 3));
        nodes[1].stop().await;
        start_as(&cluster, "elsewhere", "b").await.expect("its name is free now");
    });
}

#[test]
fn a_joiner_that_cannot_reach_a_member_waits_until_it_can() {
    calm(20, equip, |cluster| async move {
        cluster.sim.partition(&["d"], &["b"]);
        cluster.restart("d");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(know(&cluster, &["a", "b", "c"], "d"), Some(false), "it is no member of anybody's view");
        cluster.sim.heal();
        cluster.settled(&["a", "b", "c", "d"]).await;
    });
}

#[test]
fn a_peer_of_another_cluster_is_refused_and_counted() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let before = a.refused_connections();
        let mut hello = BytesMut::new();
        let body = HelloBody::new("elsewhere", 7, "stranger", Lane::User { shard: 0, shards: 1 });
        Encoder::default().hello(&mut hello, &Hello::new(body)).unwrap();
        let mut stream = cluster.sim.node("stranger").connect(a.address()).await.unwrap();
        stream.write_all(&hello).await.unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.unwrap();
        assert!(!said.is_empty(), "it is told why");
        assert_eq!(a.refused_connections(), before + 1);
    });
}
