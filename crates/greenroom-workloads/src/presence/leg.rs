//! One run of the games, on nodes of its own.

use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::series::{Sample, Second};
use super::{joining, rounded, simulated};
use crate::cli::Workload;
use crate::cluster::{Cluster, Target};
use crate::driver::{Plan, output_rate};
use crate::kinds::presence::client::{ClientOrder, ClientRef, Pace, Seen};
use crate::kinds::presence::clock::Clock;
use crate::kinds::presence::lobby::{Kept, LobbyOrder, LobbyRef};
use crate::report::{self, Latency};

/// What came of one run of the games.
pub(super) struct Leg {
    optimised: bool,
    seen: Seen,
    kept: Kept,
    /// Requests that players say they have had.
    had: u64,
    /// Moves that have paid, and those that have not.
    judged: [u64; 2],
    seconds: Vec<Second>,
    /// The second in which a node joins.
    joins: Option<u64>,
    /// The second from which on figures count.
    steady: usize,
    duration: Duration,
    /// The machine's time that a simulation of it has taken.
    simulated_in: Option<Duration>,
}

impl Leg {
    /// Starts nodes, and lets the players play on them.
    pub(super) async fn run(plan: &Plan, optimised: bool) -> Result<Self, String> {
        let mode = if optimised { OptimiserMode::On } else { OptimiserMode::Off };
        let plan = Plan { optimiser: Some(mode), ..plan.clone() };
        if plan.workload == Workload::PresenceSim {
            return simulated::leg(plan).await;
        }
        let join = async |cluster: &mut Cluster| cluster.join(&plan).await;
        Self::play(Cluster::start(&plan).await?, &plan, Clock::default(), join).await
    }

    /// The same, with the machine's time that its simulation has taken.
    pub(super) fn simulated_in(self, took: Duration) -> Self {
        Self { simulated_in: Some(took), ..self }
    }

    /// Seats the players, and lets clients make them act for the time of the plan. `join` adds a node to the cluster, if one is to join.
    pub(super) async fn play(
        mut cluster: Cluster,
        plan: &Plan,
        clock: Clock,
        join: impl AsyncFn(&mut Cluster) -> Result<(), String>,
    ) -> Result<Self, String> {
        let optimised = plan.optimiser == Some(OptimiserMode::On);
        let order = LobbyOrder {
            players: plan.presence.players,
            seed: plan.seed,
            time_scale: plan.time_scale(),
            graph: plan.presence.graph,
        };
        open(&cluster, order).await?;
        let duration = plan.presence_duration();
        // Clients begin together, when all of them have heard of it.
        let homes = plan.nodes * HOMES_A_NODE;
        for place in 0..plan.nodes {
            host(&cluster, place, (0..homes).filter(|home| home % plan.nodes == place).collect()).await?;
        }
        let from_ns = clock.now_ns() + nanoseconds(BEFORE);
        let until_ns = from_ns + nanoseconds(duration);
        let steady_ns = from_ns + nanoseconds(duration / 2);
        let pace = match plan.presence.in_flight {
            Some(at_once) => Pace::Closed(at_once as usize),
            None => Pace::Open(plan.rate() / f64::from(plan.nodes)),
        };
        for place in 0..plan.nodes {
            let seed = plan.seed ^ (u64::from(place) + 1) << 32;
            let order = ClientOrder {
                players: plan.presence.players,
                graph: plan.presence.graph,
                homes,
                pace,
                seed,
                from_ns,
                steady_ns,
                until_ns,
            };
            start(&cluster, place, order).await?;
        }
        games(&cluster, until_ns).await?;
        let joins = plan.presence.join_after.map(|after| after.as_secs());
        let samples = samples(&mut cluster, (clock, from_ns), duration, (joins, join)).await?;
        let paid = cluster.sum_of("greenroom_optimiser_moves_paid_total").await;
        let unpaid = cluster.sum_of("greenroom_optimiser_moves_unpaid_total").await;
        let mut clients = Vec::new();
        for place in 0..plan.nodes {
            clients.push(seen(&cluster, place, plan.timeout).await?);
        }
        let kept = kept(&cluster).await?;
        let had = had(&cluster, plan.presence.players).await?;
        cluster.stop().await;
        let seen = sum(clients);
        let seconds = Second::all(&seen.seconds, &samples);
        let judged = [paid, unpaid];
        let steady = (duration.as_secs() / 2) as usize;
        Ok(Self { optimised, kept, had, judged, seconds, joins, seen, steady, duration, simulated_in: None })
    }

    pub(super) fn is_optimised(&self) -> bool {
        self.optimised
    }

