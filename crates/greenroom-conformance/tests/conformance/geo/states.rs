//! Versioned states of several clusters, when all is well or the link is cut.

use std::time::Duration;

use greenroom::{CallError, ClusterChange};
use greenroom_sim::{Faults, Sim, expect_violation, seeds};

use super::pages::{DiaryRef, Library, Page, PageRef, Setup, configure};
use super::world::{FAR, run, run_under};

/// Time after which a cluster knows that it has had no instance of an actor for long.
const SETTLED: Duration = Duration::from_secs(15);

/// The time that a call takes, in round trips between clusters.
async fn trips<F: IntoFuture<Output = Result<T, E>>, T, E: std::fmt::Debug>(sim: &Sim, call: F) -> u32 {
    let began = sim.now();
    call.await.expect("it is answered");
    ((sim.now() - began).as_secs_f64() / (2.0 * FAR.as_secs_f64())).floor() as u32
}

/// Round trips of a fresh page's first and second read and write, linearizable ones or local ones, from one node.
async fn costs(library: &Library, from: &str, local: bool, page: &str) -> [u32; 4] {
    let (sim, node) = (&library.sim, library.node(from));
    let mut costs = [0; 4];
    for (reads, at) in [(true, 0), (false, 1)] {
        let page = PageRef::of(&node, format!("{page}-{from}-{reads}-{local}"));
        for turn in [at, at + 2] {
            costs[turn] = match (reads, local) {
                (true, false) => trips(sim, page.read()).await,
                (false, false) => trips(sim, page.write(turn as u64)).await,
                (true, true) => trips(sim, page.glance()).await,
                (false, true) => trips(sim, page.jot(turn as u64)).await,
            };
            // What it has caused elsewhere ends.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    costs
}

#[test]
fn operations_cost_the_round_trips_that_the_table_says() {
    let far = Setup { clusters: 2, placed: true, ..Setup::of("bcas") };
    let led = Setup { clusters: 2, leader: Some("eu"), ..Setup::of("vlb") };
    let single = |setup: Setup| Setup { single: true, ..setup };
    // Row, setup, local, then at C and at N: first read, first write, repeated read, repeated write.
    let table = [
        ("persistent per-cluster, linearizable", far, false, [0, 0, 0, 0], [1, 1, 1, 1]),
        ("persistent per-cluster, local", far, true, [0, 0, 0, 0], [0, 0, 0, 0]),
        ("volatile per-cluster, linearizable", led, false, [1, 1, 0, 0], [1, 1, 1, 1]),
        ("volatile per-cluster, local", led, true, [0, 0, 0, 0], [0, 0, 0, 0]),
        ("persistent single, linearizable", single(far), false, [1, 1, 0, 0], [2, 2, 1, 1]),
        ("persistent single, local", single(far), true, [1, 1, 0, 0], [1, 1, 0, 0]),
        ("volatile single, versioned", single(led), false, [1, 1, 0, 0], [1, 1, 0, 0]),
        ("volatile single, versioned, local", single(led), true, [1, 1, 0, 0], [1, 1, 0, 0]),
    ];
    for (row, setup, local, at_c, at_n) in table {
        seeds(&format!("operations_cost_the_round_trips_that_the_table_says ({row})"), 3, |seed| {
            run(seed, move |sim| async move {
                let library = Library::open(&sim, setup).await;
                tokio::time::sleep(SETTLED).await;
                assert_eq!(costs(&library, "e1", local, "c").await, at_c, "{row} at C");
                assert_eq!(costs(&library, "u1", local, "n").await, at_n, "{row} at N");
            });
        });
    }
}

#[test]
fn a_state_that_is_saved_as_a_whole_is_read_while_others_are_asked() {
    seeds("a_state_that_is_saved_as_a_whole_is_read_while_others_are_asked", 10, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { clusters: 2, ..Setup::of("bcas") }).await;
            tokio::time::sleep(SETTLED).await;
            for (from, expected) in [("e1", [1, 0, 1, 0]), ("u1", [1, 0, 2, 1])] {
                let node = library.node(from);
                let (read, written) =
                    (DiaryRef::of(&node, format!("r-{from}")), DiaryRef::of(&node, format!("w-{from}")));
                let costs = [
                    trips(&sim, read.read()).await,
                    trips(&sim, read.read()).await,
                    trips(&sim, written.write(1)).await,
                    trips(&sim, written.write(2)).await,
                ];
                assert_eq!(costs, expected, "first and second read, first and second write from {from}");
            }
        });
    });
}

