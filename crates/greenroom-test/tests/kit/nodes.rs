//! Nodes that come and go, and what outlives them.

use std::time::Duration;

use greenroom_test::Cluster;

use crate::actors::{Annals, AnnalsRef, BookRef, CounterRef, LedgerRef, cluster, reliable_cluster};

#[test]
fn what_was_saved_outlives_all_nodes_and_what_was_not_is_gone() {
    cluster(2).seeds(10, |cluster| async move {
        let a = cluster.node("a");
        assert_eq!(BookRef::of(&a, "x").enter().await, Ok(1));
        assert_eq!(CounterRef::of(&a, "x").add().await, Ok(1));
        cluster.kill("a");
        cluster.kill("b");
        cluster.start("a").await;
        cluster.start("b").await;
        let a = cluster.node("a");
        assert_eq!(cluster.eventually(|| BookRef::of(&a, "x").enter()).await, 2);
        assert_eq!(cluster.eventually(|| CounterRef::of(&a, "x").add()).await, 1);
    });
}

#[test]
fn reliable_actors_outlive_all_nodes() {
    reliable_cluster(2).seeds(10, |cluster| async move {
        assert_eq!(LedgerRef::of(&cluster.node("a"), "x").enter().await, Ok(1));
        cluster.restart("a").await;
        cluster.restart("b").await;
        let once = || LedgerRef::of(&cluster.node("b"), "x").enter().idempotent("second");
        assert_eq!(cluster.eventually(once).await, 2);
    });
}

#[test]
fn a_start_that_is_asked_for_after_a_kill_in_the_middle_of_another_is_made() {
    cluster(2).seeds(10, |cluster| async move {
        cluster.kill("b");
        cluster.start_soon("b");
        // Its name is another's until the old lease has run out.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!cluster.is_up("b"));
        cluster.kill("b");
        cluster.start("b").await;
        assert!(cluster.is_up("b"));
    });
}

#[test]
fn a_drained_node_is_down_and_starts_again() {
    cluster(3).seeds(10, |cluster| async move {
        assert!(cluster.drain("c").await.is_whole());
        assert!(!cluster.is_up("c"));
        cluster.settled().await;
        assert_eq!(cluster.node("a").members(), ["a", "b"]);
        cluster.start("c").await;
        cluster.settled().await;
        assert_eq!(cluster.node("a").members(), ["a", "b", "c"]);
    });
}

#[test]
fn a_kind_finds_the_store_that_it_names() {
    let cluster = Cluster::named(&["x", "y"], |builder, _| builder.register::<Annals>()).state_store("archive");
    cluster.seeds(5, |cluster| async move {
        assert_eq!(AnnalsRef::of(&cluster.node("x"), "rome").enter().await, Ok(1));
        assert_eq!(AnnalsRef::of(&cluster.node("y"), "rome").enter().await, Ok(2));
    });
}

#[test]
fn on_a_bad_day_with_a_nemesis_the_nodes_come_back() {
    cluster(3).rough().seeds(10, |cluster| async move {
        cluster.supervise();
        let acts = cluster.nemesis().store(cluster.states()).run(Duration::from_secs(30)).await;
        assert!(!acts.is_empty());
        for name in cluster.names() {
            while !cluster.is_up(&name) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        cluster.settled().await;
        cluster.eventually(|| BookRef::of(&cluster.any(), "x").enter()).await;
    });
}
