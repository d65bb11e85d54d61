//! Activations that begin, fail, end, and get stuck.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::Builder;
use greenroom::prelude::*;

use crate::scenario::calm;

/// An actor whose key says what its hooks do.
#[derive(Default)]
struct Moody {
    calls: u64,
}

impl Actor for Moody {
    fn create(cx: &Cx) -> Result<Self, String> {
        match cx.key().as_str() {
            "unmade" => Err("there is no such thing".into()),
            "explodes when made" => panic!("what a thing"),
            _ => Ok(Self::default()),
        }
    }
}

#[actor(idle = "2s", mailbox = 10)]
impl Moody {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        match cx.key().as_str() {
            "unwilling" => Err("not today".into()),
            "explodes" => panic!("not at all"),
            "fickle" => {
                cx.deactivate();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn deactivating(&mut self, cx: &Cx, _: Why) {
        if cx.key().starts_with("stuck") {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    pub async fn call(&mut self, cx: &Cx) -> (u64, u64) {
        self.calls += 1;
        (cx.epoch(), self.calls)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }

    pub async fn linger(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Moody>()
}

#[test]
fn a_failure_to_make_or_activate_an_actor_refuses_all_who_wait_on_any_node_and_is_told() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        let said = BTreeMap::from([
            ("unmade", "there is no such thing"),
            ("explodes when made", "what a thing"),
            ("unwilling", "not today"),
            ("explodes", "not at all"),
        ]);
        for (key, expected) in said {
            for _ in 0..2 {
                let calls = nodes.iter().flat_map(|node| (0..3).map(|_| MoodyRef::of(node, key).call().into_future()));
                let mut messages = Vec::new();
                for told in join_all(calls).await {
                    match told {
                        Err(CallError::Refused(Refusal::Activation { message })) => messages.push(message),
                        // One that was tried again and again while others were failed.
                        Err(CallError::Refused(Refusal::Moved)) => {}
                        other => panic!("{other:?}"),
                    }
                }
                assert!(
                    !messages.is_empty() && messages.iter().all(|message| message.contains(expected)),
                    "{messages:?}"
                );
            }
        }
        assert_eq!(nodes.iter().map(Node::activations).sum::<u64>(), 0, "nothing is left of them");
    });
}

#[test]
fn an_actor_that_deactivates_while_it_is_activated_refuses_those_who_wait_at_once() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let began = cluster.sim.now();
        for _ in 0..3 {
            let calls = (0..5).map(|_| MoodyRef::of(&a, "fickle").call().into_future());
            for told in join_all(calls).await {
                let Err(CallError::Refused(Refusal::Activation { message })) = told else { panic!("{told:?}") };
                assert!(message.contains("asked to end"), "{message}");
            }
        }
        assert!(cluster.sim.now() - began < Duration::from_secs(1));
    });
}

#[test]
fn a_deactivation_that_is_stuck_is_given_up_and_the_actor_answers_again() {
    calm(20, equip, |cluster| async move {
        let [a, _, c] = cluster.three();
        let first = MoodyRef::of(&a, "stuck").call().await.unwrap();
        MoodyRef::of(&a, "stuck").leave().await.unwrap();
        let began = cluster.sim.now();
        let again = MoodyRef::of(&c, "stuck").call().by(Duration::from_secs(20)).await.unwrap();
        assert!(again.0 > first.0 && again.1 == 1, "a fresh activation: {first:?}, {again:?}");
        assert!(cluster.sim.now() - began < Duration::from_secs(8));
    });
}

#[test]
fn what_waits_for_a_deactivation_to_end_is_bounded() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        MoodyRef::of(&a, "stuck").leave().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let calls = (0..40).map(|_| MoodyRef::of(&a, "stuck").call().by(Duration::from_secs(20)).once().into_future());
        let told = join_all(calls).await;
        let overloaded =
            |told: &&Result<_, CallError>| matches!(told, Err(CallError::Refused(Refusal::Overloaded { .. })));
        assert_eq!(told.iter().filter(overloaded).count(), 30, "ten may wait: {told:?}");
        assert_eq!(told.iter().filter(|told| told.is_ok()).count(), 10);
    });
}

#[test]
fn calls_that_race_with_an_idle_deactivation_are_all_answered() {
    calm(40, equip, |cluster| async move {
        let nodes = cluster.three();
        let mut random = cluster.sim.random();
        let mut epochs = Vec::new();
        for round in 0..40 {
            let told = MoodyRef::of(&nodes[round % 3], "guest").call().await;
            epochs.push(told.unwrap_or_else(|error| panic!("round {round}: {error}")).0);
            // Idle after two seconds, and fifty milliseconds on its way out.
            let around = Duration::from_millis(1_900)..Duration::from_millis(2_200);
            tokio::time::sleep(random.within(&around)).await;
        }
        assert!(epochs.is_sorted());
        epochs.dedup();
        assert!(epochs.len() > 1, "it did end now and then");
    });
}

#[test]
fn calls_that_are_out_when_their_node_stops_in_order_end_soon_and_later_ones_are_answered_elsewhere() {
    calm(40, equip, |cluster| async move {
        let nodes = cluster.three();
        for key in 0..12 {
            MoodyRef::of(&nodes[0], key).call().await.unwrap();
        }
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        for node in &nodes[..2] {
            for key in 0..12 {
                let (moody, outcomes) = (MoodyRef::of(node, key), outcomes.clone());
                cluster.sim.spawn(async move {
                    for _ in 0..20 {
                        let told = moody.linger(5).by(Duration::from_secs(5)).await;
                        outcomes.lock().unwrap().push(told);
                    }
                });
            }
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
        nodes[2].stop().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        let outcomes = outcomes.lock().unwrap();
        assert_eq!(outcomes.len(), 480, "all have ended");
        let answered = outcomes.iter().filter(|told| told.is_ok()).count();
        assert!(answered > 200, "only {answered} were answered");
    });
}

#[test]
fn stopping_a_node_does_not_wait_for_a_stuck_deactivation_for_ever() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        for key in 0..9 {
            MoodyRef::of(&a, format!("stuck {key}")).call().await.unwrap();
        }
        let began = cluster.sim.now();
        a.stop().await;
        assert!(cluster.sim.now() - began < Duration::from_secs(7));
        cluster.settled(&["b", "c"]).await;
    });
}
