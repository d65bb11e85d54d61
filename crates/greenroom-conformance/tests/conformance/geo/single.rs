//! One instance over all clusters.

use std::time::Duration;

use greenroom::{CallError, Refusal, Why};
use greenroom_sim::seeds;

use super::world::{BoardRef, FAR, NotesRef, RoomRef, VaultRef, World, run};

#[test]
fn calls_from_all_clusters_reach_one_instance() {
    seeds("calls_from_all_clusters_reach_one_instance", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            let posted = RoomRef::of(&world.node("e1"), "lobby").post("from eu").await;
            assert_eq!(posted, Ok(1));
            for (expected, node) in (2..).zip(["u1", "u2", "e2", "u1"]) {
                assert_eq!(RoomRef::of(&world.node(node), "lobby").post("more").await, Ok(expected), "{node}");
            }
            assert_eq!(world.rooms.activated("lobby"), 1);
        });
    });
}

#[test]
fn racing_first_calls_activate_once() {
    seeds("racing_first_calls_activate_once", 40, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 3, |_| {}).await;
            let calls = ["e1", "u2", "s1", "e2", "u1", "s2"].map(|node| {
                let node = world.node(node);
                async move { RoomRef::of(&node, "race").post("me").await }
            });
            let mut posted: Vec<_> =
                futures_util::future::join_all(calls).await.into_iter().map(|posted| posted.expect("it ran")).collect();
            posted.sort_unstable();
            assert_eq!(posted, [1, 2, 3, 4, 5, 6], "each ran once, on one instance");
            assert_eq!(world.rooms.activated("race"), 1);
        });
    });
}

#[test]
fn a_call_to_another_cluster_takes_one_round_trip_from_the_first_one_on() {
    seeds("a_call_to_another_cluster_takes_one_round_trip", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            let (far, near) = (world.node("u1"), world.node("e1"));
            let trips = |began: Duration, ended: Duration| {
                ((ended - began).as_secs_f64() / (2.0 * FAR.as_secs_f64())).floor() as u32
            };
            for (node, expected) in [(&near, [1, 0]), (&far, [1, 1])] {
                for trip in expected {
                    let began = sim.now();
                    RoomRef::of(node, "trip").post("hi").await.expect("it runs");
                    assert_eq!(trips(began, sim.now()), trip);
                }
            }
        });
    });
}

#[test]
fn an_instance_of_each_cluster_asks_nobody() {
    seeds("an_instance_of_each_cluster_asks_nobody", 10, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            for (node, cluster) in [("e1", "e"), ("u1", "u")] {
                let began = sim.now();
                let at = BoardRef::of(&world.node(node), "news").whereabouts().await.expect("it runs");
                assert!(at.starts_with(cluster) && sim.now() - began < FAR, "{node} was served by {at}");
            }
            assert_eq!(world.rooms.activated("news"), 2);
        });
    });
}

#[test]
fn clusters_whose_calendars_are_hours_apart_say_so_and_work_on() {
    seeds("clusters_whose_calendars_are_hours_apart_say_so", 5, |seed| {
        run(seed, |sim| async move {
            sim.set_wall_ahead(&["u1", "u2"], Duration::from_secs(3 * 3600));
            let world = World::start(&sim, 2, |_| {}).await;
            // Who takes the other cluster's connections says so.
            let ahead = |nodes: [&str; 2], other: &str| {
                let at = |node: &str| {
                    let status = world.node(node).multi_cluster().expect("it is in one");
                    let found = status.clusters.into_iter().find(|cluster| cluster.name == other);
                    found.and_then(|found| found.clock_ahead_s)
                };
                nodes.into_iter().find_map(at)
            };
            let both = || (ahead(["e1", "e2"], "us"), ahead(["u1", "u2"], "eu"));
            let (us, eu) = loop {
                match both() {
                    (Some(us), Some(eu)) => break (us, eu),
                    _ => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            };
            assert!((10_790..=10_810).contains(&us) && (-10_810..=-10_790).contains(&eu), "{us} and {eu}");
            assert_eq!(RoomRef::of(&world.node("e1"), "lobby").post("early").await, Ok(1));
            assert_eq!(RoomRef::of(&world.node("u1"), "lobby").post("late").await, Ok(2));
            sim.set_wall_ahead(&["u1", "u2"], Duration::ZERO);
            while both() != (None, None) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    });
}

#[test]
fn what_is_idle_may_be_activated_in_another_cluster() {
    seeds("what_is_idle_may_be_activated_in_another_cluster", 10, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            RoomRef::of(&world.node("e1"), "traveller").post("in eu").await.expect("it runs");
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert!(world.rooms.live("traveller").is_empty());
            let at = RoomRef::of(&world.node("u1"), "traveller").whereabouts().await.expect("it runs");
            assert!(at.starts_with('u'), "it is where it is called: {at}");
        });
    });
}

