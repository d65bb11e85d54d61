//! What calls to other nodes end with: replies, errors, deadlines, broken and stalled connections.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::Builder;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::{calm, rough};

/// An error of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TooMuch(u64);

/// Does what it is told, for as long as it is told. It is on `b`.
#[derive(Default, Actor)]
struct Worker {
    done: Vec<u64>,
}

#[actor(placement = "role:work", mailbox = 8)]
impl Worker {
    pub async fn work(&mut self, number: u64, millis: u64) -> u64 {
        self.done.push(number);
        tokio::time::sleep(Duration::from_millis(millis)).await;
        number
    }

    pub async fn done(&self) -> Vec<u64> {
        self.done.clone()
    }

    pub async fn take(&mut self, amount: u64) -> Result<(), TooMuch> {
        Err(TooMuch(amount))
    }

    pub async fn explode(&mut self) {
        panic!("boom after {} works", self.done.len())
    }

    /// Calls by a reference that came in the message.
    pub async fn call(&mut self, other: WorkerRef) -> u64 {
        other.work(9, 0).await.unwrap_or_default()
    }

    pub async fn time_left(&self, cx: &Cx) -> Option<u64> {
        cx.time_left().map(|left| left.as_millis() as u64)
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    let roles = if name == "b" { vec!["work".to_owned()] } else { Vec::new() };
    builder.register::<Worker>().configure(|config| config.roles = roles)
}

/// A worker that is awake, as `a` calls it.
async fn worker(cluster: &Cluster, key: &str) -> WorkerRef {
    let [a, ..] = cluster.three();
    let worker = WorkerRef::of(&a, key);
    worker.done().await.unwrap();
    worker
}

#[test]
fn a_methods_own_error_and_its_panic_come_back_typed_from_another_node() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        assert_eq!(worker.take(7).await, Err(CallError::Actor(TooMuch(7))));
        worker.work(1, 0).await.unwrap();
        let Err(CallError::Unknown(Doubt::Panicked { message })) = worker.explode().await else { panic!("no panic") };
        assert_eq!(message, "boom after 1 works");
        assert_eq!(worker.done().await, Ok(vec![]), "it was made anew");
    });
}

#[test]
fn a_reference_in_a_message_works_on_the_node_where_it_arrives() {
    calm(20, equip, |cluster| async move {
        let (one, other) = (worker(&cluster, "one").await, worker(&cluster, "other").await);
        assert_eq!(one.call(other.clone()).await, Ok(9));
        assert_eq!(other.done().await, Ok(vec![9]));
    });
}

#[test]
fn a_call_that_expires_in_a_mailbox_of_another_node_never_runs() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let busy = worker.work(1, 2_000).into_future();
        let late = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let calls = (2..6).map(|number| worker.work(number, 0).by(Duration::from_millis(500)).into_future());
            join_all(calls).await
        };
        let (busy, late) = tokio::join!(busy, late);
        assert_eq!(busy, Ok(1));
        for told in late {
            assert!(
                matches!(told, Err(CallError::Unknown(_) | CallError::Refused(Refusal::Expired { .. }))),
                "{told:?}"
            );
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(worker.done().await, Ok(vec![1]), "none of the late ones ran");
    });
}

#[test]
fn a_callers_deadline_is_the_callees_too() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let left = worker.time_left().by(Duration::from_secs(3)).await.unwrap().expect("somebody waits");
        assert!((2_900..=3_050).contains(&left), "{left} ms of 3 s");
    });
}

#[test]
fn a_full_mailbox_refuses_callers_of_other_nodes() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let calls = (0..30).map(|number| worker.work(number, 50).once().into_future());
        let told = join_all(calls).await;
        let refused =
            told.iter().filter(|told| matches!(told, Err(CallError::Refused(Refusal::Overloaded { .. })))).count();
        assert_eq!(refused, 30 - 9, "one works and eight wait: {told:?}");
        assert_eq!(worker.done().await.unwrap().len(), 9, "what was refused did not run");
    });
}

#[test]
fn a_kill_ends_the_calls_that_are_out_at_once() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let calls = (0..3).map(|number| worker.work(number, 60_000).by(Duration::from_secs(60)).into_future());
        let calls = tokio::task::unconstrained(join_all(calls));
        tokio::pin!(calls);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut calls).await;
        assert!(early.is_err(), "they are out");
        let killed = cluster.sim.now();
        cluster.sim.crash("b");
        for told in calls.await {
            assert!(matches!(told, Err(CallError::Unknown(Doubt::Disconnected { .. }))), "{told:?}");
        }
        let took = cluster.sim.now() - killed;
        assert!(took < Duration::from_secs(1), "they ended after {took:?}");
    });
}

#[test]
fn a_connection_that_stalls_ends_its_calls_in_time_and_holds_up_no_others() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let [a, _, c] = cluster.three();
        cluster.sim.pause("b");
        let paused = cluster.sim.now();
        let told = worker.work(1, 0).by(Duration::from_secs(3)).await;
        assert!(matches!(told, Err(CallError::Unknown(_) | CallError::Refused(_))), "{told:?}");
        assert!(cluster.sim.now() - paused < Duration::from_millis(3_200));
        // Nobody else hosts it until b is dead, but everybody says so.
        let told = WorkerRef::of(&c, "another").work(1, 0).by(Duration::from_secs(1)).await;
        assert!(told.is_err());
        cluster.settled(&["a", "c"]).await;
        // Once b's lease has run out too.
        let until = cluster.sim.now() + Duration::from_secs(15);
        while !matches!(
            WorkerRef::of(&a, "w").work(2, 0).by(Duration::from_secs(1)).await,
            Err(CallError::Refused(Refusal::Placement { .. }))
        ) {
            assert!(cluster.sim.now() < until, "nobody says that no node has the role");
        }
        cluster.sim.resume("b");
    });
}

#[test]
fn a_reply_that_is_lost_leaves_its_call_in_doubt_at_its_deadline() {
    calm(20, equip, |cluster| async move {
        let worker = worker(&cluster, "w").await;
        let began = cluster.sim.now();
        let call = worker.work(1, 500).by(Duration::from_secs(2)).into_future();
        let cut = async {
            tokio::time::sleep(Duration::from_millis(250)).await;
            cluster.sim.cut("b", "a");
        };
        let (told, ()) = tokio::join!(call, cut);
        assert!(matches!(told, Err(CallError::Unknown(_))), "{told:?}");
        assert!(cluster.sim.now() - began <= Duration::from_millis(2_100));
    });
}

#[test]
fn what_was_refused_has_not_run_and_what_was_answered_has_run_once() {
    rough(30, equip, |cluster| async move {
        let mut told = Vec::new();
        for number in 0..150 {
            let name = ["a", "c"][number as usize % 2];
            let Some(node) = cluster.node(name) else { continue };
            told.push((number, WorkerRef::of(&node, "w").work(number, 3).by(Duration::from_secs(2)).await));
        }
        let (Some(a), Some(b)) = (cluster.node("a"), cluster.node("b")) else { return };
        if a.is_stopped() || b.is_stopped() {
            return;
        }
        let Ok(done) = WorkerRef::of(&a, "w").done().await else { return };
        for (number, told) in told {
            let times = done.iter().filter(|done| **done == number).count();
            match told {
                // Its activation may have ended since, and have taken what it did along.
                Ok(_) | Err(CallError::Unknown(_)) => assert!(times <= 1, "{number} ran {times} times"),
                Err(error) => assert_eq!(times, 0, "{number} ran though it was told: {error}"),
            }
        }
    });
}
