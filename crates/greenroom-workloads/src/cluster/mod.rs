//! The nodes of a run: one in this process, or several processes of their own.

mod http;
mod line;
mod process;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom::{CallError, Figure, Node};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::line::Line;
pub(crate) use self::process::{NodeProcess, cpu_seconds, free_address, spawn_tied};
use crate::cli::{Mode, Workload};
use crate::driver::{Plan, mode_name};
use crate::kinds;

/// Who is called, and what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a str,
    pub(crate) key: &'a str,
    pub(crate) method: &'a str,
}

/// The nodes of a run. Dropping it ends node processes at once.
pub(crate) enum Cluster {
    /// One node in this process.
    Local(Node),
    /// Nodes in this process, in a simulated world.
    Simulated(Vec<Node>),
    /// Node processes, and the directory of their table.
    Processes {
        /// The nodes; the driver comes through the door of the first that is left.
        nodes: Vec<NodeProcess>,
        /// Where their table is, for as long as they run.
        _dir: TempDir,
    },
}

impl Cluster {
    /// Starts the nodes, and returns when each of them knows all of them.
    pub(crate) async fn start(plan: &Plan) -> Result<Self, String> {
        if plan.mode == Mode::Local {
            let builder = kinds::register(Node::builder()).configure(|config| {
                config.shards = plan.shards as usize;
                config.optimiser.mode = plan.optimiser.unwrap_or_default();
            });
            return builder.start().await.map(Cluster::Local).map_err(|error| error.to_string());
        }
        let dir = TempDir::with_prefix_in("greenroom-bench-", &plan.dir)
            .map_err(|error| format!("no directory for the table in {}: {error}", plan.dir.display()))?;
        let table = table(&dir);
        let mut nodes = Vec::new();
        for place in 0..plan.nodes {
            nodes.push(process(plan, place, &table)?);
        }
        let end = Instant::now() + START_TIMEOUT;
        for node in &mut nodes {
            while !(node.is_ready().await && node.door().members().await == Some(plan.nodes as usize)) {
                if let Some(status) = node.ended() {
                    return Err(format!("node {} ended before it was ready: {status}", node.name()));
                }
                if Instant::now() >= end {
                    return Err(format!("node {} was not ready within {START_TIMEOUT:?}", node.name()));
                }
                tokio::time::sleep(START_POLL).await;
            }
        }
        Ok(Cluster::Processes { nodes, _dir: dir })
    }

    /// Starts one more node process, and does not wait for it. Nodes that are none join otherwise.
    pub(crate) async fn join(&mut self, plan: &Plan) -> Result<(), String> {
        if let Cluster::Processes { nodes, _dir: dir } = self {
            nodes.push(process(plan, nodes.len() as u32, &table(dir))?);
        }
        Ok(())
    }

    /// The node at `place`, if it is in this process.
    fn here(&self, place: u32) -> Option<&Node> {
        match self {
            Cluster::Local(node) => Some(node),
            Cluster::Simulated(nodes) => nodes.get(place as usize),
            Cluster::Processes { .. } => None,
        }
    }

    fn processes(&self) -> &[NodeProcess] {
        match self {
            Cluster::Processes { nodes, .. } => nodes,
            Cluster::Local(_) | Cluster::Simulated(_) => &[],
        }
    }

    /// The door of the first node process, if nodes are processes.
    pub(crate) fn door(&self) -> Option<SocketAddr> {
        self.processes().first().map(|node| node.door().0)
    }

    /// Calls a method: by `here` where the node is in this process, and through the HTTP door with `arguments` where not, the
    /// first one behind which somebody listens.
    pub(crate) async fn ask<T, E>(
        &self,
        target: Target<'_>,
        arguments: Value,
        here: impl AsyncFnOnce(&Node) -> Result<T, CallError<E>>,
    ) -> Result<T, String>
    where
        T: DeserializeOwned,
        E: std::fmt::Display,
    {
        self.ask_among(0..u32::MAX, target, arguments, here).await
    }

    /// As [`ask`](Self::ask), through the door of the node at `place` and no other one.
    pub(crate) async fn ask_at<T, E>(
        &self,
        place: u32,
        target: Target<'_>,
        arguments: Value,
        here: impl AsyncFnOnce(&Node) -> Result<T, CallError<E>>,
    ) -> Result<T, String>
    where
        T: DeserializeOwned,
        E: std::fmt::Display,
    {
        self.ask_among(place..place + 1, target, arguments, here).await
    }

