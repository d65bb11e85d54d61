//! An engine as a store: reads, conditional writes and commits a second, beside what its raw client does.

mod load;

use std::path::Path;
use std::time::{Duration, Instant};

use greenroom_store::StoreError;
use greenroom_store::url::StoreUrl;
use greenroom_stores::{Opened, floor};
use serde_json::{Value, json};

use self::load::{Load, Rate};
use crate::driver::{Outcome, Plan, output_rate};
use crate::report::{self, Latency};

/// Measures the store that the plan names, or one in a file that is gone afterwards.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let scratch = tempfile::tempdir_in(&plan.dir);
    let scratch = scratch.map_err(|error| format!("no room for files in {}: {error}", plan.dir.display()))?;
    let url = url(plan.store.as_deref(), scratch.path())?;
    let opened = greenroom_stores::open_url(&url).await.map_err(|error| error.to_string())?;
    let load = Load::new(&opened);
    let measured = measure(plan, &url, &opened, &load).await;
    // What is left, if the engine fails now, is under a prefix of its own.
    let tidied = load.tidy().await;
    let outcome = measured.map_err(|error| error.to_string())?;
    tidied.map_err(|error| format!("the keys under {:?} could not be removed: {error}", load.prefix()))?;
    Ok(outcome)
}

/// Commits a second that a journal reaches by itself, each with what a turn of a reliable actor writes, many at once.
///
/// # Errors
/// What kept it from its end; a store that is no journal.
pub(crate) async fn commits_per_s(opened: &Opened, span: Duration) -> Result<f64, StoreError> {
    let Some(journal) = &opened.journal else {
        let reason = "it is no journal".to_owned();
        return Err(StoreError::Configuration { store: opened.name.clone(), reason });
    };
    let load = Load::new(opened);
    let owner = load.create().await?;
    let rate = load.commits(journal.as_ref(), &owner, span).await;
    load.tidy().await?;
    Ok(rate?.per_s().unwrap_or_default())
}

/// What the command line names: `sqlite:` alone is a file that goes afterwards, and so is nothing.
fn url(named: Option<&str>, scratch: &Path) -> Result<StoreUrl, String> {
    match named {
        None | Some("sqlite:") => Ok(StoreUrl::Sqlite { path: scratch.join("store.db") }),
        Some(url) => url.parse().map_err(|error: greenroom_store::url::Error| error.to_string()),
    }
}

/// Each part in turns, in rounds: a device's speed changes over time, and is to meet all of them.
async fn measure(plan: &Plan, url: &StoreUrl, opened: &Opened, load: &Load<'_>) -> Result<Outcome, StoreError> {
    let begun = Instant::now();
    let part = plan.duration.map_or(PART, |duration| duration / (ROUNDS * PARTS));
    let mut latency = report::histogram();
    let [mut floored, mut written, mut read, mut committed] = [Rate::default(); 4];
    let mut syncs = None;
    let owner = load.create().await?;
    for round in 0..ROUNDS {
        // Who comes second in a round comes first in the next.
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                floored = floored.and(floor_of(url, part).await?);
            } else {
                written = written.and(load.writes(part, &mut latency).await?);
            }
        }
        read = read.and(load.reads(part).await?);
        if let Some(journal) = &opened.journal {
            let before = opened.device_syncs();
            committed = committed.and(load.commits(journal.as_ref(), &owner, part).await?);
            if let (Some(before), Some(after)) = (before, opened.device_syncs()) {
                let (commits, device) = syncs.unwrap_or((0, 0));
                syncs = Some((commits + after.commits - before.commits, device + after.syncs - before.syncs));
            }
        }
    }
    let mut outcome = Outcome::default();
    let rate = |rate: Rate| rate.per_s().map_or(Value::Null, |rate| output_rate(rate).into());
    outcome.set("reads_per_s", rate(read));
    outcome.set("writes_per_s", rate(written));
    outcome.set("commits_per_s", rate(committed));
    let shared = syncs.filter(|(_, syncs)| *syncs > 0).map(|(commits, syncs)| commits as f64 / syncs as f64);
    outcome.set("commits_per_sync", shared.map_or(Value::Null, |shared| output_rate(shared).into()));
    outcome.set("floor_writes_per_s", rate(floored));
    let ratio = floored.per_s().zip(written.per_s()).map(|(floor, store)| (store / floor * 1e3).round() / 1e3);
    outcome.set("ratio", json!(ratio));
    outcome.latency_ns = report::buckets(&latency);
    outcome.set("write_us", json!(Latency::of(&outcome.latency_ns)));
    outcome.set("survives", opened.survives.clone());
    outcome.set("errors", 0);
    outcome.set("lost", 0);
    outcome.elapsed = begun.elapsed();
    Ok(outcome)
}

async fn floor_of(url: &StoreUrl, span: Duration) -> Result<Rate, StoreError> {
    let rate = floor::conditional_writes(url, IN_FLIGHT, span, VALUE).await?;
    Ok(rate.map_or_else(Rate::default, |rate| Rate::of(rate * span.as_secs_f64(), span)))
}

/// Writes and reads on their way at once, in the store and in its floor.
pub(crate) const IN_FLIGHT: usize = 64;

/// Commits on their way at once.
pub(crate) const COMMITTERS: usize = 256;

pub(crate) const VALUE: &[u8] = &[7; 200];

const ROUNDS: u32 = 4;
/// The floor, writes, reads and commits.
const PARTS: u32 = 4;
/// Time of each part in each round.
const PART: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_file_of_its_own_unless_one_is_named() {
        let scratch = Path::new("/scratch");
        let file = Ok(StoreUrl::Sqlite { path: "/scratch/store.db".into() });
        assert_eq!([url(None, scratch), url(Some("sqlite:"), scratch)], [file.clone(), file]);
        assert_eq!(url(Some("memory:"), scratch), Ok(StoreUrl::Memory));
        assert!(url(Some("sqlit:x"), scratch).is_err_and(|error| error.contains("did you mean")));
    }
}
