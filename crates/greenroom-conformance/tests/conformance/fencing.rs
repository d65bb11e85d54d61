//! No actor runs twice at once, whatever crashes, pauses and parts: and each check that keeps it so is needed.

use std::time::Duration;

use greenroom_protocols::checks::Checks;
use greenroom_sim::{Exclusive, Fault, Faults, Nemesis, Sim, expect_violation, seeds};

use crate::cluster::{Cluster, sim};
use crate::guarded::{self, GuardedRef};
use crate::scenario::NODES;

/// Whatever a nemesis does.
fn scenario(seed: u64, checks: Checks) {
    under(seed, checks, Faults::rough(), |nemesis| nemesis);
}

/// What a former owner has granted comes when others know already that it is that no more: one frame in twenty is seconds late,
/// and who pauses is voted out.
fn late(seed: u64, checks: Checks) {
    let spike = Duration::from_millis(50)..Duration::from_secs(6);
    let faults = Faults { spike_chance: 0.05, spike, reordering: 0.5, ..Faults::rough() };
    under(seed, checks, faults, |nemesis| nemesis.only(&[Fault::Pause]));
}

/// Three nodes, a few actors that everybody calls all the time, and such a nemesis for 40 virtual seconds.
fn under(seed: u64, checks: Checks, faults: Faults, acts: fn(Nemesis) -> Nemesis) {
    sim(seed, faults).deadline(Duration::from_secs(600)).run(|sim| async move {
        let watch = Exclusive::fenced(&sim);
        let cluster = guarded::cluster(&sim, &watch, checks);
        for name in NODES {
            cluster.start(name).await;
        }
        cluster.supervise();
        for name in NODES {
            call_from(&sim, &cluster, name);
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, NODES)
            .restart(move |name| restarting.restart(name))
            .store(&cluster.store)
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4));
        let done = acts(nemesis).run(Duration::from_secs(40)).await;
        assert!(!done.is_empty(), "every seed has its fault");
        assert!(watch.entries() > 0, "somebody answered");
    });
}

/// Calls one of a few actors after the other from `name`, for ever; errors are what faults bring.
fn call_from(sim: &Sim, cluster: &Cluster, name: &'static str) {
    let (cluster, mut random) = (cluster.clone(), sim.random());
    sim.spawn(async move {
        loop {
            let pause = random.within(&(Duration::from_millis(20)..Duration::from_millis(200)));
            tokio::time::sleep(pause).await;
            let key = random.index(3);
            if let Some(node) = cluster.node(name) {
                let _ = GuardedRef::of(&node, key).touch().by(Duration::from_secs(2)).await;
            }
        }
    });
}

#[test]
fn no_actor_runs_twice_at_once() {
    seeds("no_actor_runs_twice_at_once", 60, |seed| scenario(seed, Checks::default()));
}

#[test]
fn no_actor_runs_twice_at_once_when_frames_are_late() {
    seeds("no_actor_runs_twice_at_once_when_frames_are_late", 40, |seed| late(seed, Checks::default()));
}

#[test]
fn without_the_lease_wait_an_actor_runs_twice() {
    let checks = Checks { lease_wait: false, ..Checks::default() };
    expect_violation("without_the_lease_wait_an_actor_runs_twice", 1000, |seed| scenario(seed, checks));
}

#[test]
fn without_the_view_check_an_actor_runs_twice() {
    let checks = Checks { view_check: false, ..Checks::default() };
    expect_violation("without_the_view_check_an_actor_runs_twice", 1041..10_000, |seed| late(seed, checks));
}

#[test]
fn without_the_epoch_check_an_actor_runs_twice() {
    let checks = Checks { epoch_check: false, ..Checks::default() };
    expect_violation("without_the_epoch_check_an_actor_runs_twice", 1475..4000, |seed| scenario(seed, checks));
}
