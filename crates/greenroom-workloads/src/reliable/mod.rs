//! Reliable actors: the time of a durable hop, the rate of durable messages, of calls and of creations, and the paper's
//! PoolServer, with what was lost and what came twice.

mod calls;
mod create;
mod floor;
mod kinds;
mod pools;

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom::{CallError, Node};
use serde_json::json;

use self::kinds::{Adder, Consumer, ConsumerRef, Hitter, HitterRef, Made, Maker, Producer, ProducerRef, times};
use self::pools::{Pool, Provider, Resource};
use crate::cli::{Durability, Workload};
use crate::driver::{Outcome, Plan, output_rate};
use crate::kinds::payload;
use crate::report::{self, Latency};

/// Runs the workload of `plan` on one node in this process.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let scratch = tempfile::tempdir_in(&plan.dir);
    let scratch = scratch.map_err(|error| format!("no room for files in {}: {error}", plan.dir.display()))?;
    let journal = match (plan.durability, &plan.journal) {
        (Durability::None, _) => "memory:".to_owned(),
        (Durability::Journal, Some(url)) => url.clone(),
        (Durability::Journal, None) => format!("sqlite:{}", scratch.path().join("journal.db").display()),
    };
    let floored = match plan.workload {
        Workload::ReliableThroughput => floor::batch_writes(&journal, plan.payload).await?,
        _ => None,
    };
    let opened = greenroom_stores::open(&journal).await.map_err(|error| error.to_string())?;
    let kept = opened.journal.clone().ok_or_else(|| format!("{} is no journal", opened.name))?;
    let builder = Node::builder().journal_store(kept).register::<Hitter>().register::<Producer>();
    let builder = builder.register::<Consumer>().register::<Adder>().register::<Maker>().register::<Made>();
    let builder = builder.register::<Pool>().register::<Resource>().register::<Provider>();
    let builder = builder.configure(|config| {
        config.shards = plan.shards as usize;
        if plan.workload == Workload::ReliableCalls {
            config.http = Some("127.0.0.1:0".to_owned());
        }
        // Runs in one journal do not meet each other's actors.
        config.cluster = format!("bench-{}", uuid::Uuid::new_v4());
    });
    let node = builder.start().await.map_err(|error| error.to_string())?;
    let outcome = match plan.workload {
        Workload::ReliableLatency => latency(plan, &node).await,
        Workload::ReliableCalls => calls::run(plan, &node).await,
        Workload::ReliableCreate => create::run(plan, &node, &opened).await,
        Workload::PoolServer => pools::run(plan, &node, &opened).await,
        _ => throughput(plan, &node).await,
    };
    node.stop().await;
    let mut outcome = outcome?;
    if let Some(counted) = opened.device_syncs().filter(|counted| counted.syncs > 0) {
        outcome.set("commits_per_sync", output_rate(counted.commits as f64 / counted.syncs as f64));
    }
    if let Some(before) = floored {
        // A device's speed changes over time: it is measured on both sides of the run.
        let journal = f64::midpoint(before, floor::batch_writes(&journal, plan.payload).await?.unwrap_or(before));
        let messages = outcome.results.get("messages_per_s").and_then(serde_json::Value::as_f64).unwrap_or_default();
        outcome.set("journal_entries_per_s", output_rate(journal));
        outcome.set("ratio", (messages / journal * 1e3).round() / 1e3);
    }
    Ok(outcome)
}

