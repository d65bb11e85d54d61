//! Everything at once: registers under callers on every node, and a nemesis.

use std::time::Duration;

use greenroom::Builder;
use greenroom_protocols::checks::Checks;
use greenroom_sim::{Faults, Nemesis, Sim, expect_violation, seeds};

use crate::cluster::{Cluster, sim};
use crate::registers::{Fleeting, Histories, Kept};
use crate::scenario::calm;

const FIVE: &[&str] = &["a", "b", "c", "d", "e"];

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Fleeting>().register::<Kept>()
}

/// Five nodes, a few registers that everybody uses all the time, and a nemesis for 60 virtual seconds.
fn scenario(seed: u64, checks: Checks) {
    sim(seed, Faults::rough()).deadline(Duration::from_secs(600)).run(|sim: Sim| async move {
        let cluster =
            Cluster::new(&sim, move |builder, name| equip(builder, name).configure(|config| config.checks = checks));
        cluster.supervise();
        for name in FIVE {
            cluster.start(name).await;
        }
        let histories = Histories::new(&sim, 2);
        for name in FIVE {
            histories.call_from(&cluster, name, true);
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, FIVE)
            .restart(move |name| restarting.restart(name))
            .store(&cluster.store)
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4));
        let acts = nemesis.run(Duration::from_secs(60)).await;
        assert!(!acts.is_empty(), "every seed has its fault");
        tokio::time::sleep(Duration::from_secs(15)).await;
        histories.close();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (_, answered) = histories.check();
        assert!(answered > 50, "only {answered} calls were answered");
    });
}

#[test]
fn under_chaos_every_register_is_linearizable_and_loses_nothing_but_with_its_activation() {
    let name = "under_chaos_every_register_is_linearizable_and_loses_nothing_but_with_its_activation";
    seeds(name, 20, |seed| scenario(seed, Checks::default()));
}

#[test]
fn without_the_lease_wait_a_registers_history_offends() {
    let checks = Checks { lease_wait: false, ..Checks::default() };
    let name = "without_the_lease_wait_a_registers_history_offends";
    let found = expect_violation(name, 1000, |seed| scenario(seed, checks));
    assert!(found.what.starts_with("register "), "{}", found.what);
}

#[test]
fn without_the_epoch_check_a_registers_history_offends() {
    let checks = Checks { epoch_check: false, ..Checks::default() };
    let name = "without_the_epoch_check_a_registers_history_offends";
    let found = expect_violation(name, 1000, |seed| scenario(seed, checks));
    assert!(found.what.starts_with("register "), "{}", found.what);
}

#[test]
fn without_faults_no_register_begins_anew_while_nodes_come_and_others_stop_in_order() {
    calm(20, equip, |cluster| async move {
        let histories = Histories::new(&cluster.sim, 6);
        for name in ["a", "b"] {
            histories.call_from(&cluster, name, false);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        for name in ["d", "e"] {
            cluster.start(name).await;
        }
        cluster.settled(FIVE).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(histories.check().0, 0, "nothing was lost when others joined");
        // What is on a node that stops is lost with it, and nothing else.
        let mut hosted = 0;
        for name in ["c", "d"] {
            let node = cluster.node(name).expect("it was started");
            // What began anew here, as the other one had stopped, does so again.
            hosted += node.activations();
            node.stop().await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        histories.close();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (successions, answered) = histories.check();
        assert!(successions as u64 <= hosted, "{successions} registers began anew, {hosted} activations had to end");
        assert!(answered > 100, "only {answered} calls were answered");
    });
}
