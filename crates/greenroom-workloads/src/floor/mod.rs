//! What this machine does with no Greenroom in between: the measure for all other figures.

mod disk;
mod mailbox;
mod tcp;

use std::io;
use std::time::{Duration, Instant};

use serde_json::json;

pub(crate) use self::tcp::Peer;
pub(crate) use self::tcp::serve;
use crate::driver::{Outcome, Plan, output_rate};
use crate::report::Latency;

/// Measures each part of the floor, one after the other.
pub(crate) fn run(plan: &Plan) -> io::Result<Outcome> {
    run_against(plan, tcp::OtherEnd::process)
}

fn run_against(plan: &Plan, other_end: impl Fn(Peer) -> io::Result<tcp::OtherEnd>) -> io::Result<Outcome> {
    let begun = Instant::now();
    let part = plan.duration.map_or(PART, |duration| duration / PARTS);
    let mut outcome = Outcome::default();
    let round_trip = tcp::round_trip(&other_end(Peer::Echo)?, part)?;
    outcome.set("tcp_round_trip_us", json!(Latency::of(&round_trip)));
    let pipelined = tcp::pipelined(&other_end(Peer::Echo)?, part)?;
    outcome.set("tcp_pipelined_per_s", output_rate(pipelined));
    let one_way = tcp::one_way(&other_end(Peer::Sink)?, part)?;
    outcome.set("tcp_one_way_per_s", output_rate(one_way));
    outcome.set("mailbox_call_per_s", output_rate(mailbox::calls(part)?));
    outcome.set("sync_us", json!(Latency::of(&disk::syncs(&plan.dir, part)?)));
    outcome.set("write_mb_per_s", output_rate(disk::writes(&plan.dir, part)?));
    outcome.set("errors", 0);
    outcome.set("lost", 0);
    outcome.elapsed = begun.elapsed();
    outcome.latency_ns = round_trip;
    Ok(outcome)
}

/// What one device sync takes where the plan's files are: nanoseconds and counts.
///
/// # Errors
/// The disk's.
pub(crate) fn sync(plan: &Plan, time: Duration) -> io::Result<Vec<(u64, u64)>> {
    disk::syncs(&plan.dir, time)
}

/// Time for each part.
const PART: Duration = Duration::from_secs(1);
const PARTS: u32 = 6;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Bench;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: Bench,
    }

    #[test]
    fn every_part_of_the_floor_is_above_nothing() {
        let bench = Program::parse_from(["bench", "floor", "--duration", "300ms"]).bench;
        let plan = Plan::of(&bench).expect("the options go together");
        let outcome = run_against(&plan, tcp::OtherEnd::thread).expect("this machine has a loopback and a disk");
        for rate in ["tcp_pipelined_per_s", "tcp_one_way_per_s", "mailbox_call_per_s", "write_mb_per_s"] {
            assert!(outcome.results[rate].as_f64().is_some_and(|rate| rate > 0.0), "{rate}");
        }
        for latency in ["tcp_round_trip_us", "sync_us"] {
            assert!(outcome.results[latency]["p50"].as_f64().is_some_and(|p50| p50 > 0.0), "{latency}");
        }
    }
}
