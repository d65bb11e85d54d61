//! Presence: the same games with an optimiser and without one.

mod joining;
mod leg;
mod series;
mod simulated;

use serde_json::{Value, json};

use self::leg::Leg;
use crate::cli::Locality;
use crate::driver::{Outcome, Plan};

/// Runs presence as `plan` says: without the optimiser, with it, or one after the other.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let asked: &[bool] = match plan.presence.locality {
        Locality::Off => &[false],
        Locality::On => &[true],
        Locality::Both => &[false, true],
    };
    let mut rounds = Vec::new();
    for round in 0..plan.repeat {
        // What changes on the machine meanwhile is to favour neither.
        let mut order = asked.to_vec();
        if round % 2 == 1 {
            order.reverse();
        }
        let mut legs = Vec::new();
        for optimised in order {
            legs.push(Leg::run(plan, optimised).await?);
        }
        legs.sort_by_key(Leg::is_optimised);
        rounds.push(legs);
    }
    outcome(&rounds).ok_or_else(|| "nothing was run".to_owned())
}

/// The figures of the last leg of all rounds, beside those that it is compared with.
fn outcome(rounds: &[Vec<Leg>]) -> Option<Outcome> {
    let legs = rounds.last()?;
    let last = legs.last()?;
    let all = || rounds.iter().flatten();
    let mut outcome = Outcome { elapsed: all().map(Leg::elapsed).sum(), ..Outcome::default() };
    for (name, value) in last.figures() {
        outcome.set(&name, value);
    }
    outcome.set("errors", all().map(Leg::errors).sum::<u64>());
    outcome.set("lost", all().map(Leg::lost).sum::<u64>());
    outcome.complaint = all().find_map(Leg::complaint);
    outcome.latency_ns = last.latency_ns().to_vec();
    if let [off, _] = &legs[..] {
        outcome.set("rows", all().map(row).collect::<Vec<_>>());
        let measured = RATIOS.iter().filter(|(name, _)| last.has_cpu() || *name != RATIO_CPU);
        for (name, of) in measured {
            outcome.set(name, median(rounds.iter().filter_map(|legs| ratio(legs, *of))));
        }
        outcome.beside_ns = vec![(off.name().to_owned(), off.latency_ns().to_vec())];
    }
    for (name, series) in series::over_time(legs) {
        outcome.set(&name, series);
    }
    Some(outcome)
}

/// A figure with the optimiser, by the same without, of one round.
fn ratio(legs: &[Leg], of: Figure) -> Option<f64> {
    let [off, on] = legs else { return None };
    Some((of(on) / of(off).max(1e-9) * 1e3).round() / 1e3)
}

fn median(ratios: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = ratios.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get((all.len().max(1) - 1) / 2), all.get(all.len() / 2));
    low.zip(high).map_or(0.0, |(low, high)| (low + high) / 2.0)
}

fn row(leg: &Leg) -> Value {
    let latency = leg.latency();
    let mut row = json!({
        "locality": leg.name(),
        "requests_per_s": leg.requests_per_s().round(),
        "remote": rounded(leg.remote()),
        "p50_us": latency.p50,
        "p99_us": latency.p99,
        "moves": leg.moves(),
    });
    if leg.has_cpu() {
        row["cpu_us_a_request"] = leg.cpu_us().round().into();
    }
    row
}

fn rounded(part: f64) -> f64 {
    (part * 1e4).round() / 1e4
}

/// A figure of a leg.
type Figure = fn(&Leg) -> f64;

const RATIO_CPU: &str = "ratio_cpu_a_request";
/// What is compared: with the optimiser, by without, the median of the rounds.
const RATIOS: [(&str, Figure); 4] = [
    ("ratio_requests_per_s", Leg::requests_per_s),
    (RATIO_CPU, Leg::cpu_us),
    ("ratio_p50", |leg| leg.latency().p50),
    ("ratio_p99", |leg| leg.latency().p99),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_rounds_the_middle_one_counts() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
    }
}
