//! Calls of actors in a host, beside the bare echo of its language over the same kind of socket.

mod caller;
mod echo;
mod floor;
mod program;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom::{CallError, Node};
use greenroom_store::Journal;
use serde_json::{Value, json};

use self::caller::{Caller, CallerRef, Linked};
use self::program::Program;
use crate::cli::Form;
use crate::driver::{Outcome, Plan, name, output_rate};
use crate::report::{Latency, Report, Total};

pub(crate) use self::echo::serve;

/// Calls answered one after the other, and what they took of the process that answered.
struct Echoed {
    report: Report,
    cpu_seconds: f64,
}

impl Echoed {
    fn calls_per_s(&self) -> f64 {
        self.report.messages_per_s()
    }

    fn cpu_us_per_call(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.report.messages.max(1) as f64
    }

    fn and(self, other: Echoed) -> Echoed {
        let elapsed = self.report.elapsed() + other.report.elapsed();
        let mut total = Total::default();
        total.add(self.report);
        total.add(other.report);
        let mut report = total.report();
        // Between the two something else ran.
        report.ended_ns = report.began_ns + u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        Echoed { report, cpu_seconds: self.cpu_seconds + other.cpu_seconds }
    }
}

/// Runs the workload of `plan`: the floor before and after, as a machine's speed changes over time.
///
/// # Errors
/// What kept it from its end.
pub(crate) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let part = plan.duration.unwrap_or(PART) / 2;
    let before = floor::run(plan, part).await?;
    let hosted = hosted(plan, part * 2).await?;
    let floor = before.and(floor::run(plan, part).await?);
    let mut outcome = Outcome::of(&hosted.report);
    outcome.set("messages", hosted.report.messages);
    outcome.set("calls_per_s", output_rate(hosted.calls_per_s()));
    outcome.set("floor_calls_per_s", output_rate(floor.calls_per_s()));
    outcome.set("ratio", digits(hosted.calls_per_s() / floor.calls_per_s()));
    outcome.set("host_cpu_us_per_call", digits(hosted.cpu_us_per_call()));
    outcome.set("floor_cpu_us_per_call", digits(floor.cpu_us_per_call()));
    outcome.set("latency_us", json!(Latency::of(&hosted.report.latency_ns)));
    outcome.set("floor_latency_us", json!(Latency::of(&floor.report.latency_ns)));
    outcome.beside_ns.push(("floor".to_owned(), floor.report.latency_ns));
    if plan.host.form == Form::Reliable {
        let linked = linked(plan, part * 2).await?;
        outcome.set("linked_calls_per_s", output_rate(linked.messages_per_s()));
        outcome.set("linked_ratio", digits(hosted.calls_per_s() / linked.messages_per_s()));
        outcome.set("linked_latency_us", json!(Latency::of(&linked.latency_ns)));
        outcome.beside_ns.push(("linked".to_owned(), linked.latency_ns));
    }
    Ok(outcome)
}

/// What a run of this workload is run with.
pub(crate) fn params(plan: &Plan, mut set: impl FnMut(&str, Value)) {
    set("sdk", name(plan.host.sdk).into());
    set("form", name(plan.host.form).into());
    set("in_flight", in_flight(plan).into());
    set("shards", plan.shards.into());
}

fn in_flight(plan: &Plan) -> u32 {
    plan.presence.in_flight.unwrap_or(IN_FLIGHT)
}

/// The rate and the delays of calls from an actor of a node to actors of its host, each with one call in flight.
async fn hosted(plan: &Plan, time: Duration) -> Result<Echoed, String> {
    let scratch = scratch(plan)?;
    let socket = format!("unix:{}", scratch.path().join("node.sock").display());
    let mut builder = Node::builder().register::<Caller>();
    if let Some(store) = &plan.store {
        let opened = greenroom_stores::open(store).await.map_err(|error| error.to_string())?;
        builder = builder.store(opened.store.clone());
    }
    if plan.host.form == Form::Reliable {
        builder = builder.journal_store(journal(plan, scratch.path()).await?);
    }
    let node = builder
        .configure(|config| {
            config.hosts.listen.clone_from(&socket);
            config.shards = plan.shards as usize;
        })
        .start()
        .await
        .map_err(|error| error.to_string())?;
    let form = name(plan.host.form);
    let mut host = Program::start(plan, &form, &socket, scratch.path())?;
    let echoed = answered(plan, &node, &mut host, time).await;
    drop(host);
    node.stop().await;
    echoed
}

/// Calls of the same reliable actors in the node itself, over a journal of the same kind.
async fn linked(plan: &Plan, time: Duration) -> Result<Report, String> {
    let scratch = scratch(plan)?;
    let journal = journal(plan, scratch.path()).await?;
    let builder = Node::builder().register::<Caller>().register::<Linked>().journal_store(journal);
    let builder = builder.configure(|config| config.shards = plan.shards as usize);
    let node = builder.start().await.map_err(|error| error.to_string())?;
    calling(plan, &node, WARM).await?;
    let report = calling(plan, &node, time).await;
    node.stop().await;
    report
}

/// The plan's journal, or one in a file of `scratch`.
async fn journal(plan: &Plan, scratch: &Path) -> Result<Arc<dyn Journal>, String> {
    let file = || format!("sqlite:{}", scratch.join("journal.db").display());
    let opened = greenroom_stores::open(&plan.journal.clone().unwrap_or_else(file)).await;
    let opened = opened.map_err(|error| error.to_string())?;
    opened.journal.ok_or_else(|| format!("{} is no journal", opened.name))
}

/// Calls for `time`.
async fn calling(plan: &Plan, node: &Node, time: Duration) -> Result<Report, String> {
    let called = CallerRef::of(node, "one").call(in_flight(plan), time).by(time + plan.timeout).await;
    called.map_err(|error: CallError| error.to_string())
}

async fn answered(plan: &Plan, node: &Node, host: &mut Program, time: Duration) -> Result<Echoed, String> {
    let end = Instant::now() + plan.timeout;
    loop {
        // Its first calls begin when the cluster knows the kind; they also have it warm.
        let first = calling(plan, node, WARM).await?;
        match first.complaint {
            None => break,
            Some(complaint) if Instant::now() > end => return Err(format!("the host does not answer: {complaint}")),
            Some(_) => host.is_there()?,
        }
    }
    host.timed(calling(plan, node, time)).await
}

fn scratch(plan: &Plan) -> Result<tempfile::TempDir, String> {
    let scratch = tempfile::Builder::new().prefix("greenroom-").tempdir_in(&plan.dir);
    scratch.map_err(|error| format!("no room for a socket in {}: {error}", plan.dir.display()))
}

fn digits(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Time for the host's calls, and for both floors together.
const PART: Duration = Duration::from_secs(5);
/// Time for which an interpreter becomes fast.
const WARM: Duration = Duration::from_millis(500);
/// Calls in flight unless told otherwise.
const IN_FLIGHT: u32 = 64;