    pub(super) fn name(&self) -> &'static str {
        if self.optimised { "on" } else { "off" }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.duration
    }

    pub(super) fn errors(&self) -> u64 {
        self.seen.errors + self.kept.errors
    }

    pub(super) fn complaint(&self) -> Option<String> {
        self.seen.complaint.clone().or_else(|| self.kept.complaint.clone())
    }

    /// Requests that were answered and that no player has had.
    pub(super) fn lost(&self) -> u64 {
        (self.seen.asked - self.seen.errors).saturating_sub(self.had)
    }

    /// Requests that players have had, more than were made.
    fn doubled(&self) -> u64 {
        self.had.saturating_sub(self.seen.asked)
    }

    pub(super) fn latency_ns(&self) -> &[(u64, u64)] {
        &self.seen.latency_ns
    }

    pub(super) fn latency(&self) -> Latency {
        Latency::of(&self.seen.latency_ns)
    }

    pub(super) fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// The seconds whose figures count: the second half.
    fn steady(&self) -> &[Second] {
        self.seconds.get(self.steady..).unwrap_or_default()
    }

    pub(super) fn requests_per_s(&self) -> f64 {
        let answers: u64 = self.steady().iter().map(|second| second.answers).sum();
        answers as f64 / self.steady().len().max(1) as f64
    }

    /// The part of the messages among players and games that go from node to node.
    pub(super) fn remote(&self) -> f64 {
        Second::sum(self.steady()).remote()
    }

    /// Microseconds of the processors, a request that is answered.
    pub(super) fn cpu_us(&self) -> f64 {
        let all = Second::sum(self.steady());
        all.cpu.iter().sum::<f64>() * 1e6 / all.answers.max(1) as f64
    }

    /// Whether it is known what its nodes have spent.
    pub(super) fn has_cpu(&self) -> bool {
        self.seconds.iter().any(|second| !second.cpu.is_empty())
    }

    pub(super) fn moves(&self) -> u64 {
        self.seconds.iter().map(|second| second.moves).sum()
    }

    /// All figures.
    pub(super) fn figures(&self) -> Map<String, Value> {
        let mut figures = Map::new();
        let mut set = |name: &str, value: Value| figures.insert(name.to_owned(), value);
        let all = Second::sum(&self.seconds);
        let steady = Second::sum(self.steady());
        set("requests", self.seen.asked.into());
        set("requests_per_s", output_rate(self.requests_per_s()).into());
        set("messages", all.ways.messages().into());
        set("latency_us", json!(self.latency()));
        set("remote_fraction", rounded(steady.remote()).into());
        set("beside_fraction", rounded(steady.ways.beside as f64 / steady.ways.messages().max(1) as f64).into());
        for second in [15, 20, 60, 120, 180, 300, 360, 600] {
            if let Some(window) = self.seconds.get(second - 2..=second).filter(|_| second > 2) {
                set(&format!("remote_after_{second}s"), rounded(Second::sum(window).remote()).into());
            }
        }
        set("moves", self.moves().into());
        let minutes = self.steady().len().max(1) as f64 / 60.0;
        let moves_per_minute = steady.moves as f64 / minutes;
        set("moves_per_minute", output_rate(moves_per_minute).into());
        let games_per_minute = self.kept.opened as f64 / (self.duration.as_secs_f64() / 60.0);
        if self.kept.opened > 0 {
            set("moves_a_new_game", output_rate(moves_per_minute / games_per_minute).into());
        }
        set("moves_per_1000_messages", rounded(steady.moves_per_1000_messages()).into());
        let quarter = self.seconds.len().div_ceil(4).max(1);
        let quarters = (1..).zip(self.seconds.chunks(quarter)).map(|(number, seconds)| {
            let moves = Second::sum(seconds).moves_per_1000_messages();
            (format!("quarter_{number}"), Value::from(rounded(moves)))
        });
        set("moves_per_1000_messages_by_quarter", Value::Object(quarters.collect()));
        set("moves_paid", self.judged[0].into());
        set("moves_unpaid", self.judged[1].into());
        set("new_games", self.kept.opened.into());
        if !steady.cpu.is_empty() {
            set("cpu_us_a_request", output_rate(self.cpu_us()).into());
            set("cpu_max_by_mean", rounded(max_by_mean(&steady.cpu)).into());
            set("cpu_seconds", rounded(all.cpu.iter().sum()).into());
        }
        if !steady.activations.is_empty() {
            let activations: Vec<f64> = steady.activations.iter().map(|count| *count as f64).collect();
            set("activations_max_by_mean", rounded(max_by_mean(&activations)).into());
        }
        if let Some(took) = self.simulated_in {
            set("simulated_in_s", output_rate(took.as_secs_f64()).into());
        }
        if let Some(second) = self.joins {
            for (name, value) in joining::figures(&self.seconds, second as usize) {
                set(name, value);
            }
        }
        set("refused", self.seen.refused.into());
        set("duplicated", self.doubled().into());
        figures
    }
}

async fn open(cluster: &Cluster, order: LobbyOrder) -> Result<u64, String> {
    let target = Target { kind: LOBBY, key: LOBBY, method: "open" };
    let here = async |node: &greenroom::Node| LobbyRef::of(node, LOBBY).open(order).await;
    cluster.ask(target, json!({ "order": order }), here).await
}

