//! Calls from outside, through the HTTP door: each caller has a connection and one call in flight, under a fresh
//! idempotency key. Some calls are made again under their key and must get the same answer, the oldest of all at the end.

use std::io;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom::Node;
use serde_json::json;

use super::kinds::AdderRef;
use super::text;
use crate::cluster::Line;
use crate::driver::{Outcome, Plan, output_rate};
use crate::report::{self, Latency};

/// What came of one caller's calls.
#[derive(Default)]
struct Called {
    answered: u64,
    /// Repeats that got another answer.
    changed: u64,
    times: Vec<Duration>,
}

pub(super) async fn run(plan: &Plan, node: &Node) -> Result<Outcome, String> {
    let address = node.http_address().ok_or("the node has no door")?;
    let address = address.trim_start_matches("http://").to_owned();
    // The partitions have owners, and the actors are in memory.
    for actor in 0..plan.actors {
        AdderRef::of(node, actor).sum().by(plan.timeout).await.map_err(text)?;
    }
    let duration = plan.duration.unwrap_or(super::DURATION);
    let begun = Instant::now();
    let callers = (0..plan.pairs).map(|caller| call(&address, plan, caller, begun, duration));
    let called = try_join_all(callers).await.map_err(|error| format!("the door: {error}"))?;
    let elapsed = begun.elapsed();
    let (mut histogram, mut sum) = (report::histogram(), 0);
    for actor in 0..plan.actors {
        sum += AdderRef::of(node, actor).sum().by(plan.timeout).await.map_err(text)?;
    }
    for time in called.iter().flat_map(|called| &called.times) {
        report::add(&mut histogram, time.as_nanos() as u64, 1);
    }
    let answered: u64 = called.iter().map(|called| called.answered).sum();
    let changed: u64 = called.iter().map(|called| called.changed).sum();
    let duplicated = sum.saturating_sub(answered);
    let mut outcome = Outcome { elapsed, latency_ns: report::buckets(&histogram), ..Outcome::default() };
    outcome.set("calls", answered);
    outcome.set("calls_per_s", output_rate(answered as f64 / elapsed.as_secs_f64()));
    outcome.set("latency_us", json!(Latency::of(&outcome.latency_ns)));
    outcome.set("duplicated", duplicated);
    outcome.set("errors", duplicated + changed);
    outcome.set("lost", answered.saturating_sub(sum));
    Ok(outcome)
}

async fn call(address: &str, plan: &Plan, caller: u32, begun: Instant, duration: Duration) -> io::Result<Called> {
    let mut line = Line::open(address).await?;
    let mut called = Called::default();
    let step = plan.pairs.max(1);
    let mut number = caller;
    let mut first = None;
    while begun.elapsed() < duration {
        let key = format!("{}-{number}", plan.seed);
        let sent = Instant::now();
        let answer = add(&mut line, number % plan.actors, &key).await?;
        called.times.push(sent.elapsed());
        called.answered += 1;
        if called.answered % REPEAT_EVERY == 0 {
            called.changed += u64::from(add(&mut line, number % plan.actors, &key).await? != answer);
        }
        first.get_or_insert((number % plan.actors, key, answer));
        number = number.wrapping_add(step);
    }
    if let Some((actor, key, answer)) = first {
        called.changed += u64::from(add(&mut line, actor, &key).await? != answer);
    }
    Ok(called)
}

/// Adds one to an actor's sum, and gives the sum.
async fn add(line: &mut Line, actor: u32, key: &str) -> io::Result<Vec<u8>> {
    line.post(&format!("/bench_adder/{actor}/add"), Some(key), BODY).await
}

const BODY: &str = r#"{"n":1}"#;
/// One call in so many is made twice.
const REPEAT_EVERY: u64 = 64;
