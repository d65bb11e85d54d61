//! What becomes of spawned actors that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::prelude::*;

use super::{BossRef, Worker, equip, is_dead, until};
use crate::scenario::calm;

/// Without chance, and soon.
const SOON: Supervise = Supervise::restart().back_off(Duration::from_millis(100), Duration::from_millis(100)).jitter(0);

fn panicked<T>(result: &Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Unknown(Doubt::Panicked { .. })))
}

#[test]
fn a_restart_keeps_the_address_and_what_waits_and_drops_the_state() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire_with(SOON).await.expect("nothing is wrong").bind(&b);
        assert_eq!(pid.add(7).await, Ok(7));
        let (fell, waited) = tokio::join!(pid.fall().into_future(), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            pid.add(1).await
        });
        assert!(panicked(&fell), "{fell:?}");
        assert_eq!(waited, Ok(1), "it ran in the new life, which knows nothing of the old one");
    });
}

#[test]
fn one_failure_too_many_stops_it() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let twice = SOON.at_most(2, Duration::from_secs(60));
        let pid = BossRef::of(&a, "boss").hire_with(twice).await.expect("nothing is wrong").bind(&b);
        for _ in 0..3 {
            assert!(panicked(&pid.fall().await), "it is restarted, and falls");
        }
        assert!(is_dead(pid.count().await), "the third failure was one too many");
        assert_eq!(pid.ended().await.map(|ended| ended.why), Ok(Why::Failed));
    });
}

#[test]
fn failures_that_are_far_apart_do_not_stop_it() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let policy = SOON.at_most(1, Duration::from_secs(5));
        let pid = BossRef::of(&a, "boss").hire_with(policy).await.expect("nothing is wrong").bind(&a);
        for _ in 0..5 {
            assert!(panicked(&pid.fall().await));
            tokio::time::sleep(Duration::from_secs(6)).await;
        }
        assert_eq!(pid.count().await, Ok(0));
    });
}

#[test]
fn pauses_between_restarts_grow() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let policy = Supervise::restart().back_off(Duration::from_millis(200), Duration::from_secs(2)).jitter(0);
        let pid = BossRef::of(&a, "boss").hire_with(policy).await.expect("nothing is wrong").bind(&a);
        let mut last = Duration::ZERO;
        for pause_ms in [200, 400, 800, 1600] {
            assert!(panicked(&pid.fall().await));
            let began = cluster.sim.now();
            assert_eq!(pid.count().await, Ok(0), "the call waits for the new life");
            let took = cluster.sim.now() - began;
            assert!(took >= Duration::from_millis(pause_ms - 50) && took > last, "{took:?} after {last:?}");
            last = took;
        }
    });
}

#[test]
fn escalation_ends_a_virtual_parents_activation() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let epoch = boss.epoch().await.expect("it runs");
        let sibling = boss.hire().await.expect("nothing is wrong").bind(&b);
        let pid = boss.hire_with(Supervise::escalate()).await.expect("nothing is wrong").bind(&b);
        assert!(panicked(&pid.fall().await));
        until("the sibling has ended with the parent", || async { is_dead(sibling.count().await) }).await;
        assert!(is_dead(pid.count().await));
        assert!(boss.epoch().await.expect("it is there again") > epoch);
    });
}

/// A spawned parent, with one child that escalates.
struct Team {
    child: Option<Pid<Worker>>,
    built: Arc<AtomicU64>,
}

impl Actor for Team {}

#[actor]
impl Team {
    pub async fn child(&self) -> Option<Pid<Worker>> {
        self.child.clone()
    }

    async fn activated(&mut self, cx: &Cx) {
        self.built.fetch_add(1, Ordering::Relaxed);
        self.child =
            Some(cx.spawn_with(SOON.at_most(1, Duration::from_secs(60)).or_escalate(), || Worker { count: 0 }));
    }
}

#[test]
fn escalation_restarts_a_spawned_parent_which_spawns_its_children_anew() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let built = Arc::new(AtomicU64::new(0));
        let builds = built.clone();
        let team = a.spawn_with(SOON, move || Team { child: None, built: builds.clone() }).await.expect("it runs");
        let team = team.bind(&b);
        let child = team.child().await.expect("it runs").expect("it has one").bind(&b);
        assert!(panicked(&child.fall().await) && panicked(&child.fall().await), "it is restarted once");
        until("the team has another child", || async {
            team.child().await.is_ok_and(|now| now.is_some_and(|now| now != child))
        })
        .await;
        assert!(is_dead(child.count().await));
        let child = team.child().await.expect("it runs").expect("it has one").bind(&b);
        assert_eq!((child.count().await, built.load(Ordering::Relaxed)), (Ok(0), 2));
    });
}

#[test]
fn all_for_one_restarts_the_siblings_too() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let one = boss.hire_with(SOON.together()).await.expect("nothing is wrong").bind(&b);
        let other = boss.hire_with(SOON.together()).await.expect("nothing is wrong").bind(&b);
        let apart = boss.hire_with(SOON).await.expect("nothing is wrong").bind(&b);
        for pid in [&one, &other, &apart] {
            assert_eq!(pid.add(3).await, Ok(3));
        }
        assert!(panicked(&one.fall().await));
        assert_eq!((one.count().await, other.count().await, apart.count().await), (Ok(0), Ok(0), Ok(3)));
    });
}

#[test]
fn a_panic_while_it_is_made_anew_is_another_failure() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let made = Arc::new(AtomicU64::new(0));
        let count = made.clone();
        let make = move || {
            // The first life is good, the second and third are not.
            let life = count.fetch_add(1, Ordering::Relaxed);
            assert!(life != 1 && life != 2, "life {life} is not");
            Worker { count: life }
        };
        let pid = a.spawn_with(SOON.at_most(3, Duration::from_secs(60)), make).await.expect("it runs").bind(&b);
        assert!(panicked(&pid.fall().await));
        assert_eq!((pid.count().await, made.load(Ordering::Relaxed)), (Ok(3), 4));
        assert!(panicked(&pid.fall().await));
        assert!(is_dead(pid.count().await), "the fourth failure was one too many");
    });
}

#[test]
fn an_actor_that_was_spawned_as_it_was_is_not_restarted() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let pid = a.spawn(Worker { count: 0 }).await.expect("it runs");
        assert!(panicked(&pid.fall().await));
        assert!(is_dead(pid.count().await));
    });
}

#[test]
fn an_actor_spawned_elsewhere_is_restarted_from_its_arguments() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire_on("b", 40).await.expect("nothing is wrong").bind(&a);
        assert_eq!(pid.add(2).await, Ok(42));
        assert!(panicked(&pid.fall().await));
        assert_eq!(pid.count().await, Ok(40));
    });
}

#[test]
fn stop_ends_an_actor_that_pauses_before_its_next_life() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let slow = Supervise::restart().back_off(Duration::from_secs(60), Duration::from_secs(60));
        let pid = BossRef::of(&a, "boss").hire_with(slow).await.expect("nothing is wrong").bind(&b);
        assert!(panicked(&pid.fall().await));
        let (waited, stopped) = tokio::join!(pid.count().into_future(), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            pid.stop().await
        });
        assert!(is_dead(waited), "what waited never ran");
        assert_eq!(stopped, Ok(()));
    });
}
