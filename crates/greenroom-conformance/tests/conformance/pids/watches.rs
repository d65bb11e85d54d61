//! Who hears of an end, and how often.

use std::time::Duration;

use greenroom::prelude::*;

use super::{BossRef, Worker, equip, patiently, until};
use crate::scenario::{calm, rough};

/// What `boss` has heard of, once that is something, and still a while later.
async fn heard(boss: &BossRef) -> Vec<String> {
    until("it is told", || async { boss.heard().await.is_ok_and(|heard| !heard.is_empty()) }).await;
    // Time for the shards to ask again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    boss.heard().await.expect("it runs").into_iter().map(|(_, why)| why).collect()
}

#[test]
fn who_watches_is_told_once_and_why() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "parent").hire().await.expect("nothing is wrong");
        let (near, far) = (BossRef::of(&a, "near"), BossRef::of(&b, "far"));
        for boss in [&near, &far] {
            boss.watch(pid.clone()).await.expect("it runs");
            boss.watch(pid.clone()).await.expect("a second time is no mistake");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        pid.bind(&b).stop().await.expect("it runs");
        for boss in [&near, &far] {
            assert_eq!(heard(boss).await, ["Stopped"]);
        }
    });
}

#[test]
fn who_watches_is_told_once_when_the_node_dies() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = b.spawn(Worker { count: 0 }).await.expect("it runs");
        let boss = BossRef::of(&a, "boss");
        boss.watch(pid.clone()).await.expect("it runs");
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.sim.crash("b");
        assert_eq!(heard(&boss).await, ["NodeLost"]);
    });
}

#[test]
fn who_watches_what_has_ended_is_told_at_once() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = b.spawn(Worker { count: 0 }).await.expect("it runs");
        pid.kill().await.expect("it runs");
        let (near, far) = (BossRef::of(&b, "near"), BossRef::of(&a, "far"));
        for boss in [&near, &far] {
            boss.watch(pid.clone()).await.expect("it runs");
            assert_eq!(heard(boss).await, ["Killed"]);
        }
        assert_eq!(pid.bind(&a).ended().await.map(|ended| ended.why), Ok(Why::Killed));
    });
}

#[test]
fn who_no_longer_watches_is_not_told() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = b.spawn(Worker { count: 0 }).await.expect("it runs");
        let (one, other) = (BossRef::of(&a, "one"), BossRef::of(&a, "other"));
        for boss in [&one, &other] {
            boss.watch(pid.clone()).await.expect("it runs");
        }
        one.unwatch(pid.clone()).await.expect("it runs");
        pid.stop().await.expect("it runs");
        assert_eq!(heard(&other).await, ["Stopped"]);
        assert_eq!(one.heard().await, Ok(Vec::new()));
    });
}

#[test]
fn a_failure_without_supervision_ends_an_actor_and_is_told() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = a.spawn(Worker { count: 0 }).await.expect("it runs").bind(&b);
        let boss = BossRef::of(&b, "boss");
        boss.watch(pid.clone()).await.expect("it runs");
        assert!(matches!(pid.fall().await, Err(CallError::Unknown(Doubt::Panicked { .. }))));
        assert_eq!(heard(&boss).await, ["Failed"]);
    });
}

#[test]
fn in_a_rough_world_who_watches_is_told_exactly_once() {
    rough(30, equip, |cluster| async move {
        let (Some(a), Some(b)) = (cluster.node("a"), cluster.node("b")) else { return };
        let Ok(pid) = b.spawn(Worker { count: 0 }).await else { return };
        let stopped = async {
            while !a.is_stopped() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        // A node that has stopped answers nothing any more.
        tokio::select! {
            () = stopped => {}
            () = told_once(&a, &b, pid) => {}
        }
    });
}

async fn told_once(a: &Node, b: &Node, pid: Pid<Worker>) {
    let boss = BossRef::of(a, "boss");
    let epoch = patiently(|| boss.epoch().into_future()).await;
    patiently(|| boss.watch(pid.clone()).into_future()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    pid.bind(b).stop().send();
    for _ in 0..400 {
        // A watch is its activation's: when that has gone, so has the watch.
        let heard = patiently(|| boss.heard().into_future()).await;
        if patiently(|| boss.epoch().into_future()).await != epoch {
            return;
        }
        if !heard.is_empty() {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let heard = patiently(|| boss.heard().into_future()).await;
            assert!(heard.len() == 1 || patiently(|| boss.epoch().into_future()).await != epoch, "{heard:?}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody was told");
}