/// What a call comes to that is made again while a cluster is late with its answer.
async fn again<C: IntoFuture<Output = Result<T, CallError<E>>>, T, E>(call: impl Fn() -> C) -> Result<T, CallError<E>> {
    loop {
        match call().await {
            Err(CallError::Refused(_)) => tokio::time::sleep(FAR).await,
            ended => return ended,
        }
    }
}

/// A diary is closed where it is while it is called for the first time elsewhere, over a network that is late at times.
fn closes_while_it_is_called_elsewhere(seed: u64, quiet: bool) {
    let faults = Faults { spike_chance: 0.25, spike: FAR * 2..FAR * 8, ..Faults::none() };
    run_under(seed, faults, move |sim| async move {
        let library = Library::open(&sim, Setup { clusters: 2, quiet, ..Setup::of("bcas") }).await;
        tokio::time::sleep(SETTLED).await;
        let mut random = sim.random();
        let nodes = ["e1", "e2", "u1", "u2"].map(|name| library.node(name));
        let mut written = Vec::new();
        for line in 0..12 {
            let [closes, asks] = [0, 2].map(|at| &nodes[if line % 2 == 0 { at } else { 2 - at } + random.index(2)]);
            let [first, second] = [(); 2].map(|()| random.within(&(Duration::ZERO..FAR * 4)));
            let close = async {
                tokio::time::sleep(first).await;
                let diary = DiaryRef::of(closes, "last");
                again(|| diary.close(line)).await
            };
            let ask = async {
                tokio::time::sleep(second).await;
                again(|| DiaryRef::of(asks, "last").read()).await
            };
            let (closed, _) = tokio::join!(close, ask);
            match closed {
                Ok(()) => written.push(line),
                Err(CallError::Unknown(_)) => {
                    // The way to where it ran was too late: once it is over, it was saved or it was not.
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    written = again(|| DiaryRef::of(asks, "last").read()).await.expect("it runs");
                }
                Err(why) => sim.violated(format!("line {line} is not saved: {why}")),
            }
            let seen = again(|| DiaryRef::of(asks, "last").read()).await.expect("it runs");
            if seen != written {
                sim.violated(format!("{written:?} was saved, and {seen:?} is seen"));
            }
            tokio::time::sleep(random.within(&(Duration::ZERO..Duration::from_secs(12)))).await;
        }
    });
}

#[test]
fn what_is_read_while_others_are_asked_is_not_older_than_their_instances() {
    seeds("what_is_read_while_others_are_asked_is_not_older_than_their_instances", 30, |seed| {
        closes_while_it_is_called_elsewhere(seed, true);
    });
}

#[test]
fn without_word_that_there_was_no_instance_an_old_state_is_taken() {
    expect_violation("without_word_that_there_was_no_instance_an_old_state_is_taken", 300, |seed| {
        closes_while_it_is_called_elsewhere(seed, false);
    });
}

