//! Topics: events come to all who subscribe, in order, at least once while the subscriber and the topic live.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, CallError, Delivery, Node, Slow, Topic};

use crate::cluster::Cluster;
use crate::scenario::{calm, rough};

thread_local! {
    /// What the actors of this simulated world have had, which outlives them.
    static HAD: RefCell<BTreeMap<String, Vec<u64>>> = const { RefCell::new(BTreeMap::new()) };
}

fn had(key: &str) -> Vec<u64> {
    HAD.with_borrow(|had| had.get(key).cloned().unwrap_or_default())
}

/// Subscribes to the topic that it is told.
#[derive(Default, Actor)]
struct Listener;

#[actor(placement = "random", idle = "2s")]
impl Listener {
    pub async fn listen(&mut self, cx: &Cx, topic: String) -> String {
        let me = ListenerRef::of(cx, cx.key());
        Topic::<u64>::of(cx, topic).subscribe(cx, me, |me, event| me.hear(event));
        cx.node_name().to_owned()
    }

    /// Takes its time for what it hears.
    pub async fn hear(&mut self, cx: &Cx, event: u64) {
        tokio::time::sleep(Duration::from_millis(event % 3)).await;
        HAD.with_borrow_mut(|had| had.entry(cx.key().to_string()).or_default().push(event));
    }

    pub async fn leave(&self, cx: &Cx) {
        cx.deactivate();
    }
}

/// Every actor of this kind hears the topic with its key.
#[derive(Default, Actor)]
struct Ticker;

#[actor(idle = "2s")]
impl Ticker {
    pub async fn on_price(&mut self, cx: &Cx, price: u64) -> Result<(), String> {
        HAD.with_borrow_mut(|had| had.entry(cx.key().to_string()).or_default().push(price));
        if price.is_multiple_of(2) { Ok(()) } else { Err("odd prices are heard, and not liked".to_owned()) }
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    if name == "a" {
        HAD.take();
    }
    builder
        .register::<Listener>()
        .register::<Ticker>()
        .subscribe("prices", |node, key, price: u64| TickerRef::of(node, key).on_price(price))
}

fn topic(node: &Node) -> Topic<u64> {
    Topic::of(node, "numbers")
}

/// Waits until the actor has had as many events.
async fn heard(key: &str, count: usize) -> Vec<u64> {
    while had(key).len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    had(key)
}

#[test]
fn every_subscriber_on_every_node_gets_every_event_in_order() {
    calm(10, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watches = Vec::new();
        for node in &nodes {
            watches.push(topic(node).watch().await.unwrap());
        }
        ListenerRef::of(&nodes[1], "one").listen("numbers").await.unwrap();
        while topic(&nodes[0]).subscribers().await.unwrap() < 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let publishing = async {
            for event in 0..200 {
                assert_eq!(topic(&nodes[2]).publish(&event).await.unwrap().subscribers, 4);
            }
        };
        let watching = async {
            for watch in &mut watches {
                for event in 0..200 {
                    assert_eq!(watch.next().await, Some(Ok(Delivery::Event(event))));
                }
            }
        };
        tokio::join!(publishing, watching);
        assert_eq!(heard("one", 200).await, (0..200).collect::<Vec<_>>());
    });
}

#[test]
fn each_publishers_events_stay_in_order() {
    calm(10, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).watch().await.unwrap();
        for event in 0..100 {
            topic(&nodes[1]).send(&event);
            topic(&nodes[2]).send(&(1000 + event));
        }
        let mut next = [0, 1000];
        for _ in 0..200 {
            let Some(Ok(Delivery::Event(event))) = watch.next().await else { panic!("nobody is too slow") };
            let publisher = usize::from(event >= 1000);
            assert_eq!(event, next[publisher]);
            next[publisher] += 1;
        }
    });
}

