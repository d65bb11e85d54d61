//! Door: calls of actors through a node's HTTP door, one in flight on each connection; beside another server, if one is named,
//! that is asked the same.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use serde_json::json;

use super::{Outcome, Run, output_rate};
use crate::cluster::{Line, cpu_seconds, spawn_tied};
use crate::report::{self, Latency};

pub(super) async fn run(run: &mut Run<'_>) -> Result<Outcome, String> {
    let plan = run.plan;
    let door = run.cluster.door().ok_or("door calls a node process: leave --mode local out")?.to_string();
    let beside = plan.beside.as_deref().map(Server::start).transpose()?;
    let parts = if beside.is_some() { 2 * ROUNDS } else { ROUNDS };
    let span = plan.duration.unwrap_or(DURATION) / parts;
    let (mut here, mut there) = (Seen::default(), Seen::default());
    let begun = Instant::now();
    ask(&door, plan.pairs, WARM).await?;
    // A machine's speed changes over time, and is to meet both.
    for _ in 0..ROUNDS {
        let before = run.cluster.cpu_seconds();
        here.add(ask(&door, plan.pairs, span).await?, run.cluster.cpu_seconds() - before);
        if let Some(server) = &beside {
            let before = server.cpu_seconds();
            there.add(ask(&server.address, plan.pairs, span).await?, server.cpu_seconds() - before);
        }
    }
    let mut outcome =
        Outcome { elapsed: begun.elapsed(), latency_ns: report::buckets(&here.times), ..Outcome::default() };
    here.tell(&mut outcome, "");
    if beside.is_some() {
        there.tell(&mut outcome, "beside_");
        outcome.set("ratio_per_cpu_second", (here.per_cpu_s() / there.per_cpu_s() * 100.0).round() / 100.0);
    }
    // What fails ends the run.
    outcome.set("errors", 0);
    outcome.set("lost", 0);
    Ok(outcome)
}

/// What came of one server's parts.
struct Seen {
    times: Histogram<u64>,
    seconds: f64,
    cpu_seconds: f64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { times: report::histogram(), seconds: 0.0, cpu_seconds: 0.0 }
    }
}

impl Seen {
    fn add(&mut self, (times, seconds): (Vec<Duration>, f64), cpu_seconds: f64) {
        times.iter().for_each(|time| report::add(&mut self.times, time.as_nanos() as u64, 1));
        self.seconds += seconds;
        self.cpu_seconds += cpu_seconds;
    }

    fn per_cpu_s(&self) -> f64 {
        self.times.len() as f64 / self.cpu_seconds.max(1e-9)
    }

    fn tell(&self, outcome: &mut Outcome, prefix: &str) {
        let rate = self.times.len() as f64 / self.seconds.max(1e-9);
        outcome.set(&format!("{prefix}calls_per_s"), output_rate(rate));
        outcome.set(&format!("{prefix}calls_per_cpu_s"), output_rate(self.per_cpu_s()));
        outcome.set(&format!("{prefix}latency_us"), json!(Latency::of(&report::buckets(&self.times))));
    }
}

/// Calls for `span`: what each took, and the seconds of all.
async fn ask(address: &str, connections: u32, span: Duration) -> Result<(Vec<Duration>, f64), String> {
    let begun = Instant::now();
    let times = try_join_all((0..connections).map(|connection| async move {
        let path = format!("/sleeper/door-{connection}/rouse");
        let mut line = Line::open(address).await?;
        let mut times = Vec::new();
        while begun.elapsed() < span {
            let sent = Instant::now();
            line.post(&path, None, "{}").await?;
            times.push(sent.elapsed());
        }
        Ok::<_, io::Error>(times)
    }))
    .await
    .map_err(|error| format!("http://{address}: {error}"))?;
    Ok((times.concat(), begun.elapsed().as_secs_f64()))
}

/// Another server: a program that prints its address, and serves until it is ended.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(program: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot start {}: {error}", program.display());
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = spawn_tied(&mut command).map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let server = Self { process, address: line.trim().to_owned() };
        if server.address.parse::<std::net::SocketAddr>().is_err() {
            return Err(format!("{} said {line:?} instead of its address", program.display()));
        }
        Ok(server)
    }

    fn cpu_seconds(&self) -> f64 {
        cpu_seconds(&self.process.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const DURATION: Duration = Duration::from_secs(6);
const WARM: Duration = Duration::from_millis(200);
/// How often each is measured, in turn.
const ROUNDS: u32 = 3;