#[test]
fn updates_of_one_cluster_are_seen_by_the_instances_of_the_others() {
    let setups = [
        Setup::of("bcas"),
        Setup { placed: true, ..Setup::of("bcas") },
        Setup::of("log"),
        Setup::of("vlb"),
        Setup { leader: Some("asia"), ..Setup::of("vlb") },
    ];
    for setup in setups {
        seeds(&format!("updates_of_one_cluster_are_seen_by_the_others ({setup:?})"), 4, |seed| {
            run(seed, move |sim| async move {
                let library = Library::open(&sim, setup).await;
                let pages = ["e1", "u2", "s1"].map(|node| PageRef::of(&library.node(node), "news"));
                for page in &pages {
                    page.glance().await.expect("it activates");
                }
                let mut watched = pages[2].watch().await.expect("it watches");
                tokio::time::sleep(Duration::from_secs(2)).await;
                for (line, page) in (1..).zip([&pages[0], &pages[1], &pages[0], &pages[2]]) {
                    assert_eq!(page.write(line).await.expect("it is confirmed"), line);
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
                for page in &pages {
                    assert_eq!(page.glance().await.expect("it runs").confirmed, [1, 2, 3, 4], "nobody has asked");
                }
                let seen = async { while watched.next().await.expect("it goes on").expect("it is well") < 4 {} };
                tokio::time::timeout(Duration::from_secs(5), seen)
                    .await
                    .expect("the subscription sees the others' updates");
            });
        });
    }
}

#[test]
fn a_bookmark_from_another_cluster_is_never_behind() {
    for setup in [Setup::of("bcas"), Setup::of("log"), Setup::of("vlb")] {
        seeds(&format!("a_bookmark_from_another_cluster_is_never_behind ({})", setup.protocol), 5, |seed| {
            run(seed, move |sim| async move {
                let library = Library::open(&sim, setup).await;
                let pages = ["e1", "u1", "s2"].map(|node| PageRef::of(&library.node(node), "book"));
                let mut written = Vec::new();
                for line in 0..9 {
                    let (here, there) = (&pages[line % 3], &pages[(line + 1) % 3]);
                    here.write(line as u64).await.expect("it is confirmed");
                    written.push(line as u64);
                    let bookmark = here.glance().await.expect("it runs").version;
                    assert_eq!(there.since(bookmark).await.expect("there is such a version"), written);
                }
            });
        });
    }
}

#[test]
fn local_operations_never_wait_for_the_link_and_drain_in_order() {
    let setups = [
        Setup { placed: true, ..Setup::of("bcas") },
        Setup::of("log"),
        Setup { leader: Some("eu"), ..Setup::of("vlb") },
    ];
    for setup in setups {
        seeds(&format!("local_operations_never_wait_for_the_link ({})", setup.protocol), 5, |seed| {
            run(seed, move |sim| async move {
                let library = Library::open(&sim, setup).await;
                let (eu, us) = (library.node("e1"), library.node("u1"));
                let pages = [&eu, &us].map(|node| PageRef::of(node, "cut"));
                for page in &pages {
                    page.read().await.expect("all is well");
                }
                library.cut();
                for line in 0..40 {
                    for (side, page) in (1..).zip(&pages) {
                        let began = sim.now();
                        let shown = page.jot(side * 1000 + line).await.expect("it does not wait");
                        assert!(sim.now() - began < FAR / 2, "it took {:?}", sim.now() - began);
                        let own: Vec<u64> = shown.tentative.into_iter().filter(|seen| seen / 1000 == side).collect();
                        assert_eq!(
                            own,
                            (0..=line).map(|line| side * 1000 + line).collect::<Vec<_>>(),
                            "its own, in order"
                        );
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                sim.heal();
                library.all_answer().await;
                tokio::time::sleep(Duration::from_secs(12)).await;
                let all = pages[0].read().await.expect("all is well again");
                assert_eq!(all.len(), 80, "each once: {all:?}");
                for side in [1, 2] {
                    let own: Vec<u64> = all.iter().copied().filter(|line| line / 1000 == side).collect();
                    assert!(own.is_sorted(), "{own:?}");
                }
                let seen = pages[1].glance().await.expect("it runs").confirmed;
                assert_eq!(seen, all, "the other side has heard of it by itself");
            });
        });
    }
}

#[test]
fn local_operations_go_on_while_the_store_is_away_and_drain_in_order() {
    for setup in [Setup { placed: true, ..Setup::of("bcas") }, Setup::of("log")] {
        seeds(&format!("local_operations_go_on_while_the_store_is_away ({})", setup.protocol), 5, |seed| {
            run(seed, move |sim| async move {
                let library = Library::open(&sim, setup).await;
                let pages = ["e1", "u1", "s1"].map(|node| PageRef::of(&library.node(node), "away"));
                for page in &pages {
                    page.read().await.expect("all is well");
                }
                library.store.serve(false);
                for line in 0..20 {
                    for (side, page) in (1..).zip(&pages) {
                        let began = sim.now();
                        page.jot(side * 1000 + line).await.expect("it does not wait");
                        assert!(sim.now() - began < FAR / 2);
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                library.store.serve(true);
                tokio::time::sleep(Duration::from_secs(30)).await;
                let all = pages[1].read().await.expect("all is well again");
                assert_eq!(all.len(), 60, "each once: {all:?}");
                for side in [1, 2, 3] {
                    assert!(all.iter().filter(|line| *line / 1000 == side).is_sorted(), "{all:?}");
                }
            });
        });
    }
}

#[test]
fn notifications_activate_nothing_and_what_needs_the_leader_does() {
    seeds("notifications_activate_nothing_and_what_needs_the_leader_does", 10, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { leader: Some("eu"), ..Setup::of("vlb") }).await;
            let page = PageRef::of(&library.node("u1"), "far");
            assert_eq!(page.write(7).await, Ok(1), "the leader is activated for it");
            tokio::time::sleep(Duration::from_secs(1)).await;
            let began = sim.now();
            let at_leader = PageRef::of(&library.node("e2"), "far").read().await.expect("it runs");
            assert!(at_leader == [7] && sim.now() - began < FAR, "it is active in eu");
            // The first activation in asia is this one: it has to learn what there is.
            let first = PageRef::of(&library.node("s1"), "far").glance().await.expect("it runs");
            assert_eq!(first.confirmed, [0u64; 0], "no notification has activated it");
        });
    });
}

#[test]
fn a_volatile_state_survives_its_leader_as_long_as_an_instance_has_it() {
    seeds("a_volatile_state_survives_its_leader_as_long_as_an_instance_has_it", 20, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { leader: Some("eu"), ..Setup::of("vlb") }).await;
            let [us, asia] = ["u1", "s1"].map(|node| PageRef::of(&library.node(node), "leaderless"));
            for line in 1..=4 {
                us.write(line).await.expect("it is confirmed");
                asia.read().await.expect("it runs");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            for node in ["e1", "e2"] {
                sim.crash(node);
            }
            us.jot(5).await.expect("local operations go on");
            for node in ["e1", "e2"] {
                library.cluster_of(node).start(node).await;
            }
            library.all_answer().await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(asia.read().await.expect("a new leader leads"), [1, 2, 3, 4, 5]);
        });
    });
}

