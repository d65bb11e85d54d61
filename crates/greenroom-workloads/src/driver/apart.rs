//! Ping-pong of pairs that begin on two shards of a node: without the optimiser, and with it once it has had its time.

use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use serde_json::{Map, Value, json};

use super::{Outcome, Plan, Run, output_rate, ping_pong};
use crate::cluster::Cluster;
use crate::report::Latency;

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let mut outcome = None;
    for (name, mode) in [("off", OptimiserMode::Off), ("on", OptimiserMode::On)] {
        let plan = Plan { optimiser: Some(mode), ..run.plan.clone() };
        let mut one = Run { cluster: Cluster::start(&plan).await?, plan: &plan, bar: run.bar.clone() };
        let talk = talk(&mut one).await;
        one.cluster.stop().await;
        let (report, moves) = talk?;
        let per_s = report.messages_per_s();
        let mut seen = Map::new();
        seen.insert("messages_per_s".to_owned(), output_rate(per_s).into());
        // One is in flight: a call is two messages.
        seen.insert("call_us".to_owned(), output_rate(2e6 * f64::from(plan.pairs) / per_s).into());
        seen.insert("latency_us".to_owned(), json!(Latency::of(&report.latency_ns)));
        seen.insert("moves".to_owned(), moves.into());
        outcome.get_or_insert_with(|| Outcome::of_talks(&report)).set(name, Value::Object(seen));
    }
    outcome.ok_or_else(|| "nothing was measured".to_owned())
}

/// Lets all pairs talk until the optimiser has had its time, and then measures them; with the moves between shards until
/// then.
async fn talk(run: &mut Run<'_>) -> Result<(crate::report::Report, u64), String> {
    ping_pong::prepare_all(run, "settle").await?;
    for pair in 0..run.plan.pairs {
        put_apart(run, pair).await?;
    }
    ping_pong::start_all(run, Some(SETTLE)).await?;
    run.collect("settle", u64::from(run.plan.pairs)).await?;
    let Cluster::Local(node) = &run.cluster else { return Err("the node is in this process".to_owned()) };
    let moves =
        node.figures().into_iter().find(|figure| figure.name() == MOVES).map_or(0, |figure| figure.value() as u64);
    ping_pong::prepare_all(run, "measured").await?;
    ping_pong::start_all(run, run.plan.duration).await?;
    Ok((run.collect("measured", u64::from(run.plan.pairs)).await?, moves))
}

/// Brings a pong to the shard behind that of its ping.
async fn put_apart(run: &Run<'_>, pair: u32) -> Result<(), String> {
    let Cluster::Local(node) = &run.cluster else { return Err("the node is in this process".to_owned()) };
    let shards = u64::from(run.plan.shards);
    for _ in 0..TRIES {
        let of = async |kind: &str, key: String| match node.inspect(kind, key).await {
            greenroom::Inspected::Here(found) => Some(found.shard),
            _ => None,
        };
        let (ping, pong) = (of("ping", format!("ping-{pair}")).await, of("pong", format!("pong-{pair}")).await);
        let wanted = ping.map(|shard| (shard + 1) % shards);
        if wanted.is_some() && wanted == pong {
            return Ok(());
        }
        if let Some(shard) = wanted {
            node.pass("pong", &format!("pong-{pair}"), shard as u16);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err(format!("pong-{pair} could not be brought to another shard"))
}

/// Time in which the optimiser is to have brought pairs together.
const SETTLE: Duration = Duration::from_secs(5);
const TRIES: u32 = 1000;
const MOVES: &str = "greenroom_optimiser_moves_between_shards_total";
