//! What messages carry: contexts and traces, over shards and nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{CallError, Refusal, TraceContext};

use crate::scenario::calm;

/// Passes calls on and remembers what they carried.
#[derive(Default, Actor)]
struct Porter {
    seen: BTreeMap<String, String>,
}

#[actor(placement = "random")]
impl Porter {
    /// What arrives at the last of `hops` more porters, with this one's mark added on the way.
    pub async fn pass(&mut self, cx: &Cx, hops: u64) -> Vec<(String, String)> {
        if hops == 0 {
            return pairs(cx);
        }
        // What was carried before a wait is carried after it.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let next = PorterRef::of(cx, format!("{}+", cx.key()));
        next.pass(hops - 1).with(&format!("by {}", cx.key()), cx.node_name()).await.unwrap_or_default()
    }

    /// Sends one-way to the porter `to`.
    pub async fn tell(&mut self, cx: &Cx, to: String) {
        cx.set_context("told", "yes").unwrap();
        PorterRef::of(cx, to).note().send();
    }

    pub async fn note(&mut self, cx: &Cx) {
        self.seen = pairs(cx).into_iter().collect();
    }

    pub async fn seen(&self) -> BTreeMap<String, String> {
        self.seen.clone()
    }

    /// Two reads of one activation, side by side.
    pub async fn look(&self, cx: &Cx) -> Option<String> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        cx.context().get("who").map(str::to_owned)
    }
}

fn pairs(cx: &Cx) -> Vec<(String, String)> {
    let context = cx.context();
    let mut pairs: Vec<_> = context.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    pairs.extend(cx.trace().map(|trace| ("trace".to_owned(), trace.trace_hex())));
    pairs
}

#[test]
fn context_flows_along_a_chain_of_calls_over_nodes() {
    calm(
        20,
        |builder, _| builder.register::<Porter>(),
        |cluster| async move {
            let trace = TraceContext::new([7; 16], [1; 8], true).expect("ids are not zero");
            for (round, node) in cluster.three().iter().enumerate() {
                let call = PorterRef::of(node, round).pass(3).with("tenant", "a").traced(trace.clone());
                let arrived: BTreeMap<_, _> = call.await.unwrap().into_iter().collect();
                assert_eq!(arrived.get("tenant").map(String::as_str), Some("a"));
                assert_eq!(arrived.get("trace"), Some(&trace.trace_hex()));
                let marks = arrived.keys().filter(|key| key.starts_with("by ")).count();
                assert_eq!(marks, 3, "each on the way has added its own: {arrived:?}");
            }
        },
    );
}

#[test]
fn context_flows_one_way_and_what_a_turn_sets_goes_with_it() {
    calm(
        20,
        |builder, _| builder.register::<Porter>(),
        |cluster| async move {
            for (round, node) in cluster.three().iter().enumerate() {
                let to = format!("to {round}");
                PorterRef::of(node, round).tell(to.clone()).with("tenant", "b").await.unwrap();
                let seen = loop {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let seen = PorterRef::of(node, to.as_str()).seen().await.unwrap();
                    if !seen.is_empty() {
                        break seen;
                    }
                };
                let expected =
                    [("tenant", "b"), ("told", "yes")].map(|(key, value)| (key.to_owned(), value.to_owned()));
                assert_eq!(seen, expected.into());
            }
        },
    );
}

#[test]
fn a_turns_context_is_its_own_and_ends_with_it() {
    calm(
        20,
        |builder, _| builder.register::<Porter>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let porter = PorterRef::of(&a, "one");
            let (ada, bob, nobody) =
                tokio::join!(porter.look().with("who", "ada"), porter.look().with("who", "bob"), porter.look());
            assert_eq!(ada.unwrap().as_deref(), Some("ada"));
            assert_eq!(bob.unwrap().as_deref(), Some("bob"));
            assert_eq!(nobody.unwrap(), None);
            porter.tell("two".to_owned()).with("who", "ada").await.unwrap();
            assert_eq!(porter.pass(0).await.unwrap(), [], "the next turn begins with nothing");
        },
    );
}

#[test]
fn a_context_over_its_bounds_is_refused_and_nothing_runs() {
    calm(
        5,
        |builder, _| builder.register::<Porter>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let porter = PorterRef::of(&a, "one");
            let error = porter.pass(0).with("big", &"v".repeat(8192)).await.unwrap_err();
            assert!(
                matches!(&error, CallError::Refused(Refusal::Invalid { field, .. }) if field == "context"),
                "{error}"
            );
            let overfull = (0..65).fold(porter.note(), |call, n| call.with(&n.to_string(), "v"));
            assert!(matches!(overfull.try_send(), Err(Refusal::Invalid { .. })));
            assert_eq!(porter.seen().await.unwrap(), BTreeMap::new());
        },
    );
}