    async fn ask_among<T, E>(
        &self,
        places: Range<u32>,
        target: Target<'_>,
        arguments: Value,
        here: impl AsyncFnOnce(&Node) -> Result<T, CallError<E>>,
    ) -> Result<T, String>
    where
        T: DeserializeOwned,
        E: std::fmt::Display,
    {
        if let Some(node) = self.here(places.start) {
            return here(node).await.map_err(|error| describe(target, &error));
        }
        let mut answer = Err(io::Error::from(io::ErrorKind::NotConnected));
        for node in self.processes().iter().skip(places.start as usize).take(places.len()) {
            answer = node.door().call(target, &arguments).await;
            // Nobody listens there: the node has ended, and nothing ran.
            if !answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                break;
            }
        }
        answer.map_err(|error| describe(target, &error))
    }

    /// A metric's sum over the nodes; those that do not answer add nothing.
    pub(crate) async fn sum_of(&self, metric: &str) -> u64 {
        let of = |node: &Node| {
            let figures = node.figures();
            figures.iter().find(|figure| figure.name() == metric).map_or(0.0, Figure::value)
        };
        let sum = match self {
            Cluster::Local(node) => of(node),
            Cluster::Simulated(nodes) => nodes.iter().map(of).sum(),
            Cluster::Processes { nodes, .. } => {
                let pages = join_all(nodes.iter().map(|node| async { node.door().text("/metrics").await })).await;
                pages.iter().flatten().map(|page| http::metric(page, metric)).sum::<f64>()
            }
        };
        sum as u64
    }

    /// The activations of each node; none on those that do not answer.
    pub(crate) async fn activations_of_each(&self) -> Vec<u64> {
        match self {
            Cluster::Local(node) => vec![node.activations()],
            Cluster::Simulated(nodes) => nodes.iter().map(Node::activations).collect(),
            Cluster::Processes { nodes, .. } => {
                let pages = join_all(nodes.iter().map(|node| async { node.door().text("/metrics").await })).await;
                let of = |page: Option<String>| page.map_or(0.0, |page| http::metric(&page, "greenroom_activations"));
                pages.into_iter().map(|page| of(page) as u64).collect()
            }
        }
    }

    /// Resident memory of the nodes' processes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        match self {
            Cluster::Local(_) | Cluster::Simulated(_) => process::resident_bytes("self"),
            Cluster::Processes { nodes, .. } => nodes.iter().map(NodeProcess::resident_bytes).sum(),
        }
    }

    /// Time that the nodes' processes have spent on processors.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        match self {
            Cluster::Local(_) | Cluster::Simulated(_) => cpu_seconds("self"),
            Cluster::Processes { nodes, .. } => nodes.iter().map(NodeProcess::cpu_seconds).sum(),
        }
    }

    /// Time that each node's process has spent on processors; nothing of nodes that share one.
    pub(crate) fn cpu_of_each(&self) -> Vec<f64> {
        match self {
            Cluster::Local(_) => vec![cpu_seconds("self")],
            Cluster::Simulated(_) => Vec::new(),
            Cluster::Processes { nodes, .. } => nodes.iter().map(NodeProcess::cpu_seconds).collect(),
        }
    }

    /// The name of a node that has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self {
            Cluster::Local(_) => None,
            Cluster::Simulated(nodes) => {
                nodes.iter().find_map(|node| node.is_stopped().then(|| node.name().to_owned()))
            }
            Cluster::Processes { nodes, .. } => {
                nodes.iter_mut().find_map(|node| node.ended().is_some().then(|| node.name().to_owned()))
            }
        }
    }

    /// Ends the nodes.
    pub(crate) async fn stop(self) {
        match self {
            Cluster::Local(node) => node.stop().await,
            // Its world ends with it.
            Cluster::Simulated(nodes) => drop(nodes),
            // Nothing is to be kept, and a node of a million actors takes its time to stop in order.
            Cluster::Processes { nodes, .. } => drop(nodes),
        }
    }
}

/// Starts the node at `place`.
fn process(plan: &Plan, place: u32, table: &str) -> Result<NodeProcess, String> {
    let kinds = roles(plan, place).join(",");
    let mut options = Vec::new();
    if !kinds.is_empty() {
        options.extend(["--kinds", &kinds]);
    }
    if let Some(mode) = plan.optimiser {
        options.extend(["--optimiser", mode_name(mode)]);
    }
    NodeProcess::start(&format!("bench-{}", place + 1), table, plan.shards, &options)
}

/// The URL of the nodes' table, in a directory of theirs.
fn table(dir: &TempDir) -> String {
    format!("sqlite:{}", dir.path().join("table.db").display())
}

/// The kinds that the node at `place` hosts.
fn roles(plan: &Plan, place: u32) -> Vec<&'static str> {
    if plan.mode == Mode::Virtual || plan.nodes == 1 {
        return Vec::new();
    }
    let first = place.is_multiple_of(2);
    let third = (place % 3) as usize;
    let role = match plan.workload {
        Workload::PingPong => ["pong", "ping"][usize::from(first)],
        Workload::Tell => ["listener", "teller"][usize::from(first)],
        Workload::Sort => ["sort_a", "sort_b", "sort_c"][third],
        Workload::Big => ["big_a", "big_b", "big_c"][third],
        _ => ["sleeper", "rouser"][usize::from(place == 0)],
    };
    vec![role, "tally"]
}

pub(crate) fn describe(target: Target<'_>, error: &impl std::fmt::Display) -> String {
    format!("{}/{}/{}: {error}", target.kind, target.key, target.method)
}

/// Time for nodes to become members that know each other.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(20);