async fn games(cluster: &Cluster, until_ns: u64) -> Result<(), String> {
    let target = Target { kind: LOBBY, key: LOBBY, method: "start" };
    let here = async |node: &greenroom::Node| LobbyRef::of(node, LOBBY).start(until_ns).await;
    cluster.ask(target, json!({ "until_ns": until_ns }), here).await
}

async fn kept(cluster: &Cluster) -> Result<Kept, String> {
    let target = Target { kind: LOBBY, key: LOBBY, method: "kept" };
    cluster.ask(target, json!({}), async |node: &greenroom::Node| LobbyRef::of(node, LOBBY).kept().await).await
}

async fn had(cluster: &Cluster, players: u32) -> Result<u64, String> {
    let target = Target { kind: LOBBY, key: LOBBY, method: "requests" };
    let here = async |node: &greenroom::Node| LobbyRef::of(node, LOBBY).requests(players).await;
    cluster.ask(target, json!({ "players": players }), here).await
}

async fn host(cluster: &Cluster, place: u32, homes: Vec<u32>) -> Result<(), String> {
    let key = client(place);
    let target = Target { kind: "presence_client", key: &key, method: "host" };
    let arguments = json!({ "homes": homes });
    let here = async |node: &greenroom::Node| ClientRef::of(node, key.as_str()).host(homes).await;
    cluster.ask_at(place, target, arguments, here).await
}

async fn start(cluster: &Cluster, place: u32, order: ClientOrder) -> Result<(), String> {
    let key = client(place);
    let target = Target { kind: "presence_client", key: &key, method: "start" };
    let here = async |node: &greenroom::Node| ClientRef::of(node, key.as_str()).start(order).await;
    cluster.ask_at(place, target, json!({ "order": order }), here).await
}

/// What the client at `place` has seen, when it has ended.
async fn seen(cluster: &Cluster, place: u32, timeout: Duration) -> Result<Seen, String> {
    let key = client(place);
    let patience_ms = 2000;
    let target = Target { kind: "presence_client", key: &key, method: "wait" };
    let end = Instant::now() + timeout;
    while Instant::now() < end {
        let here = async |node: &greenroom::Node| ClientRef::of(node, key.as_str()).wait(patience_ms).await;
        let seen: Seen = cluster.ask_at(place, target, json!({ "patience_ms": patience_ms }), here).await?;
        if seen.is_over {
            return Ok(seen);
        }
    }
    Err(format!("{key} still waits for answers {timeout:?} after its last request"))
}

/// What the nodes have spent and moved, at the beginning and at the end of each second.
async fn samples(
    cluster: &mut Cluster,
    (clock, from_ns): (Clock, u64),
    duration: Duration,
    (joins, join): (Option<u64>, impl AsyncFn(&mut Cluster) -> Result<(), String>),
) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    for second in 0..=duration.as_secs() {
        if joins == Some(second) {
            join(cluster).await?;
        }
        let at = from_ns + second * 1_000_000_000;
        tokio::time::sleep(Duration::from_nanos(at.saturating_sub(clock.now_ns()))).await;
        if let Some(name) = cluster.ended() {
            return Err(format!("node {name} has ended"));
        }
        samples.push(Sample {
            cpu: cluster.cpu_of_each(),
            activations: cluster.activations_of_each().await,
            moves: cluster.sum_of("greenroom_optimiser_moves_total").await,
        });
    }
    tokio::time::sleep(Duration::from_nanos((from_ns + nanoseconds(duration)).saturating_sub(clock.now_ns()))).await;
    Ok(samples)
}

/// What all clients have seen.
fn sum(clients: Vec<Seen>) -> Seen {
    let mut sum = Seen { is_over: true, ..Seen::default() };
    let mut latency: Histogram<u64> = report::histogram();
    for client in clients {
        sum.asked += client.asked;
        sum.refused += client.refused;
        sum.errors += client.errors;
        sum.complaint = sum.complaint.take().or(client.complaint);
        if sum.seconds.len() < client.seconds.len() {
            sum.seconds.resize(client.seconds.len(), Default::default());
        }
        for (all, (answers, ways)) in sum.seconds.iter_mut().zip(client.seconds) {
            all.0 += answers;
            all.1 += ways;
        }
        for (value, count) in client.latency_ns {
            report::add(&mut latency, value, count);
        }
    }
    Seen { latency_ns: report::buckets(&latency), ..sum }
}

fn client(place: u32) -> String {
    format!("client-{place}")
}

/// How much more than the mean the most is.
fn max_by_mean(amounts: &[f64]) -> f64 {
    let mean = amounts.iter().sum::<f64>() / amounts.len().max(1) as f64;
    amounts.iter().copied().fold(0.0, f64::max) / mean.max(1e-9)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// The kind of the lobby, and its key.
const LOBBY: &str = "presence_lobby";
/// Homes on each node, for the graphs that have some.
const HOMES_A_NODE: u32 = 16;
/// Time for all clients to hear when they begin.
const BEFORE: Duration = Duration::from_millis(500);
