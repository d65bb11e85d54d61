//! Who subscribes gets what is published from then on, in order, until it does no more.

use std::time::Duration;

use greenroom::{Delivery, Topic};

use super::{ListenerRef, equip, had, heard, topic};
use crate::scenario::calm;

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
fn an_event_that_is_given_up_is_a_finding_of_its_topics_node_and_the_next_one_comes() {
    calm(5, equip, |cluster| async move {
        let nodes = cluster.three();
        Topic::<String>::of(&nodes[0], "prices/eu").publish(&"cheap".to_owned()).await.unwrap();
        Topic::<u64>::of(&nodes[0], "prices/eu").publish(&2).await.unwrap();
        assert_eq!(heard("eu", 1).await, [2]);
        let finding = loop {
            let found = nodes.iter().flat_map(|node| node.findings());
            if let Some(finding) = found.into_iter().find(|finding| finding.check == "deliveries-failed") {
                break finding;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(finding.text.contains("topic prices/eu: the event is not what the kind subscribes to"), "{finding:?}");
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

#[test]
fn a_cancelled_subscription_delivers_no_more() {
    calm(10, equip, |cluster| async move {
        let node = &cluster.three()[0];
        let listener = ListenerRef::of(node, "one");
        listener.listen("numbers").await.unwrap();
        while topic(node).subscribers().await.unwrap() < 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for event in 0..20 {
            topic(node).publish(&event).await.unwrap();
        }
        listener.cancel().await.unwrap();
        // The delivery that is under way may still come.
        let before = had("one").len();
        for event in 20..40 {
            topic(node).publish(&event).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(had("one").len() <= before + 1, "{} were had, then {:?}", before, had("one"));
        // If it was cancelled before its stream had begun, that takes its time to go.
        while topic(node).subscribers().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}
