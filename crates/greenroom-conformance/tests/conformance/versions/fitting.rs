//! Who is served by whom, and what is said when nobody does.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Refusal, VersionGap, Why};
use greenroom_sim::Faults;

use super::tills::{ClerkTwoRef, NOTHING, TillTwoRef, TillUnsaidRef, serve, with_tills};

fn gap<T: std::fmt::Debug, E: std::fmt::Debug>(result: Result<T, CallError<E>>) -> VersionGap {
    match result {
        Err(CallError::Refused(Refusal::Version(gap))) => *gap,
        other => panic!("it was not refused for its version: {other:?}"),
    }
}

#[test]
fn older_callers_are_served_by_a_newer_version() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 2), ("c", 2)], async |cluster, _, _| {
        let [a, ..] = cluster.three();
        for key in 0..20 {
            let (node, version, _) = serve(&a, 1, &key.to_string(), key).await.expect("nothing is wrong");
            assert_eq!(version, 2, "new activations go to the newest version that serves the caller");
            assert_ne!(node, "a");
        }
    });
}

#[test]
fn callers_of_a_version_never_reach_an_activation_of_an_older_one() {
    with_tills(60, Faults::none(), &[("a", 1), ("b", 1)], async |cluster, hosting, book| {
        let a = cluster.node("a").expect("it was started");
        for key in 0..20 {
            assert_eq!(serve(&a, 1, &key.to_string(), key).await.expect("nothing is wrong").1, 1);
        }
        hosting.borrow_mut().insert("c".into(), 2);
        cluster.start("c").await;
        let c = cluster.node("c").expect("it was started");
        for key in 0..20 {
            let (node, version, _) = serve(&c, 2, &key.to_string(), 100 + key).await.expect("it is handed over");
            assert_eq!((node.as_str(), version), ("c", 2));
            assert_eq!(book.ends(&key.to_string()), [Why::Upgraded]);
            // The older callers go on where the actor is now.
            assert_eq!(serve(&a, 1, &key.to_string(), 200 + key).await.expect("it is served").1, 2);
        }
        book.at_most_once();
    });
}

#[test]
fn first_calls_of_two_versions_race_and_meet_in_one_activation_that_serves_both() {
    with_tills(60, Faults::none(), &[("a", 1), ("b", 1), ("c", 2)], async |cluster, _, book| {
        let [a, b, c] = cluster.three();
        let mut calls = Vec::new();
        for key in 0..20_u64 {
            for (place, (node, version)) in [(&a, 1), (&b, 1), (&c, 2)].into_iter().enumerate() {
                let node = node.clone();
                let call = async move { serve(&node, version, &key.to_string(), key * 3 + place as u64).await };
                calls.push(tokio::task::spawn_local(call));
            }
        }
        for call in calls {
            call.await.unwrap().expect("somebody serves it");
        }
        for (actor, version, operation) in book.ran() {
            assert_eq!(version, 2, "operation {operation} of {actor}");
        }
        book.at_most_once();
        assert_eq!(book.ran().len(), 60);
    });
}

#[test]
fn a_busy_activation_of_an_older_version_ends_for_a_newer_caller_and_what_waits_for_it_goes_along() {
    with_tills(60, Faults::none(), &[("a", 1), ("b", 1)], async |cluster, hosting, book| {
        let [a, b] = ["a", "b"].map(|name| cluster.node(name).expect("it was started"));
        serve(&a, 1, "busy", 0).await.expect("nothing is wrong");
        hosting.borrow_mut().insert("c".into(), 2);
        cluster.start("c").await;
        let c = cluster.node("c").expect("it was started");
        let mut calls = Vec::new();
        for operation in 1..=90 {
            let (node, version) = [(&a, 1), (&b, 1), (&c, 2)][operation % 3];
            let node = node.clone();
            calls.push(tokio::task::spawn_local(async move { serve(&node, version, "busy", operation as u64).await }));
        }
        for call in calls {
            call.await.unwrap().expect("nothing is refused");
        }
        let versions: Vec<u16> = book.ran().into_iter().map(|(_, version, _)| version).collect();
        assert!(versions.is_sorted(), "it never goes back: {versions:?}");
        assert_eq!(versions.len(), 91);
        book.at_most_once();
    });
}