#[test]
fn a_slow_subscriber_that_drops_the_oldest_is_told_how_many() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).slow(Slow::DropOldest, 10).watch().await.unwrap();
        for event in 0..1000 {
            topic(&nodes[1]).publish(&event).await.unwrap();
        }
        let mut expected = 0;
        while expected < 1000 {
            match watch.next().await {
                Some(Ok(Delivery::Event(event))) => {
                    assert_eq!(event, expected);
                    expected += 1;
                }
                Some(Ok(Delivery::Missed(Some(count)))) => expected += count,
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_slow_subscriber_may_be_disconnected_and_holds_nobody_up() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).slow(Slow::Disconnect, 10).watch().await.unwrap();
        for event in 0..1000 {
            topic(&nodes[1]).publish(&event).await.unwrap();
        }
        let mut expected = 0;
        let end = loop {
            match watch.next().await {
                Some(Ok(Delivery::Event(event))) => {
                    assert_eq!(event, expected);
                    expected += 1;
                }
                other => break other,
            }
        };
        assert!(matches!(end, Some(Err(CallError::Refused(_)))), "{end:?}");
        assert!(expected >= 10, "it has had what it had room for");
    });
}

#[test]
fn a_slow_subscriber_may_hold_publishers_back_and_then_misses_nothing() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).slow(Slow::Backpressure, 10).watch().await.unwrap();
        let publisher = nodes[1].clone();
        let published = std::rc::Rc::new(std::cell::Cell::new(0_u64));
        let count = published.clone();
        cluster.sim.spawn(async move {
            for event in 0..500 {
                topic(&publisher).publish(&event).await.unwrap();
                count.set(event + 1);
            }
        });
        for event in 0..500 {
            assert_eq!(watch.next().await, Some(Ok(Delivery::Event(event))));
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(published.get() <= event + 2 + 10 + 64 + 64, "{} are published, {event} taken", published.get());
        }
    });
}

#[test]
fn a_subscriber_that_takes_nothing_is_cut_off_and_publishers_go_on() {
    calm(3, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).slow(Slow::Backpressure, 10).watch().await.unwrap();
        assert!(futures_util::poll!(std::pin::pin!(watch.next())).is_pending());
        let mut published = 0;
        while published < 200 {
            if topic(&nodes[1]).publish(&published).await.is_ok() {
                published += 1;
            }
        }
    });
}

#[test]
fn a_kind_gets_the_events_of_the_topics_that_have_its_keys() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        for price in 0..20 {
            for key in ["eu", "us/east"] {
                let prices = Topic::<u64>::of(&nodes[price as usize % 3], format!("prices/{key}"));
                assert_eq!(prices.publish(&price).await.unwrap().subscribers, 1);
            }
        }
        for key in ["eu", "us/east"] {
            assert_eq!(heard(key, 20).await, (0..20).collect::<Vec<_>>(), "an error of its own is an acknowledgement");
        }
        assert_eq!(Topic::<u64>::of(&nodes[0], "other/eu").publish(&1).await.unwrap().subscribers, 0);
    });
}

#[test]
fn a_subscription_keeps_its_actor_and_ends_with_it() {
    calm(5, equip, |cluster| async move {
        let node = &cluster.three()[0];
        let listener = ListenerRef::of(node, "one");
        listener.listen("numbers").await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(topic(node).publish(&1).await.unwrap().subscribers, 1, "though its kind is idle after 2 s");
        heard("one", 1).await;
        listener.leave().await.unwrap();
        while topic(node).subscribers().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn a_watch_that_is_dropped_unsubscribes() {
    calm(5, equip, |cluster| async move {
        let node = &cluster.three()[0];
        let mut watch = topic(node).watch().await.unwrap();
        topic(node).publish(&1).await.unwrap();
        watch.next().await.unwrap().unwrap();
        drop(watch);
        while topic(node).subscribers().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn who_watches_again_after_the_last_event_misses_nothing() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut watch = topic(&nodes[0]).watch().await.unwrap();
        for event in 0..10 {
            topic(&nodes[1]).publish(&event).await.unwrap();
        }
        for event in 0..5 {
            assert_eq!(watch.next().await, Some(Ok(Delivery::Event(event))));
        }
        let last = watch.last().unwrap();
        drop(watch);
        let mut watch = topic(&nodes[2]).after(last).watch().await.unwrap();
        for event in 5..10 {
            assert_eq!(watch.next().await, Some(Ok(Delivery::Event(event))));
        }
    });
}

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
