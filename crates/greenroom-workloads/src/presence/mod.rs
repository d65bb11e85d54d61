//! Presence: the same games with an optimiser and without one.

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
    let mut legs = Vec::new();
    for optimised in asked {
        legs.push(Leg::run(plan, *optimised).await?);
    }
    outcome(&legs).ok_or_else(|| "nothing was run".to_owned())
}

/// The figures of the last leg, beside those that it is compared with.
fn outcome(legs: &[Leg]) -> Option<Outcome> {
    let last = legs.last()?;
    let mut outcome = Outcome { elapsed: legs.iter().map(Leg::elapsed).sum(), ..Outcome::default() };
    for (name, value) in last.figures() {
        outcome.set(&name, value);
    }
    outcome.set("errors", legs.iter().map(Leg::errors).sum::<u64>());
    outcome.set("lost", legs.iter().map(Leg::lost).sum::<u64>());
    outcome.complaint = legs.iter().find_map(Leg::complaint);
    outcome.latency_ns = last.latency_ns().to_vec();
    if let [off, on] = legs {
        outcome.set("rows", vec![row(off), row(on)]);
        let measured = RATIOS.iter().filter(|(name, _)| last.has_cpu() || *name != RATIO_CPU);
        for (name, of) in measured {
            let ratio = of(on) / of(off).max(1e-9);
            outcome.set(name, (ratio * 1e3).round() / 1e3);
        }
        outcome.beside_ns = vec![(off.name().to_owned(), off.latency_ns().to_vec())];
    }
    for (name, series) in series::over_time(legs) {
        outcome.set(&name, series);
    }
    Some(outcome)
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
/// What is compared: with the optimiser, by without.
const RATIOS: [(&str, Figure); 4] = [
    ("ratio_requests_per_s", Leg::requests_per_s),
    (RATIO_CPU, Leg::cpu_us),
    ("ratio_p50", |leg| leg.latency().p50),
    ("ratio_p99", |leg| leg.latency().p99),
];
