//! What is promised when links break and nodes go: at least once, to those who live.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use greenroom::{Delivery, Node, Slow, Topic};

use super::{ListenerRef, TickerRef, equip, had, host, topic};
use crate::cluster::Cluster;
use crate::scenario::{calm, rough};

/// Publishes 0 to 99 from `node`, each until it is acknowledged.
async fn publish_all(node: Node) {
    for event in 0..100 {
        while topic(&node).publish(&event).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All of 0 to 99 are there, and begin in order.
fn at_least_once(had: &[u64]) {
    let mut first: Vec<u64> = Vec::new();
    for event in had {
        if !first.contains(event) {
            first.push(*event);
        }
    }
    first.sort_unstable();
    assert_eq!(first, (0..100).collect::<Vec<_>>(), "{had:?}");
}

#[test]
fn cut_links_delay_events_and_lose_none() {
    calm(10, equip, |cluster| async move {
        let nodes = cluster.three();
        let host = ListenerRef::of(&nodes[0], "one").listen("numbers").await.unwrap();
        cluster.sim.note(format_args!("it listens on {host}"));
        while topic(&nodes[0]).subscribers().await.unwrap() < 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (sim, publisher) = (cluster.sim.clone(), nodes[0].clone());
        let cutting = async {
            let mut random = sim.random();
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let (one, other) = (["a", "b", "c"][random.index(3)], ["a", "b", "c"][random.index(3)]);
                if one != other {
                    sim.reset(one, other);
                }
            }
        };
        tokio::join!(publish_all(publisher), cutting);
        while !(0..100).all(|event| had("one").contains(&event)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        at_least_once(&had("one"));
    });
}

#[test]
fn a_topic_whose_node_stops_in_order_loses_nothing_and_goes_on_elsewhere() {
    calm(5, equip, |cluster| async move {
        let (listening, stopping) = listen_apart(&cluster).await;
        let publisher = cluster.node(&listening).unwrap();
        let node = cluster.node(&stopping).unwrap();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            node.stop().await;
        };
        tokio::join!(publish_all(publisher), stop);
        while !(0..100).all(|event| had("one").contains(&event)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

/// Lets a listener hear a topic that is on another node: the two nodes.
async fn listen_apart(cluster: &Cluster) -> (String, String) {
    // The topic is balanced to where there is least; so any but the listener's node can be stopped.
    let node = &cluster.three()[0];
    let listening = ListenerRef::of(node, "one").listen("numbers").await.unwrap();
    while topic(node).subscribers().await.unwrap() < 1 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let hosts = cluster.three().into_iter().filter(|node| node.name() != listening);
    let host = hosts.max_by_key(Node::activations).map(|node| node.name().to_owned()).unwrap();
    (listening, host)
}

#[test]
fn in_a_rough_world_subscribers_keep_hearing() {
    rough(10, equip, |cluster| async move {
        let node = cluster.node("a").unwrap();
        if ListenerRef::of(&node, "one").listen("numbers").await.is_err() {
            return;
        }
        for event in 0..50 {
            if node.is_stopped() {
                return;
            }
            let _ = topic(&node).publish(&event).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let had = had("one");
        cluster.sim.note(format_args!("{} heard", had.len()));
        let mut sorted = had.clone();
        sorted.dedup();
        assert!(sorted.is_sorted(), "one publisher's events are heard in order: {had:?}");
    });
}

#[test]
fn a_killed_subscribers_node_holds_nobody_up() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        topic(&nodes[0]).subscribers().await.unwrap();
        let host = host(&nodes);
        let mut others = nodes.iter().filter(|node| node.name() != host.name());
        let (dying, living) = (others.next().unwrap(), others.next().unwrap());
        let mut lost = topic(dying).slow(Slow::Backpressure, 10).watch().await.unwrap();
        assert!(futures_util::poll!(pin!(lost.next())).is_pending());
        let mut watch = topic(living).watch().await.unwrap();
        let (sim, dying, publisher) = (cluster.sim.clone(), dying.name().to_owned(), host.clone());
        sim.spawn(async move {
            for event in 0..500 {
                topic(&publisher).publish(&event).await.unwrap();
            }
        });
        for event in 0..500 {
            if event == 60 {
                cluster.sim.crash(&dying);
            }
            assert_eq!(watch.next().await, Some(Ok(Delivery::Event(event))));
        }
        drop(lost);
    });
}

#[test]
fn subscribers_of_a_killed_topic_find_it_again_and_hear_all_that_it_takes_from_then_on() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        topic(&nodes[0]).subscribers().await.unwrap();
        let host = host(&nodes);
        let publisher = nodes.iter().find(|node| node.name() != host.name()).unwrap();
        let mut keys = Vec::new();
        for key in ["one", "two", "three", "four"] {
            if ListenerRef::of(publisher, key).listen("numbers").await.unwrap() != host.name() {
                keys.push(key);
            }
        }
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for event in 0..100 {
            if event == 40 {
                cluster.sim.crash(host.name());
            }
            let published = loop {
                match topic(publisher).publish(&event).await {
                    Ok(published) => break published,
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            };
            taken.push((published.id.epoch, event));
        }
        let (last, _) = *taken.last().unwrap();
        assert!(taken[0].0 < last, "the topic has moved");
        let wanted: Vec<u64> = taken.iter().filter(|(epoch, _)| *epoch == last).map(|(_, event)| *event).collect();
        for key in keys {
            while !wanted.iter().all(|event| had(key).contains(event)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let before: BTreeSet<u64> = had(key).into_iter().filter(|event| !wanted.contains(event)).collect();
            let (first, last) = (before.first().copied().unwrap_or(0), before.last().copied().unwrap_or(0));
            assert!(
                before.is_empty() || last - first + 1 == before.len() as u64,
                "what it lost was the last: {before:?}"
            );
        }
    });
}

#[test]
fn an_actor_that_moves_goes_on_hearing_what_its_kind_subscribes_to() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        let prices = |node: &Node| Topic::<u64>::of(node, "prices/eu");
        prices(&nodes[0]).subscribers().await.unwrap();
        let topics = host(&nodes).name().to_owned();
        let place = TickerRef::of(&nodes[0], "eu").place().await.unwrap();
        let publisher = nodes.iter().find(|node| node.name() != place).unwrap();
        for price in 0..60 {
            if price == 20 && place == topics {
                let leaving = cluster.node(&place).unwrap();
                cluster.sim.spawn(async move { leaving.stop().await });
            } else if price == 20 {
                cluster.sim.crash(&place);
            }
            while prices(publisher).publish(&price).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        while !(0..60).all(|price| had("eu").contains(&price)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_ne!(TickerRef::of(publisher, "eu").place().await.unwrap(), place);
    });
}