#[test]
fn a_cut_cluster_goes_on_and_one_instance_remains_after_the_heal() {
    seeds("a_cut_cluster_goes_on_and_one_instance_remains", 30, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            let (eu, us) = (world.node("e1"), world.node("u1"));
            let owner = RoomRef::of(&eu, "split").whereabouts().await.expect("it runs");
            RoomRef::of(&us, "split").whereabouts().await.expect("it is reached");
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            let began = sim.now();
            let other = RoomRef::of(&us, "split").whereabouts().await.expect("a read goes on");
            assert!(other.starts_with('u') && sim.now() - began < Duration::from_secs(2), "{other}");
            assert_eq!(RoomRef::of(&us, "split").doubtful().await, Ok(true));
            assert_eq!(RoomRef::of(&eu, "split").doubtful().await, Ok(false));
            assert_eq!(world.rooms.live("split").len(), 2);
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(world.rooms.live("split"), [owner], "the owner's remains");
            let told = world.rooms.ended("split");
            assert!(matches!(&told[..], [(node, Why::Duplicate)] if *node == other), "{told:?}");
            assert!(RoomRef::of(&us, "split").whereabouts().await.expect("it is reached").starts_with('e'));
        });
    });
}

#[test]
fn what_a_duplicate_sends_as_it_ends_reaches_the_one_that_stays() {
    seeds("what_a_duplicate_sends_as_it_ends_reaches_the_one_that_stays", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 3, |_| {}).await;
            let nodes = ["e1", "u2", "s1"].map(|name| world.node(name));
            for node in &nodes {
                NotesRef::of(node, "merged").add(vec![format!("before, {}", node.name())]).await.expect("it runs");
            }
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            for node in &nodes {
                NotesRef::of(node, "merged").add(vec![format!("apart, {}", node.name())]).await.expect("it runs");
            }
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let mut all = NotesRef::of(&nodes[1], "merged").all().await.expect("it runs");
            all.sort_unstable();
            let expected = ["apart", "before"].map(|when| ["e1", "s1", "u2"].map(|node| format!("{when}, {node}")));
            assert_eq!(all, expected.concat(), "nothing is lost, and nothing twice");
            let counts = ["e1", "e2", "u1", "u2", "s1", "s2"]
                .map(|name| world.node(name).multi_cluster().expect("it is in one").counts);
            let duplicates =
                counts.map(|counts| [counts.duplicates_found, counts.duplicates_ended, counts.duplicates_merged]);
            let sum = duplicates.iter().fold([0; 3], |sum, one| std::array::from_fn(|at| sum[at] + one[at]));
            let [found, ended, merged] = sum;
            assert!(
                found > 0 && ended == found && merged == found,
                "each has ended, and was taken over: {duplicates:?}"
            );
        });
    });
}

#[test]
fn pessimistic_actors_are_refused_while_a_cluster_is_silent() {
    seeds("pessimistic_actors_are_refused_while_a_cluster_is_silent", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            let us = world.node("u1");
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            let began = sim.now();
            let refused = VaultRef::of(&us, "gold").post("in").await.expect_err("nobody may");
            assert!(sim.now() - began < SILENT, "it is told when the round ends: {:?}", sim.now() - began);
            let CallError::Refused(refusal @ Refusal::Apart { .. }) = refused else { panic!("{refused:?}") };
            assert!(refusal.to_string().contains("does not answer (eu)"), "{refusal}");
            assert_eq!(world.rooms.activated("gold"), 0);
            sim.heal();
            world.all_answer(2).await;
            assert_eq!(VaultRef::of(&us, "gold").post("in").await, Ok(1));
        });
    });
}

#[test]
fn optimistic_actors_answer_within_one_time_out_while_a_cluster_is_silent() {
    seeds("optimistic_actors_answer_within_one_time_out", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 3, |_| {}).await;
            let us = world.node("u2");
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            for key in 0..5 {
                for pause in [SILENT, NEAR] {
                    let began = sim.now();
                    RoomRef::of(&us, key).post("alone").await.expect("it runs");
                    assert!(sim.now() - began < pause, "{key}: {:?}", sim.now() - began);
                }
                let began = sim.now();
                BoardRef::of(&us, key).post("here").await.expect("it runs");
                assert!(sim.now() - began < NEAR, "what is in each cluster waits for none: {:?}", sim.now() - began);
            }
        });
    });
}

/// Time after which a round ends without an answer, and what the cluster itself needs.
const SILENT: Duration = Duration::from_millis(1100);
/// Less than the way to another cluster.
const NEAR: Duration = Duration::from_millis(50);
