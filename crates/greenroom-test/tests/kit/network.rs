//! Cuts, pauses, and their ends.

use std::time::Duration;

use crate::actors::{BookRef, CounterRef, cluster};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_cut_lets_nothing_pass_until_it_is_healed() {
    cluster(3).seeds(20, |cluster| async move {
        let (a, b, c) = (cluster.node("a"), cluster.node("b"), cluster.node("c"));
        assert_eq!(CounterRef::of(&b, "x").add().await, Ok(1));
        assert_eq!(CounterRef::of(&a, "x").add().await, Ok(2));
        cluster.cut("a", "b");
        let told = CounterRef::of(&a, "x").add().by(SECOND).await;
        assert!(told.is_err(), "{told:?}");
        let reached = CounterRef::of(&c, "x").add().by(SECOND).await;
        assert_eq!(reached, Ok(3), "others reach it");
        cluster.heal();
        cluster.eventually(|| CounterRef::of(&a, "x").add().by(SECOND)).await;
    });
}

#[test]
fn a_node_that_is_cut_off_from_the_states_saves_nothing() {
    cluster(2).seeds(20, |cluster| async move {
        let b = cluster.node("b");
        assert_eq!(BookRef::of(&b, "x").enter().await, Ok(1));
        cluster.cut("b", "states");
        assert!(BookRef::of(&b, "x").enter().by(SECOND * 2).await.is_err());
        cluster.heal();
        cluster.eventually(|| BookRef::of(&b, "x").entries()).await;
    });
}

#[test]
fn a_node_that_is_cut_off_is_given_up_by_the_others() {
    cluster(3).seeds(10, |cluster| async move {
        cluster.cut_off("c");
        while cluster.node("a").members().len() > 2 {
            tokio::time::sleep(SECOND / 10).await;
        }
        assert_eq!(cluster.node("a").members(), ["a", "b"]);
    });
}

#[test]
fn a_node_that_was_paused_for_too_long_stops_and_is_started_again_by_its_supervisor() {
    cluster(3).seeds(10, |cluster| async move {
        cluster.supervise();
        cluster.pause("c");
        tokio::time::sleep(SECOND * 20).await;
        cluster.resume("c");
        while !cluster.is_up("c") || cluster.sim().node("c").incarnation() < 2 {
            tokio::time::sleep(SECOND / 10).await;
        }
        cluster.settled().await;
        assert_eq!(cluster.node("c").members().len(), 3);
    });
}
