//! Creations (RSM Fig. 10): one after the other, by many callers at once, and many in one turn. A creation is over when the
//! new actor answers: its creator's turn and its own first record are committed then.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom::Node;
use greenroom_stores::Opened;
use serde_json::json;

use super::kinds::MakerRef;
use super::text;
use crate::driver::{Outcome, Plan, output_rate};
use crate::floor;
use crate::goals::Goals;
use crate::report::{self, Latency};

/// What callers have created.
#[derive(Default)]
struct Created {
    keys: Vec<String>,
    times: Vec<Duration>,
    elapsed: Duration,
}

impl Created {
    fn per_s(&self) -> f64 {
        self.keys.len() as f64 / self.elapsed.as_secs_f64()
    }
}

pub(super) async fn run(plan: &Plan, node: &Node, opened: &Opened) -> Result<Outcome, String> {
    let span = plan.duration.unwrap_or(super::DURATION) / PARTS;
    // The partitions have owners.
    create(plan, node, plan.pairs, 1, WARM_UP).await?;
    let syncs = || opened.device_syncs().map(|counted| counted.syncs);
    let sync = floor::sync(plan, FLOOR).map_err(|error| format!("the disk: {error}"))?;
    let before = syncs();
    let alone = create(plan, node, 1, 1, span).await?;
    let synced = syncs().zip(before).map(|(after, before)| after - before);
    let parallel = create(plan, node, plan.pairs, 1, span).await?;
    let at_once = create(plan, node, 1, u64::from(plan.pairs), span).await?;
    let elapsed = alone.elapsed + parallel.elapsed + at_once.elapsed;

    let mut made = 0;
    for caller in 0..plan.pairs {
        made += MakerRef::of(node, caller).made().by(plan.timeout).await.map_err(text)?;
    }
    let mut histogram = report::histogram();
    alone.times.iter().for_each(|time| report::add(&mut histogram, time.as_nanos() as u64, 1));
    let mut outcome = Outcome { elapsed, latency_ns: report::buckets(&histogram), ..Outcome::default() };
    let latency = Latency::of(&outcome.latency_ns);
    let mut goals = Goals::default();
    if let Some(synced) = synced.filter(|synced| *synced > 0) {
        goals.at_most("device syncs of a creation", synced as f64 / alone.keys.len() as f64, 2.0);
    }
    let times = parallel.per_s() / alone.per_s();
    goals.at_least(&format!("creations of {} callers to those of one", plan.pairs), times, FASTER);
    outcome.set("goals", goals.rows());
    outcome.set("latency_us", json!(latency));
    outcome.set("sync_us", json!(Latency::of(&sync)));
    outcome.set("sequential_per_s", output_rate(alone.per_s()));
    outcome.set("parallel_per_s", output_rate(parallel.per_s()));
    outcome.set("of_one_turn_per_s", output_rate(at_once.per_s()));
    let all: Vec<&String> = alone.keys.iter().chain(&parallel.keys).chain(&at_once.keys).collect();
    let different = all.iter().collect::<BTreeSet<_>>().len();
    // The first ones are in `made` too: a creation whose caller was never told is one too many there.
    let duplicated = (all.len() - different) as u64 + u64::from(made < all.len() as u64);
    outcome.set("duplicated", duplicated);
    outcome.set("errors", duplicated);
    // Each was asked, and has answered; one that had not would have ended the run.
    outcome.set("lost", 0);
    Ok(outcome)
}

/// Lets `callers` create `count` actors a turn for `span`, each the next ones when the last ones answer.
async fn create(plan: &Plan, node: &Node, callers: u32, count: u64, span: Duration) -> Result<Created, String> {
    let begun = Instant::now();
    let created = try_join_all((0..callers).map(|caller| async move {
        let (maker, mut created) = (MakerRef::of(node, caller), Created::default());
        while begun.elapsed() < span {
            let sent = Instant::now();
            let made = maker.make(count).by(plan.timeout).await.map_err(text)?;
            let answers = made.into_iter().map(|made| async move {
                let made = made.bind(node);
                made.used().by(plan.timeout).await.map_err(text)?;
                Ok::<_, String>(made.key().to_string())
            });
            created.keys.extend(try_join_all(answers).await?);
            created.times.push(sent.elapsed());
        }
        Ok::<_, String>(created)
    }))
    .await?;
    let mut all = Created { elapsed: begun.elapsed(), ..Created::default() };
    for Created { keys, times, .. } in created {
        all.keys.extend(keys);
        all.times.extend(times);
    }
    Ok(all)
}

/// One after the other, by many, and many in one turn.
const PARTS: u32 = 3;
const FLOOR: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(200);
/// How much faster many callers should be.
const FASTER: f64 = 20.0;
