//! The driver: starts the nodes and the actors of a run, waits for the tally, and makes figures of it.

mod apart;
mod big;
mod door;
mod idle;
mod ping_pong;
mod plan;
mod sort;
mod tell;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

pub(crate) use self::plan::{Plan, cores, mode_name, name};
use crate::cli::Workload;
use crate::cluster::{Cluster, Target};
use crate::kinds::tally::TallyRef;
use crate::reliable;
use crate::report::{Latency, Report};
use crate::store;
use crate::{floor, geo, heartbeat, hosts, presence};

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The figures.
    pub(crate) results: Map<String, Value>,
    /// Round trips in nanoseconds, as pairs of value and count, for plots.
    pub(crate) latency_ns: Vec<(u64, u64)>,
    /// The same of what it is compared with, by name.
    pub(crate) beside_ns: Vec<(String, Vec<(u64, u64)>)>,
    /// Time that the workload ran.
    pub(crate) elapsed: Duration,
    /// What went wrong first.
    pub(crate) complaint: Option<String>,
}

impl Outcome {
    /// An outcome with what every workload reports.
    pub(crate) fn of(report: &Report) -> Self {
        let mut outcome = Outcome { elapsed: report.elapsed(), complaint: report.complaint.clone(), ..Self::default() };
        outcome.set("errors", report.errors);
        outcome.set("lost", report.lost);
        outcome.latency_ns.clone_from(&report.latency_ns);
        outcome
    }

    /// An outcome with the rate of messages and their latency.
    fn of_talks(report: &Report) -> Self {
        let mut outcome = Self::of(report);
        outcome.set("messages", report.messages);
        outcome.set("messages_per_s", output_rate(report.messages_per_s()));
        outcome.set("latency_us", json!(Latency::of(&report.latency_ns)));
        outcome
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.results.insert(name.to_owned(), value.into());
    }

    /// Whether the run was what it should be.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let count = |name: &str| self.results.get(name).and_then(Value::as_u64).unwrap_or(0);
        match &self.complaint {
            _ if self.results.get("sorted") == Some(&Value::Bool(false)) => Err("the list is not sorted".into()),
            None if count("errors") == 0 && count("lost") == 0 => Ok(()),
            complaint => Err(format!(
                "{} errors, {} calls without an answer; the first: {}",
                count("errors"),
                count("lost"),
                complaint.as_deref().unwrap_or("no answer came")
            )),
        }
    }
}

/// A rate for people and for comparisons: more than four digits of it are noise.
pub(crate) fn output_rate(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

/// Runs the workload of `plan`.
///
/// # Errors
/// What kept it from its end.
pub(crate) fn run(plan: &Plan) -> Result<Outcome, String> {
    if plan.workload == Workload::Floor {
        return floor::run(plan).map_err(|error| format!("the floor of this machine: {error}"));
    }
    // One thread: nodes that die with the thread that started them live as long as the run.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        tokio::select! {
            outcome = drive(plan), if plan.is_of_tallies() => outcome,
            outcome = geo::run(plan), if plan.is_geo() => outcome,
            outcome = reliable::run(plan), if plan.is_reliable() => outcome,
            outcome = heartbeat::run(plan), if plan.workload == Workload::Heartbeat => outcome,
            outcome = store::run(plan), if plan.workload == Workload::Store => outcome,
            outcome = hosts::run(plan), if plan.workload == Workload::Host => outcome,
            outcome = presence::run(plan), if plan.workload.is_presence() => outcome,
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        }
    })
}

async fn drive(plan: &Plan) -> Result<Outcome, String> {
    let mut run = Run { cluster: Cluster::start(plan).await?, plan, bar: bar() };
    run.bar.set_message(plan.workload.name());
    let cpu_seconds = run.cluster.cpu_seconds();
    let mut outcome = match plan.workload {
        Workload::PingPong if plan.apart => apart::run(&mut run).await,
        Workload::PingPong => ping_pong::run(&mut run).await,
        Workload::Sort => sort::run(&mut run).await,
        Workload::Big => big::run(&mut run).await,
        Workload::Door => door::run(&mut run).await,
        Workload::Tell => tell::run(&mut run).await,
        _ => idle::run(&mut run).await,
    };
    run.bar.finish_and_clear();
    if let Ok(outcome) = &mut outcome {
        outcome.set("cpu_seconds", ((run.cluster.cpu_seconds() - cpu_seconds) * 100.0).round() / 100.0);
    }
    run.cluster.stop().await;
    outcome
}

/// A run under way.
struct Run<'a> {
    cluster: Cluster,
    plan: &'a Plan,
    bar: ProgressBar,
}

impl Run<'_> {
    /// Waits for `reports` reports. Those that do not come count as lost.
    async fn collect(&mut self, tally: &str, reports: u64) -> Result<Report, String> {
        // A run by time goes on without the nodes that it loses.
        let over = Instant::now() + self.plan.duration.unwrap_or_default();
        let mut end = over + self.plan.timeout;
        let mut lost_node = false;
        self.bar.set_length(reports);
        loop {
            let patience = PATIENCE.min(end.saturating_duration_since(Instant::now()));
            let mut report = match self.wait(tally, reports, patience).await {
                // The tally may have been on a node that has ended: it starts anew, with what is reported from then on.
                Err(_) if self.cluster.ended().is_some() => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    Report::default()
                }
                answer => answer?,
            };
            self.bar.set_position(report.reports);
            if report.reports >= reports {
                return Ok(report);
            }
            if Instant::now() >= end {
                let missing = reports - report.reports;
                report.errors += missing;
                report.lost += missing;
                report.complaint.get_or_insert_with(|| format!("{missing} of {reports} actors did not report in time"));
                return Ok(report);
            }
            if let Some(name) = self.cluster.ended().filter(|_| !lost_node) {
                lost_node = true;
                self.bar.println(format!("node {name} has ended"));
                end = end.min(over.max(Instant::now()) + AFTER_A_DEATH);
            }
        }
    }

    async fn wait(&self, tally: &str, reports: u64, patience: Duration) -> Result<Report, String> {
        let target = Target { kind: "tally", key: tally, method: "wait" };
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let arguments = json!({"reports": reports, "patience_ms": patience_ms});
        self.cluster
            .ask(target, arguments, async |node| TallyRef::of(node, tally).wait(reports, patience_ms).await)
            .await
    }
}

/// A progress bar on a terminal, and nothing anywhere else.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} actors, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Time that one call waits for the tally.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between calls of a tally that does not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Time for the other nodes' actors to end after a node has died, or after the run's time.
const AFTER_A_DEATH: Duration = Duration::from_secs(20);