#[test]
fn an_actor_does_not_go_back_to_an_older_version() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 1), ("c", 3)], async |cluster, _, book| {
        let [a, _, c] = cluster.three();
        serve(&c, 3, "x", 0).await.expect("nothing is wrong");
        let said = gap(serve(&a, 1, "x", 1).await);
        assert_eq!((said.wanted, said.actor.as_deref()), (1, Some("till/x")));
        assert!(said.to_string().contains("upgrade the caller to 3"), "{said}");
        assert_eq!(serve(&c, 3, "x", 2).await.expect("it is still there").1, 3);
        assert_eq!(book.ends("x"), []);
        // Where no version 3 has ever been, the older one serves its callers.
        assert_eq!(serve(&a, 1, "y", 3).await.expect("nothing is wrong").1, 1);
    });
}

#[test]
fn no_node_of_a_fitting_version_is_an_error_that_names_the_versions_and_the_remedy() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 1), ("c", NOTHING)], async |cluster, _, book| {
        let [a, _, c] = cluster.three();
        for key in ["new", "known"] {
            if key == "known" {
                serve(&a, 1, key, 0).await.expect("nothing is wrong");
            }
            let said = gap(TillTwoRef::of(&c, key).refund(1).await);
            assert_eq!((said.kind.as_str(), said.wanted, said.hosts.len()), ("till", 2, 2));
            let text = said.to_string();
            assert!(text.contains("node a hosts version 1") && text.contains("hosts version 2 or later"), "{text}");
        }
        assert_eq!(serve(&a, 1, "known", 2).await.expect("it is left alone").1, 1);
        assert_eq!(book.ends("known"), []);
    });
}

#[test]
fn a_method_that_an_older_node_does_not_have_is_an_error_that_names_the_versions() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 1), ("c", NOTHING)], async |cluster, _, _| {
        let [_, _, c] = cluster.three();
        let said = gap(TillUnsaidRef::of(&c, "x").refund(1).await);
        assert_eq!((said.method.as_deref(), said.wanted), (Some("refund"), 1));
        let text = said.to_string();
        assert!(text.contains("hosts version 1") && text.contains("interface = .."), "{text}");
    });
}

#[test]
fn first_calls_race_while_the_newer_node_joins_and_no_caller_is_told_that_its_version_is_nowhere() {
    with_tills(60, Faults::none(), &[("a", 1), ("b", 1)], async |cluster, hosting, book| {
        let [a, b] = ["a", "b"].map(|name| cluster.node(name).expect("it was started"));
        hosting.borrow_mut().insert("c".into(), 2);
        let older = tokio::task::spawn_local(async move {
            for key in 0..200_u64 {
                let node = if key % 2 == 0 { &a } else { &b };
                serve(node, 1, &(key % 100).to_string(), key).await.expect("it is served");
            }
        });
        cluster.start("c").await;
        // Others may not have heard of it yet.
        let c = cluster.node("c").expect("it was started");
        for key in 0..100_u64 {
            let served = serve(&c, 2, &key.to_string(), 1000 + key).await.expect("they wait for the news");
            assert_eq!(served.1, 2);
        }
        older.await.unwrap();
        book.at_most_once();
    });
}

#[test]
fn workers_of_an_older_version_pass_newer_callers_on() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 2), ("c", NOTHING)], async |cluster, _, _| {
        let [_, _, c] = cluster.three();
        for operation in 0..20 {
            let clerk = ClerkTwoRef::of(&c, operation % 4);
            let (node, version, _) = clerk.serve(operation).await.expect("b has them");
            assert_eq!((node.as_str(), version), ("b", 2));
        }
    });
}

#[test]
fn a_one_way_message_of_a_newer_caller_arrives_at_its_version() {
    with_tills(40, Faults::none(), &[("a", 1), ("b", 1)], async |cluster, hosting, book| {
        let a = cluster.node("a").expect("it was started");
        serve(&a, 1, "x", 0).await.expect("nothing is wrong");
        hosting.borrow_mut().insert("c".into(), 2);
        cluster.start("c").await;
        let c = cluster.node("c").expect("it was started");
        for operation in 1..=10 {
            TillTwoRef::of(&c, "x").refund(operation).send();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut later: Vec<_> =
            book.ran().into_iter().skip(1).map(|(_, version, operation)| (operation, version)).collect();
        later.sort_unstable();
        assert_eq!(later, (1..=10).map(|operation| (operation, 2)).collect::<Vec<_>>());
    });
}
