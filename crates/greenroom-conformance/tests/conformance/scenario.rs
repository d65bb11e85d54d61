//! Running a scenario under seeds: over nodes `a`, `b` and `c`, that all know each other when it begins.

use std::time::Duration;

use greenroom::Builder;
use greenroom_sim::{Faults, Sim, seeds, test_name};

use crate::cluster::{Cluster, sim};

/// What a node hosts, by its name; the same for all of them, as a rule.
pub(crate) type Equip = fn(Builder, &str) -> Builder;

/// The nodes that are there when a scenario begins.
pub(crate) const NODES: &[&str] = &["a", "b", "c"];

/// Runs `scenario` under so many seeds, in a world that delays and reorders work but loses nothing.
///
/// `GREENROOM_SEEDS` overrides how many; a failure prints the command that replays its seed.
#[track_caller]
pub(crate) fn calm<F>(count: u64, equip: Equip, scenario: impl Fn(Cluster) -> F + Sync)
where
    F: Future<Output = ()> + 'static,
{
    run(count, Faults::none(), equip, scenario);
}

/// As [`calm`], over these nodes.
#[track_caller]
pub(crate) fn calm_over<F>(
    nodes: &'static [&'static str],
    count: u64,
    equip: Equip,
    scenario: impl Fn(Cluster) -> F + Sync,
) where
    F: Future<Output = ()> + 'static,
{
    run_over(nodes, count, Faults::none(), equip, scenario);
}

/// As [`calm`], in a world of loss, spikes, resets and a store that does not always answer.
#[track_caller]
pub(crate) fn rough<F>(count: u64, equip: Equip, scenario: impl Fn(Cluster) -> F + Sync)
where
    F: Future<Output = ()> + 'static,
{
    run(count, Faults::rough(), equip, scenario);
}

/// As [`calm`], under these faults.
#[track_caller]
pub(crate) fn run<F>(count: u64, faults: Faults, equip: Equip, scenario: impl Fn(Cluster) -> F + Sync)
where
    F: Future<Output = ()> + 'static,
{
    run_over(NODES, count, faults, equip, scenario);
}

/// As [`calm`], over these nodes and under these faults.
#[track_caller]
fn run_over<F>(
    nodes: &'static [&'static str],
    count: u64,
    faults: Faults,
    equip: Equip,
    scenario: impl Fn(Cluster) -> F + Sync,
) where
    F: Future<Output = ()> + 'static,
{
    seeds(&test_name(), count, |seed| {
        sim(seed, faults.clone()).deadline(DEADLINE).run(|of: Sim| {
            let cluster = Cluster::new(&of, equip);
            let scenario = scenario(cluster.clone());
            async move {
                cluster.start_all(nodes).await;
                scenario.await;
            }
        });
    });
}

/// Virtual time that a scenario may take.
const DEADLINE: Duration = Duration::from_secs(600);
