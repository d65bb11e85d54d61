//! The heartbeat service (ActOp, Figs. 5 and 11a): many monitors on one node take beats that come whether they are answered or
//! not. Some beats block the thread that they are taken on. Measured is who waits for whom: with turns that block their shard, with a
//! pool that sizes itself, and with pools of fixed sizes.

mod arrivals;
mod heat_map;
mod measure;
mod pool;

use std::time::{Duration, Instant};

use greenroom::PoolSize;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

pub(crate) use self::heat_map::{svg, table};
use self::measure::{Measured, Setting, latency, measure};
use crate::cli::{BeatThreads, Mode};
use crate::driver::{Outcome, Plan, cores, output_rate};
use crate::goals::Goals;
use crate::report::Latency;

/// Measures what was asked for, and what it is compared with, one after the other on fresh nodes.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    if plan.mode != Mode::Local {
        let why = "heartbeat is about the threads of one node, in this process; write --mode local, without --nodes";
        return Err(why.to_owned());
    }
    let asked = Setting { shards: plan.shards, threads: plan.heartbeat.threads };
    let begun = Instant::now();
    let all = settings(plan, asked);
    let bar = ProgressBar::new(all.len() as u64 * u64::from(plan.repeat));
    if let Ok(style) = ProgressStyle::with_template("heartbeat {wide_bar} {pos}/{len} measurements, {elapsed}") {
        bar.set_style(style);
    }
    let mut runs = Vec::new();
    for _ in 0..plan.repeat {
        for setting in &all {
            runs.push(measure(plan, *setting).await?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut outcome = figures(&runs, asked);
    if plan.heartbeat.heat_map {
        let middles = all.iter().filter_map(|setting| middle(&runs, *setting));
        outcome.set("heat_map", middles.map(Measured::row).collect::<Vec<Value>>());
    } else {
        outcome.set("runs", runs.iter().map(Measured::row).collect::<Vec<Value>>());
    }
    compare(&mut outcome, &runs, asked);
    outcome.elapsed = begun.elapsed();
    Ok(outcome)
}

/// What it is run with, as the JSON document says it.
pub(crate) fn params(plan: &Plan, mut set: impl FnMut(&str, Value)) {
    let options = &plan.heartbeat;
    set("shards", plan.shards.into());
    set("threads", options.threads.to_string().into());
    set("actors", plan.actors.into());
    set("rate", rate(plan).into());
    set("blocking_part", options.block.part.into());
    set("blocking_ms", (options.block.time.as_secs_f64() * 1e3).into());
    set("work_us", (options.work.as_secs_f64() * 1e6).into());
    set("duration_s", span(plan).as_secs_f64().into());
    set("repeat", plan.repeat.into());
}

/// Beats a second.
fn rate(plan: &Plan) -> f64 {
    plan.rate.unwrap_or(RATE)
}

/// Time that counts.
fn span(plan: &Plan) -> Duration {
    plan.duration.unwrap_or(SPAN)
}

/// Time under load before that.
fn settle_time(plan: &Plan, setting: Setting) -> Duration {
    let default = if setting.threads == AUTO { SETTLE_SIZED } else { SETTLE };
    plan.heartbeat.settle.unwrap_or(default)
}

/// What is measured: with `fused` first, as everything is compared with that.
fn settings(plan: &Plan, asked: Setting) -> Vec<Setting> {
    let options = &plan.heartbeat;
    let mut all = Vec::new();
    let mut add = |setting: Setting| {
        if !all.contains(&setting) {
            all.push(setting);
        }
    };
    if options.heat_map {
        let given = Some(options.sweep_shards.clone()).filter(|given| !given.is_empty());
        for shards in given.unwrap_or_else(|| vec![1, cores(), 2 * cores()]) {
            add(Setting { shards, threads: BeatThreads::Fused });
            for threads in &options.sweep_threads {
                add(Setting { shards, threads: BeatThreads::Pool(PoolSize::Fixed(*threads)) });
            }
            add(Setting { shards, threads: AUTO });
        }
    }
    add(Setting { threads: BeatThreads::Fused, ..asked });
    add(asked);
    all
}

/// Of the runs of one setting, the one in whose middle the light beats' p99 is.
fn middle(runs: &[Measured], setting: Setting) -> Option<&Measured> {
    let mut all: Vec<&Measured> = runs.iter().filter(|run| run.setting == setting).collect();
    all.sort_by(|a, b| light(a).p99.total_cmp(&light(b).p99));
    all.get(all.len().saturating_sub(1) / 2).copied()
}

/// Times of light beats; all zero if none were served.
fn light(run: &Measured) -> Latency {
    latency(&run.light).unwrap_or_default()
}

/// The figures of what was asked for: counts of all its runs, and the times of the one in the middle.
fn figures(runs: &[Measured], asked: Setting) -> Outcome {
    let mut outcome = Outcome::default();
    let all = || runs.iter().filter(|run| run.setting == asked);
    let sum = |of: fn(&Measured) -> u64| all().map(of).sum::<u64>();
    outcome.set("offered", sum(|run| run.offered.arrivals));
    outcome.set("served", sum(Measured::served));
    outcome.set("served_blocking", sum(|run| run.blocking.messages));
    outcome.set("refused", sum(|run| run.offered.refused));
    outcome.set("errors", sum(Measured::errors));
    outcome.set("lost", sum(Measured::lost));
    outcome.complaint = all().find_map(|run| run.light.complaint.clone().or(run.blocking.complaint.clone()));
    let Some(run) = middle(runs, asked) else { return outcome };
    outcome.set("offered_per_s", output_rate(run.offered.arrivals as f64 / run.elapsed.as_secs_f64().max(1e-9)));
    outcome.set("served_per_s", output_rate(run.served_per_s()));
    for (name, beats) in [("latency_us", &run.light), ("blocking_latency_us", &run.blocking)] {
        if let Some(latency) = latency(beats) {
            outcome.set(name, json!(latency));
        }
    }
    outcome.latency_ns.clone_from(&run.light.latency_ns);
    outcome.set("cpu_seconds", (run.cpu_seconds * 100.0).round() / 100.0);
    if asked.threads != BeatThreads::Fused {
        let pool = &run.pool;
        outcome.set("pool_threads", pool.last.threads);
        outcome.set("pool_threads_max", pool.last.threads_max);
        outcome.set("pool_wait_us", pool.wait.map(|wait| output_rate(wait.as_secs_f64() * 1e6)));
        let sizes = pool.sizes.iter().map(|(at, pool)| {
            json!({"after_s": at.as_secs(), "pool_threads": pool.threads, "pool_threads_max": pool.threads_max})
        });
        outcome.set("pool_sizes", sizes.collect::<Vec<Value>>());
    }
    outcome
}

/// What was asked for beside `fused`, and where there is a heat map beside the best of it.
fn compare(outcome: &mut Outcome, runs: &[Measured], asked: Setting) {
    let fused = Setting { threads: BeatThreads::Fused, ..asked };
    let (Some(ours), Some(fused)) = (middle(runs, asked), middle(runs, fused)) else { return };
    if ours.setting == fused.setting {
        return;
    }
    let (p50, p99) = (light(ours).p50 / light(fused).p50, light(ours).p99 / light(fused).p99);
    let (served, cpu) = (ours.served_per_s() / fused.served_per_s(), ours.cpu_us() / fused.cpu_us());
    for (name, ratio) in [("p50", p50), ("p99", p99), ("served", served), ("cpu", cpu)] {
        outcome.set(&format!("{name}_to_fused"), (ratio * 1e3).round() / 1e3);
    }
    if asked.threads != AUTO {
        return;
    }
    let mut goals = Goals::default();
    if ours.blocking.messages > 0 && ours.light.messages > 0 {
        goals.at_most("light beats' p99 to fused", p99, P99_TO_FUSED);
    }
    if ours.blocking.messages == 0 {
        goals.at_least("served to fused", served, 1.0 - AS_GOOD);
        goals.at_most("cores' time of a beat to fused", cpu, 1.0 + AS_GOOD);
    }
    heat_map::goals(&mut goals, runs);
    outcome.set("goals", goals.rows());
}

/// A pool that sizes itself.
const AUTO: BeatThreads = BeatThreads::Pool(PoolSize::Auto);
const RATE: f64 = 4000.0;
const SPAN: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(1);
/// A pool looks every 5 s at what came, and three looks must agree.
const SETTLE_SIZED: Duration = Duration::from_secs(17);
/// What is wanted of light beats where others block.
const P99_TO_FUSED: f64 = 0.1;
/// What a pool may cost where nothing blocks.
const AS_GOOD: f64 = 0.02;