/// Pairs of actors, one message between the two of each.
async fn latency(plan: &Plan, node: &Node) -> Result<Outcome, String> {
    let bytes = payload(plan.payload);
    for pair in 0..plan.pairs {
        // The partitions have owners, and the actors are in memory.
        for side in ["a", "b"] {
            HitterRef::of(node, format!("{side}{pair}")).heard().by(plan.timeout).await.map_err(text)?;
        }
    }
    let begun = Instant::now();
    let mut played = vec![0; plan.pairs as usize];
    loop {
        for (pair, played) in played.iter_mut().enumerate() {
            let (a, b) = (format!("a{pair}"), format!("b{pair}"));
            HitterRef::of(node, a).hit(plan.rounds, b, bytes.clone()).by(plan.timeout).await.map_err(text)?;
            *played += plan.rounds + 1;
        }
        for (pair, played) in played.iter().enumerate() {
            while heard(node, pair).await? < *played {
                if begun.elapsed() > plan.timeout {
                    return Err(format!("a ball did not arrive within {:?}", plan.timeout));
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        if plan.duration.is_none_or(|duration| begun.elapsed() >= duration) {
            break;
        }
    }
    let elapsed = begun.elapsed();
    let (mut lost, mut duplicated, mut hops) = (0, 0, 0);
    for (pair, played) in played.iter().enumerate() {
        let heard = heard(node, pair).await?;
        (lost, duplicated) = (lost + played.saturating_sub(heard), duplicated + heard.saturating_sub(*played));
        hops += played;
    }
    let mut histogram = report::histogram();
    // A round trip is two hops.
    times().drain(..).for_each(|time| report::add(&mut histogram, (time / 2).as_nanos() as u64, 1));
    let mut outcome = Outcome { elapsed, latency_ns: report::buckets(&histogram), ..Outcome::default() };
    outcome.set("latency_us", json!(Latency::of(&outcome.latency_ns)));
    outcome.set("hops_per_s", output_rate(hops as f64 / elapsed.as_secs_f64()));
    outcome.set("duplicated", duplicated);
    outcome.set("errors", duplicated);
    outcome.set("lost", lost);
    Ok(outcome)
}

async fn heard(node: &Node, pair: usize) -> Result<u64, String> {
    let (a, b) = (HitterRef::of(node, format!("a{pair}")), HitterRef::of(node, format!("b{pair}")));
    Ok(a.heard().await.map_err(text)? + b.heard().await.map_err(text)?)
}

/// Producers that send bursts to a consumer each.
async fn throughput(plan: &Plan, node: &Node) -> Result<Outcome, String> {
    let duration = plan.duration.unwrap_or(DURATION);
    let burst = (BURST_BYTES / plan.payload.max(1)).clamp(1, BURST) as u64;
    let begun = Instant::now();
    let produced = try_join_all((0..plan.pairs).map(|pair| async move {
        let (producer, consumer) = (ProducerRef::of(node, pair), ConsumerRef::of(node, pair));
        let mut sent = 0;
        while begun.elapsed() < duration {
            sent = producer.produce(burst, payload(plan.payload)).by(plan.timeout).await.map_err(text)?;
            // What is on its way is bounded: the outbox would grow on disk.
            while consumer.heard().by(plan.timeout).await.map_err(text)?.0 + AHEAD * burst < sent {}
        }
        Ok::<_, String>(sent)
    }))
    .await?;
    let (mut heard, mut duplicated) = (0, 0);
    for (pair, sent) in produced.iter().enumerate() {
        loop {
            let (here, again) = ConsumerRef::of(node, pair).heard().by(plan.timeout).await.map_err(text)?;
            if here >= *sent || begun.elapsed() > duration + plan.timeout {
                (heard, duplicated) = (heard + here, duplicated + again);
                break;
            }
        }
    }
    let elapsed = begun.elapsed();
    let rate = heard as f64 / elapsed.as_secs_f64();
    let mut outcome = Outcome { elapsed, ..Outcome::default() };
    outcome.set("messages", heard);
    outcome.set("messages_per_s", output_rate(rate));
    outcome.set("mb_per_s", output_rate(rate * plan.payload as f64 / 1e6));
    outcome.set("duplicated", duplicated);
    outcome.set("errors", duplicated);
    outcome.set("lost", produced.iter().sum::<u64>().saturating_sub(heard));
    Ok(outcome)
}

fn text<E: std::fmt::Display>(error: CallError<E>) -> String {
    error.to_string()
}

const DURATION: Duration = Duration::from_secs(5);
/// Most messages, and most bytes, that one turn sends.
const BURST: usize = 256;
const BURST_BYTES: usize = 2 << 20;
/// Bursts that a producer is ahead of its consumer.
const AHEAD: u64 = 4;
const LOOK_AGAIN: Duration = Duration::from_millis(2);
