//! How spawned actors end: stopped, killed, with their parents, with their nodes.

use std::time::Duration;

use greenroom::prelude::*;

use super::{BossRef, Worker, equip, is_dead, until};
use crate::scenario::calm;

#[test]
fn stop_lets_the_running_turn_end_and_refuses_what_waits() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong").bind(&b);
        let running = pid.work(300).into_future();
        let waiting = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let waits = pid.work(1).into_future();
            let stopped = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let began = cluster.sim.now();
                pid.stop().await.expect("it runs");
                cluster.sim.now() - began
            };
            tokio::join!(waits, stopped)
        };
        let (ran, (refused, took)) = tokio::join!(running, waiting);
        assert_eq!(ran, Ok(1), "the turn that ran went on to its end");
        assert!(is_dead(refused), "what waited never ran");
        assert!(took >= Duration::from_millis(50), "`stop` waited for the turn: {took:?}");
        assert!(is_dead(pid.count().await));
        assert_eq!(pid.stop().await, Ok(()), "to stop what has ended is no mistake");
    });
}

#[test]
fn kill_breaks_the_running_call_promptly_and_says_that_it_may_have_run() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong").bind(&b);
        let began = cluster.sim.now();
        let running = pid.work(60_000).by(Duration::from_secs(120)).into_future();
        let (ran, waited, killed) = tokio::join!(
            running,
            async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                pid.add(1).await
            },
            async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                pid.kill().await
            }
        );
        assert!(matches!(ran, Err(CallError::Unknown(Doubt::Dropped))), "{ran:?}");
        assert!(is_dead(waited), "what waited never ran");
        assert_eq!(killed, Ok(()));
        assert!(cluster.sim.now() - began < Duration::from_secs(2), "nobody waited for a deadline");
    });
}

#[test]
fn kill_ends_an_actor_whose_caller_is_a_neighbour() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let (one, other) = (boss.hire().await.expect("nothing is wrong"), boss.hire().await.expect("nothing is wrong"));
        let (one, other) = (one.bind(&a), other.bind(&a));
        // The other's turn begins on the stack of the one's, which waits for it.
        let busy = other.work(60_000).by(Duration::from_secs(90)).into_future();
        let (busy, asked, _) = tokio::join!(busy, one.ask(other.clone()).into_future(), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            other.kill().await
        });
        assert!(matches!(busy, Err(CallError::Unknown(_))), "{busy:?}");
        assert!(matches!(asked, Err(CallError::Actor(_))), "{asked:?}");
        assert_eq!(one.count().await, Ok(0), "the one lives");
    });
}

#[test]
fn an_actor_that_stops_itself_is_not_waited_for() {
    calm(10, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong").bind(&b);
        let began = cluster.sim.now();
        assert_eq!(pid.stop_other(pid.clone()).await, Ok(()));
        assert!(cluster.sim.now() - began < Duration::from_secs(2), "nobody waited for a deadline");
        until("it has ended", || async { is_dead(pid.count().await) }).await;
    });
}

#[test]
fn children_end_with_their_virtual_parents_activation() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let here = boss.hire().await.expect("nothing is wrong").bind(&b);
        let there = boss.hire_on("c", 0).await.expect("nothing is wrong").bind(&b);
        assert_eq!((here.add(1).await, there.add(1).await), (Ok(1), Ok(1)));
        boss.leave().await.expect("it runs");
        until("both have ended", || async { is_dead(here.count().await) && is_dead(there.count().await) }).await;
    });
}

#[test]
fn children_end_when_their_parent_panics() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let here = boss.hire().await.expect("nothing is wrong").bind(&b);
        let there = boss.hire_on("c", 0).await.expect("nothing is wrong").bind(&b);
        assert!(boss.fall().await.is_err());
        until("both have ended", || async { is_dead(here.count().await) && is_dead(there.count().await) }).await;
    });
}

#[test]
fn children_elsewhere_end_with_their_parents_node() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let there = BossRef::of(&b, "boss").hire_on("c", 0).await.expect("nothing is wrong").bind(&a);
        assert_eq!(there.add(1).await, Ok(1));
        cluster.sim.crash("b");
        until("it has ended", || async { is_dead(there.count().await) }).await;
    });
}

#[test]
fn a_parent_with_children_does_not_end_for_being_idle() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let pid = boss.hire().await.expect("nothing is wrong").bind(&a);
        let epoch = boss.epoch().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(pid.add(1).await, Ok(1), "neither does a spawned actor");
        assert_eq!(boss.epoch().await, epoch);
        pid.stop().await.expect("it runs");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(boss.epoch().await.expect("it runs") > epoch.expect("it ran"), "without children it does");
    });
}

#[test]
fn a_node_that_stops_ends_its_spawned_actors_and_says_why() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = b.spawn(Worker { count: 0 }).await.expect("it runs").bind(&a);
        let (ended, running, ()) = tokio::join!(pid.ended(), pid.work(300).into_future(), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            b.stop().await;
        });
        let why = ended.expect("node a runs").why;
        assert!(matches!(why, Why::Stopping | Why::NodeLost), "{why:?}");
        assert_eq!(running, Ok(1), "its turn was let go on to its end");
    });
}
