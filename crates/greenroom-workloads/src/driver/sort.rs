//! Sort: one list, or one after the other for as long as the run lasts.

use std::time::Instant;

use serde_json::json;

use super::{Outcome, Run, output_rate};
use crate::cluster::Target;
use crate::kinds::sort::{ROLES, SortARef, Sorted};
use crate::report::Report;

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let plan = run.plan;
    let roles = plan.nodes.min(u32::from(ROLES)) as u8;
    let list = numbers(plan.size, plan.seed);
    let mut expected = list.clone();
    expected.sort_unstable();
    let begun = Instant::now();
    let (mut times, mut sorted) = (Vec::new(), true);
    let activations = loop {
        let one = Instant::now();
        let answer = divide(run, &format!("list-{}", times.len()), list.clone(), roles).await?;
        times.push(one.elapsed().as_secs_f64());
        sorted &= answer.list == expected;
        run.bar.inc(1);
        if plan.duration.is_none_or(|duration| begun.elapsed() >= duration) {
            break answer.activations;
        }
    };
    times.sort_unstable_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let mut outcome = Outcome::of(&Report::default());
    outcome.elapsed = begun.elapsed();
    outcome.set("seconds", median);
    outcome.set("sorts", times.len());
    outcome.set("activations", activations);
    outcome.set("activations_per_s", output_rate(activations as f64 / median.max(1e-9)));
    outcome.set("sorted", sorted);
    Ok(outcome)
}

async fn divide(run: &Run<'_>, key: &str, list: Vec<i32>, roles: u8) -> Result<Sorted, String> {
    let target = Target { kind: "sort_a", key, method: "divide" };
    let arguments = json!({"list": list, "roles": roles});
    run.cluster
        .ask(target, arguments, async |node| SortARef::of(node, key).divide(list, roles).by(run.plan.timeout).await)
        .await
}

/// `size` numbers that look random (SplitMix64).
fn numbers(size: u32, seed: u64) -> Vec<i32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 32) as i32
    };
    (0..size).map(|_| next()).collect()
}
