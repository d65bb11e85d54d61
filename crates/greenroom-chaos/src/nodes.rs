//! The node processes.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_engines::Process;
use serde_json::Value;

use crate::events::Events;
use crate::network::Network;
use crate::options::Options;

/// The nodes, and how they are started again.
pub(crate) struct Nodes {
    nodes: Vec<NodeProcess>,
    network: Arc<Network>,
    program: PathBuf,
    logs: PathBuf,
    events: Arc<Events>,
}

struct NodeProcess {
    process: Process,
    table: String,
    /// Killed, and to stay so for a while.
    is_down: bool,
    /// When it was found to have ended by itself.
    ended: Option<Instant>,
}

/// A node's name.
pub(crate) fn name(node: usize) -> String {
    format!("node-{node}")
}

impl Nodes {
    /// Starts all and waits until they are one cluster.
    pub(crate) fn start(
        options: &Options,
        network: &Arc<Network>,
        table: impl Fn(usize) -> Result<String, String>,
        events: Arc<Events>,
    ) -> Result<Self, String> {
        let (program, logs) = (options.program.clone(), options.logs.clone());
        let mut nodes = Self { nodes: Vec::new(), network: network.clone(), program, logs, events };
        for node in 0..options.nodes {
            let table = table(node)?;
            let process = nodes.spawn(node, &table)?;
            nodes.nodes.push(NodeProcess { process, table, is_down: false, ended: None });
        }
        nodes.all_ready()?;
        Ok(nodes)
    }

    fn spawn(&self, node: usize, table: &str) -> Result<Process, String> {
        let log = self.logs.join(format!("{}.log", name(node)));
        let log = OpenOptions::new().create(true).append(true).open(&log).map_err(|error| error.to_string())?;
        let mut command = self.network.command(node, &self.program);
        command.args(["--name", &name(node), "--kinds", "register,kept_register", "--shards", "1"]);
        // No activation ends but for a reason that is logged.
        command.args(["--idle", "24h", "--table", table]);
        command.env("RUST_LOG", "greenroom=info");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Process::start("a node", command).map_err(|error| error.to_string())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Where they answer, as `host:port`.
    pub(crate) fn doors(&self) -> Vec<String> {
        (0..self.count()).map(|node| self.network.door(node)).collect()
    }

    /// Kills one as `kill -9` does; it stays dead until [`Nodes::start_again`].
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].is_down = true;
        self.nodes[node].process.kill();
    }

    /// Sends a signal to one.
    pub(crate) fn signal(&self, node: usize, signal: i32) {
        self.nodes[node].process.signal(signal);
    }

    pub(crate) fn start_again(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].process = self.spawn(node, &self.nodes[node].table)?;
        (self.nodes[node].is_down, self.nodes[node].ended) = (false, None);
        Ok(())
    }

    /// Starts those again that have ended by themselves, as a supervisor would.
    pub(crate) fn revive(&mut self) -> Result<(), String> {
        for node in 0..self.count() {
            if self.nodes[node].is_down {
                continue;
            }
            let Some(why) = self.nodes[node].process.ended() else { continue };
            let ended = self.nodes[node].ended.get_or_insert_with(Instant::now);
            if ended.elapsed() < REST {
                continue;
            }
            let what = format!("{} stopped by itself and is started again: {why}", name(node));
            let event = self.events.begin(None, what, Some(BTreeSet::from([name(node)])));
            self.start_again(node)?;
            self.events.end(event);
        }
        Ok(())
    }

    /// Waits until each of them answers for all of them.
    fn all_ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + START_TIMEOUT;
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(ASK_TIMEOUT)).build().into();
        while !self.doors().iter().all(|door| knows(&agent, door, self.count())) {
            if Instant::now() > until {
                return Err(format!("the nodes are no cluster after {START_TIMEOUT:?}; see {}", self.logs.display()));
            }
            self.revive()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn knows(agent: &ureq::Agent, door: &str, members: usize) -> bool {
    let get = |path: &str| agent.get(format!("http://{door}{path}")).call().ok();
    get("/readyz").is_some()
        && get("/").and_then(|mut answer| answer.body_mut().read_to_string().ok()).is_some_and(|body| {
            let about: Value = serde_json::from_str(&body).unwrap_or_default();
            about["members"].as_array().is_some_and(|all| all.len() == members)
        })
}

/// Before a node that has ended by itself is started again.
const REST: Duration = Duration::from_millis(500);
/// A start that takes longer is none, on the busiest of machines.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
