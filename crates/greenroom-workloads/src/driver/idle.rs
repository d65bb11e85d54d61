//! Idle: `actors` small actors are activated and left alone; then some are asked if they are still there. If there is time left, the nodes are
//! watched while nobody asks anything.

use std::time::Duration;

use serde_json::json;

use super::{Outcome, Run, output_rate};
use crate::cluster::{Cluster, Target};
use crate::kinds::idle::{RouseOrder, RouserRef};
use crate::report::Report;

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let actors = u64::from(run.plan.actors);
    // What a node holds once, whatever the number of actors, is there before it is weighed.
    rouse(run, "warm", actors..actors + WARM, 1, 1).await?;
    let before = run.cluster.resident_bytes();
    let roused = rouse(run, "all", 0..actors, 1, 1).await?;
    let after = run.cluster.resident_bytes();
    let again = rouse(run, "some", 0..actors, (actors / ANSWERS_MAX).max(1), 2).await?;
    let mut both = roused.clone();
    both.errors += again.errors;
    both.lost += again.lost;
    both.complaint = both.complaint.or(again.complaint);
    let mut outcome = Outcome::of(&both);
    let grown = after.saturating_sub(before);
    outcome.set("bytes_per_actor", output_rate(grown as f64 / actors as f64));
    outcome.set("resident_bytes", grown);
    outcome.set("activations", roused.messages);
    outcome.set("activations_per_s", output_rate(roused.messages_per_s()));
    outcome.set("answers", again.messages);
    if let Some(time) = run.plan.duration {
        let cores = at_rest(&run.cluster, time).await;
        let percent = |cores: f64| output_rate(cores * 100.0);
        outcome.set("percent_of_a_core_a_node", percent(cores.iter().sum::<f64>() / cores.len().max(1) as f64));
        outcome.set("percent_of_a_core_the_most", percent(cores.iter().copied().fold(0.0, f64::max)));
    }
    Ok(outcome)
}

/// The cores that each node keeps busy while nothing is asked of it.
async fn at_rest(cluster: &Cluster, time: Duration) -> Vec<f64> {
    let before = cluster.cpu_of_each();
    tokio::time::sleep(time).await;
    let spent = cluster.cpu_of_each().into_iter().zip(before).map(|(after, before)| after - before);
    spent.map(|spent| spent / time.as_secs_f64()).collect()
}

async fn rouse(
    run: &mut Run<'_>,
    name: &str,
    numbers: std::ops::Range<u64>,
    step: u64,
    turn: u64,
) -> Result<Report, String> {
    let order = RouseOrder { from: numbers.start, to: numbers.end, step, turn, tally: name.to_owned() };
    let target = Target { kind: "rouser", key: name, method: "start" };
    let arguments = json!({ "order": order });
    run.cluster.ask(target, arguments, async |node| RouserRef::of(node, name).start(order).await).await?;
    run.collect(name, 1).await
}

/// Actors that are activated before the node is weighed.
const WARM: u64 = 1000;
/// Actors that are asked again, about.
const ANSWERS_MAX: u64 = 10_000;