#[test]
fn what_a_leader_has_confirmed_outlives_its_activation() {
    seeds("what_a_leader_has_confirmed_outlives_its_activation", 10, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { leader: Some("eu"), ..Setup::of("vlb") }).await;
            let [eu, us] = ["e1", "u1"].map(|node| PageRef::of(&library.node(node), "left"));
            us.read().await.expect("it runs");
            // Of the first line the others are told at once, of the next ones together.
            for line in 1..=3 {
                eu.write(line).await.expect("it is confirmed");
            }
            eu.leave().await.expect("it runs");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(us.read().await.expect("it is led anew"), [1, 2, 3]);
        });
    });
}

#[test]
fn what_two_instances_of_a_volatile_state_have_confirmed_is_kept_when_they_meet() {
    seeds("what_two_instances_of_a_volatile_state_have_confirmed_is_kept_when_they_meet", 10, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { clusters: 2, single: true, ..Setup::of("vlb") }).await;
            let pages = ["e1", "u1"].map(|node| PageRef::of(&library.node(node), "split"));
            assert_eq!(pages[0].write(0).await, Ok(1));
            library.cut();
            tokio::time::sleep(Duration::from_secs(5)).await;
            let mut versions = Vec::new();
            for line in 0..20 {
                for (side, page) in (1..).zip(&pages) {
                    page.write(side * 1000 + line).await.expect("it is confirmed on its side");
                    versions.push(page.glance().await.expect("it runs").version);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            versions.sort();
            let last = *versions.last().expect("there are some");
            versions.dedup();
            assert_eq!(versions.len(), 40, "a version names one state");
            sim.heal();
            library.all_answer().await;
            for _ in 0..30 {
                // It is not idle, whichever it is.
                let _ = tokio::join!(pages[0].glance().into_future(), pages[1].glance().into_future());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let shown = pages[0].glance().await.expect("it runs");
            assert_eq!(shown.confirmed.len(), 41, "each once: {:?}", shown.confirmed);
            for side in [1, 2] {
                let own: Vec<u64> = shown.confirmed.iter().copied().filter(|line| line / 1000 == side).collect();
                assert_eq!(own, (0..20).map(|line| side * 1000 + line).collect::<Vec<_>>(), "in their order");
            }
            assert!(shown.version > last, "later than what either side has seen: {:?}, {last:?}", shown.version);
            assert_eq!(pages[1].glance().await.expect("it runs").instance, shown.instance, "there is one");
        });
    });
}

