//! What becomes of slow subscribers, and of who publishes to them.

use std::time::Duration;

use greenroom::{CallError, Delivery, Slow};

use super::{equip, topic};
use crate::scenario::calm;

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
