//! Actors with a home: their cluster activates them without a question.

use std::time::Duration;

use greenroom::{CallError, ClusterChange, Refusal};
use greenroom_protocols::gsi::Checks;
use greenroom_sim::{Faults, expect_violation, seeds};

use super::world::{CLUSTERS, FAR, FortRef, HearthRef, World, run, run_under};

#[test]
fn a_home_activates_without_a_round_trip_and_the_others_take_one() {
    seeds("a_home_activates_without_a_round_trip", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 2, |_| {}).await;
            // The others run nothing twice because of the lease, too: they must have heard of it.
            world.leases(&["e1", "e2", "u1", "u2"], "hearth").await;
            for (at, key, trips) in [("e1", "eu", [0, 0]), ("u2", "us", [1, 1])] {
                for trip in trips {
                    let began = sim.now();
                    let runs = HearthRef::of(&world.node(at), key).whereabouts().await.expect("it runs");
                    assert!(runs.starts_with('e'), "{key} runs at {runs}");
                    assert_eq!((sim.now() - began).as_nanos() / (2 * FAR).as_nanos(), trip, "{key}");
                }
                assert_eq!(HearthRef::of(&world.node("e2"), key).doubtful().await, Ok(false));
                assert_eq!(world.rooms.activated(key), 1);
            }
        });
    });
}

#[test]
fn a_home_goes_on_alone_and_the_others_refuse_or_doubt() {
    seeds("a_home_goes_on_alone_and_the_others_refuse_or_doubt", 20, |seed| {
        run(seed, |sim| async move {
            let world = World::start(&sim, 3, |_| {}).await;
            for (_, nodes) in CLUSTERS {
                world.leases(&nodes, "fort").await;
                world.leases(&nodes[..usize::from(nodes[0] == "e1")], "hearth").await;
            }
            world.cut();
            tokio::time::sleep(Duration::from_secs(6)).await;
            let (eu, us) = (world.node("e1"), world.node("u1"));
            let (mut here, mut refused) = (0, 0);
            for key in 0..12 {
                let began = sim.now();
                match FortRef::of(&us, key).post("alone").await {
                    Ok(_) => here += 1,
                    Err(CallError::Refused(Refusal::Apart { silent, .. })) => {
                        assert_eq!(silent, ["eu"]);
                        refused += 1;
                    }
                    Err(other) => panic!("{other:?}"),
                }
                assert!(sim.now() - began < Duration::from_millis(1100), "{:?}", sim.now() - began);
            }
            assert!(here > 0 && refused > 0, "some are at home in us or asia, some in eu: {here}, {refused}");
            let began = sim.now();
            HearthRef::of(&eu, "cut").post("at home").await.expect("it runs");
            assert!(sim.now() - began < FAR, "the home asks nobody");
            let other = HearthRef::of(&us, "cut").whereabouts().await.expect("it runs, perhaps a second time");
            assert_eq!(HearthRef::of(&us, "cut").doubtful().await, Ok(true));
            sim.heal();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let left = world.rooms.live("cut");
            assert!(matches!(&left[..], [at] if at.starts_with('e')), "the home's remains, not {other}: {left:?}");
        });
    });
}

/// Everybody calls actors with homes that end when they are idle, while clusters are cut off, and the last one comes to take
/// part and leaves again.
fn homes(seed: u64, checks: Checks) {
    let faults = Faults { spike_chance: 0.1, spike: FAR..FAR * 8, user_loss: 0.02, reordering: 0.2, ..Faults::none() };
    run_under(seed, faults, move |sim| async move {
        let change = move |config: &mut greenroom::Config| {
            if let Some(geo) = &mut config.geo {
                geo.checks = checks;
                if config.cluster != "asia" {
                    geo.clusters.remove("asia");
                } else {
                    // It is told of itself when it joins.
                    geo.epoch = 0;
                }
            }
        };
        let world = World::boot(&sim, 3, change).await;
        let mut random = sim.random();
        for name in CLUSTERS.map(|(_, [name, _])| name) {
            let (node, mut random) = (world.node(name), sim.random());
            sim.spawn(async move {
                loop {
                    tokio::time::sleep(random.within(&(Duration::from_millis(50)..Duration::from_millis(1500)))).await;
                    // Refusals are what cuts and changes bring.
                    let _ = FortRef::of(&node, random.index(4)).post("x").by(Duration::from_secs(3)).await;
                }
            });
        }
        let gateways = CLUSTERS[2].1.map(|node| format!("{node}:7300")).to_vec();
        let steps = [
            ClusterChange::Add("asia".into(), gateways),
            ClusterChange::Drain("asia".into()),
            ClusterChange::Remove("asia".into()),
        ];
        for step in steps {
            tokio::time::sleep(random.within(&(Duration::from_secs(3)..Duration::from_secs(8)))).await;
            world.cut();
            tokio::time::sleep(random.within(&(Duration::from_millis(300)..Duration::from_secs(5)))).await;
            sim.heal();
            // The maker of changes is the first cluster by name: eu until asia has joined.
            let mut tries = 0;
            while !world.change(&step).await {
                tries += 1;
                assert!(tries < 200, "{step:?} is not made");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!((0..4).any(|key| world.rooms.activated(&key.to_string()) > 0), "somebody was answered");
    });
}

#[test]
fn homes_move_with_the_list_and_nobody_is_two() {
    seeds("homes_move_with_the_list_and_nobody_is_two", 20, |seed| homes(seed, Checks::default()));
}

#[test]
fn without_the_rule_for_homes_somebody_is_two() {
    let checks = Checks { home: false, ..Checks::default() };
    expect_violation("without_the_rule_for_homes_somebody_is_two", 300, |seed| homes(seed, checks));
}