#[test]
fn updates_that_a_duplicate_cannot_hand_over_are_counted_and_named() {
    seeds("updates_that_a_duplicate_cannot_hand_over_are_counted_and_named", 3, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { clusters: 2, single: true, ..Setup::of("vlb") }).await;
            library.cut();
            tokio::time::sleep(Duration::from_secs(4)).await;
            let pages = ["e1", "u1"].map(|node| PageRef::of(&library.node(node), "twice"));
            for (page, line) in pages.iter().zip([10, 20]) {
                for line in line..line + 3 {
                    page.write(line).await.expect("the duplicate confirms it");
                }
            }
            let of_all = |count: fn(&greenroom::MultiCluster) -> u64| -> u64 {
                library.names().filter_map(|name| library.node(name).multi_cluster().as_ref().map(count)).sum()
            };
            sim.heal();
            while of_all(|status| status.counts.duplicates_found) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // The instance that stays is out of reach before it has heard of them.
            library.cut();
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(of_all(|status| status.counts.updates_lost), 3, "of the one that has ended");
            assert_eq!(
                of_all(|status| status.lost_of.iter().filter(|state| state.contains("twice")).count() as u64),
                1
            );
        });
    });
}

#[test]
fn a_volatile_state_outlives_the_cluster_that_led_it() {
    seeds("a_volatile_state_outlives_the_cluster_that_led_it", 10, |seed| {
        run(seed, |sim| async move {
            let library = Library::open(&sim, Setup { leader: Some("eu"), ..Setup::of("vlb") }).await;
            let [us, asia] = ["u1", "s1"].map(|node| PageRef::of(&library.node(node), "inherited"));
            for line in 1..=4 {
                us.write(line).await.expect("it is confirmed");
                asia.read().await.expect("it runs");
            }
            let leave = [ClusterChange::Drain("eu".to_owned()), ClusterChange::Remove("eu".to_owned())];
            for (change, line) in leave.iter().zip(5..) {
                while !library.change(change).await {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                us.jot(line).await.expect("local operations go on");
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            // No longer than an instance stays that nobody calls.
            tokio::time::sleep(Duration::from_secs(8)).await;
            for page in [&us, &asia] {
                assert_eq!(page.read().await.expect("another cluster leads"), [1, 2, 3, 4, 5, 6]);
            }
        });
    });
}

#[test]
fn what_cannot_be_had_is_refused_with_the_remedy() {
    // no seeds: nothing happens.
    run(0, |sim| async move {
        type Change = fn(&mut greenroom::Config);
        let wrong: [(Change, &str); 4] = [
            (
                |config| leader(config, "vlb", "mars"),
                "\"mars\", which `geo.clusters` does not list (it lists asia, eu, us)",
            ),
            (|config| leader(config, "bcas", "eu"), "protocol \"bcas\" has none"),
            (
                |config| drop(geo(config).stores.insert("default".into(), "mars".into())),
                "`geo.stores.default` names the cluster \"mars\"",
            ),
            (
                |config| drop(geo(config).stores.insert("attic".into(), "eu".into())),
                "names the store \"attic\", which this node has not",
            ),
        ];
        for (change, said) in wrong {
            let mut config = greenroom::Config::default();
            configure(&mut config, "eu", "e1", Setup::of("bcas"));
            config.insecure_listen = true;
            change(&mut config);
            let builder = greenroom::Node::builder().config(config).world(sim.node("e1")).register::<Page>();
            let refused = builder.start().await.expect_err("it cannot be had").to_string();
            assert!(refused.contains(said), "{refused}");
        }
    });
}

fn geo(config: &mut greenroom::Config) -> &mut greenroom::GeoConfig {
    config.geo.as_mut().expect("it is in a multi-cluster")
}

fn leader(config: &mut greenroom::Config, protocol: &str, leader: &str) {
    let kind = config.kinds.entry("page".to_owned()).or_default();
    (kind.protocol, kind.leader) = (Some(protocol.to_owned()), Some(leader.to_owned()));
}
