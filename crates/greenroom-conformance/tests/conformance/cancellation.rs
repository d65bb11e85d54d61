//! Calls whose callers go away: what has not begun never does, and what runs is told.

use std::time::Duration;

use greenroom::Builder;
use greenroom::prelude::*;
use tokio::time::{sleep, timeout};

use crate::cluster::Cluster;
use crate::scenario::calm;

/// Works on one thing at a time, and writes down what it did.
#[derive(Default, Actor)]
struct Worker {
    log: Vec<String>,
}

#[actor(placement = "random")]
impl Worker {
    pub async fn busy(&mut self, ms: u64) {
        sleep(Duration::from_millis(ms)).await;
    }

    pub async fn mark(&mut self, what: String) {
        self.log.push(what);
    }

    /// Ends when nobody waits any more, or after a minute.
    pub async fn until_cancelled(&mut self, cx: &Cx) {
        let end = tokio::select! {
            () = cx.cancelled() => "cancelled",
            () = sleep(Duration::from_secs(60)) => "not cancelled",
        };
        self.log.push(format!("{end}: {}", cx.is_cancelled()));
    }

    /// Looks now and then.
    pub async fn look_until_cancelled(&mut self, cx: &Cx) {
        for _ in 0..600 {
            if cx.is_cancelled() {
                return self.log.push("seen".to_owned());
            }
            sleep(Duration::from_millis(100)).await;
        }
        self.log.push("not seen".to_owned());
    }

    pub async fn log(&self) -> Vec<String> {
        self.log.clone()
    }
}

/// Calls a worker and waits no longer than it likes.
#[derive(Default, Actor)]
struct Impatient {}

#[actor(placement = "random")]
impl Impatient {
    /// Gives a call up after `ms`.
    pub async fn give_up(&mut self, cx: &Cx, worker: String, method: String, ms: u64) -> bool {
        let worker = WorkerRef::of(cx, worker);
        let call = async {
            match &*method {
                "mark" => worker.mark(cx.key().to_string()).await,
                "until" => worker.until_cancelled().await,
                _ => worker.look_until_cancelled().await,
            }
        };
        timeout(Duration::from_millis(ms), call).await.is_err()
    }
}

fn both(builder: Builder, _: &str) -> Builder {
    builder.register::<Worker>().register::<Impatient>()
}

/// The worker's log once it has so many lines.
async fn log_of(cluster: &Cluster, key: &str, lines: usize) -> Vec<String> {
    let a = cluster.node("a").expect("it was not crashed");
    timeout(Duration::from_secs(30), async {
        loop {
            if let Ok(log) = WorkerRef::of(&a, key).log().await
                && log.len() >= lines
            {
                return log;
            }
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{key} writes {lines} lines in time"))
}

#[test]
fn a_cancelled_call_that_waits_in_a_queue_never_starts() {
    calm(20, both, |cluster| async move {
        let nodes = cluster.three();
        for round in 0..3 {
            let key = format!("w{round}");
            let worker = WorkerRef::of(&nodes[round], key.as_str());
            worker.busy(1).await.unwrap();
            worker.busy(3_000).send();
            sleep(Duration::from_millis(200)).await;
            // From actors on any node, and from outside of all actors.
            for (who, node) in nodes.iter().enumerate() {
                let impatient = ImpatientRef::of(node, format!("i{round}{who}"));
                assert_eq!(impatient.give_up(key.clone(), "mark", 300).await, Ok(true), "it is busy");
                let marked = WorkerRef::of(node, key.as_str()).mark("outside").into_future();
                assert!(timeout(Duration::from_millis(100), marked).await.is_err(), "it is busy");
            }
            worker.mark("last").await.unwrap();
            assert_eq!(worker.log().await.unwrap(), ["last"]);
        }
    });
}

#[test]
fn a_turn_that_runs_sees_that_its_caller_has_given_up() {
    calm(20, both, |cluster| async move {
        let nodes = cluster.three();
        for (round, node) in nodes.iter().enumerate() {
            for method in ["until", "look"] {
                let key = format!("{method}{round}");
                let impatient = ImpatientRef::of(node, key.as_str());
                assert_eq!(impatient.give_up(key.clone(), method, 500).await, Ok(true));
                let expected = if method == "until" { "cancelled: true" } else { "seen" };
                // Long before the deadline of 5 s.
                let seen = timeout(Duration::from_secs(2), log_of(&cluster, &key, 1)).await;
                assert_eq!(seen.expect("it is told at once"), [expected]);
            }
            let key = format!("outside{round}");
            let call = WorkerRef::of(node, key.as_str()).until_cancelled().into_future();
            assert!(timeout(Duration::from_millis(500), call).await.is_err());
            let seen = timeout(Duration::from_secs(2), log_of(&cluster, &key, 1)).await;
            assert_eq!(seen.expect("it is told at once"), ["cancelled: true"]);
        }
    });
}

#[test]
fn a_turn_that_runs_sees_its_deadline_pass() {
    calm(20, both, |cluster| async move {
        for (round, node) in cluster.three().iter().enumerate() {
            for method in ["until", "look"] {
                let key = format!("{method}{round}");
                let worker = WorkerRef::of(node, key.as_str());
                let expected = if method == "until" {
                    // It may end just in time to say so.
                    let _ = worker.until_cancelled().by(Duration::from_secs(1)).await;
                    "cancelled: true"
                } else {
                    let _ = worker.look_until_cancelled().by(Duration::from_secs(1)).await;
                    "seen"
                };
                assert_eq!(log_of(&cluster, &key, 1).await, [expected]);
            }
        }
    });
}

#[test]
fn a_turn_that_nobody_waits_for_is_never_cancelled() {
    calm(5, both, |cluster| async move {
        for (round, node) in cluster.three().iter().enumerate() {
            let key = format!("w{round}");
            WorkerRef::of(node, key.as_str()).until_cancelled().send();
            sleep(Duration::from_secs(65)).await;
            assert_eq!(log_of(&cluster, &key, 1).await, ["not cancelled: false"]);
        }
    });
}

#[test]
fn a_turn_that_runs_sees_the_death_of_its_callers_node() {
    // Workers live on `a` and `b`, their callers on `c`.
    let apart = |builder: Builder, name: &str| match name {
        "c" => builder.register::<Impatient>(),
        _ => builder.register::<Worker>(),
    };
    calm(20, apart, |cluster| async move {
        let [a, ..] = cluster.three();
        for method in ["until", "look"] {
            ImpatientRef::of(&a, method).give_up(method, method, 60_000).by(Duration::from_secs(300)).send();
        }
        sleep(Duration::from_secs(1)).await;
        cluster.sim.crash("c");
        assert_eq!(log_of(&cluster, "until", 1).await, ["cancelled: true"]);
        assert_eq!(log_of(&cluster, "look", 1).await, ["seen"]);
    });
}
