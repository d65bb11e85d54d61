//! The demo's node processes, none of which outlives it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::link::{FIRST, Link, SECOND};
use crate::door::Door;
use crate::{arena, kinds, plaza, wallet};

/// Node processes and the folder of what they share. Dropping it ends them at once.
pub(super) struct Nodes {
    nodes: Vec<NodeProcess>,
    link: Option<Link>,
    folder: TempDir,
}

/// What the demo consists of.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// The first node's HTTP port.
    pub(super) port: u16,
    /// Whether there is a second cluster, of one node.
    pub(super) has_second: bool,
    /// Whether there is the arena.
    pub(super) has_arena: bool,
}

struct NodeProcess {
    name: String,
    arguments: Vec<String>,
    child: Child,
    door: Door,
    /// Nodes of its cluster.
    cluster_len: usize,
    ended: bool,
}

/// What a key did to a node.
pub(super) enum Toggled {
    Killed(String),
    Started(String, u32),
}

impl Nodes {
    /// Starts them, with HTTP doors from the stage's port on.
    pub(super) fn start(stage: Stage) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("greenroom-demo-").tempdir().map_err(|error| {
            format!("cannot make a temporary directory: {error}; set TMPDIR to one that can be used")
        })?;
        let clusters = [&[FIRST; NODES][..], if stage.has_second { &[SECOND] } else { &[] }].concat();
        let port = stage.port;
        let gateways = if stage.has_second { clusters.len() } else { 0 };
        let mut ports = free_ports(port, clusters.len() + gateways)?;
        let gateways = ports.split_off(clusters.len());
        let (link, files) = match stage.has_second {
            true => Link::lay(dir.path(), &clusters, &gateways).map(|(link, files)| (Some(link), files))?,
            false => (None, Vec::new()),
        };
        let mut nodes = Nodes { nodes: Vec::new(), link, folder: dir };
        let kinds = kinds_of(stage);
        for (at, (port, cluster)) in ports.into_iter().zip(&clusters).enumerate() {
            let path =
                |what: &str| format!("sqlite:{}", nodes.folder.path().join(format!("{what}-{cluster}.db")).display());
            let (name, http) = (format!("demo-{}", at + 1), format!("127.0.0.1:{port}"));
            let mut arguments =
                ["node", "--name", &name, "--listen", "127.0.0.1:0", "--http", &http].map(str::to_owned).to_vec();
            arguments.extend(["--table", &path("table"), "--journal", &path("journal")].map(str::to_owned));
            arguments.extend(["--kinds", &kinds, "--shards", "1", "--until-stdin-ends"].map(str::to_owned));
            if let Some(file) = files.get(at) {
                arguments.extend(["--config".to_owned(), file.display().to_string()]);
            }
            let cluster_len = clusters.iter().filter(|other| *other == cluster).count();
            let door = Door::new(&http, REQUEST_TIMEOUT);
            let child = start(&arguments)?;
            nodes.nodes.push(NodeProcess { name, arguments, child, door, cluster_len, ended: false });
        }
        Ok(nodes)
    }

    /// Kills the node of this number, from 1, as `kill -9` does, or starts it again; nothing if there is none.
    pub(super) fn toggle(&mut self, number: usize) -> Result<Option<Toggled>, String> {
        let Some(node) = number.checked_sub(1).and_then(|at| self.nodes.get_mut(at)) else { return Ok(None) };
        if node.has_ended() {
            node.child = start(&node.arguments)?;
            node.ended = false;
            return Ok(Some(Toggled::Started(node.name.clone(), node.child.id())));
        }
        node.kill();
        Ok(Some(Toggled::Killed(node.name.clone())))
    }

    /// The link between the clusters, if there are two.
    pub(super) fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// Resolves when each knows all.
    pub(super) async fn ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(ended) = self.ended().first() {
                return Err(format!("node {ended} has ended; what it said is above"));
            }
            let nodes: Vec<_> = self.nodes.iter().map(|node| (node.door.clone(), node.cluster_len)).collect();
            // The client blocks; this thread must stay to hear signals.
            let ready = tokio::task::spawn_blocking(move || nodes.iter().all(|(door, all)| knows(door, *all))).await;
            if ready.unwrap_or(false) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("the nodes were not ready within {} s", START_TIMEOUT.as_secs()));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The doors of the first cluster's nodes.
    pub(super) fn doors(&self) -> Vec<Door> {
        self.nodes.iter().take(NODES).map(|node| node.door.clone()).collect()
    }

    /// The door of the second cluster's node, if there is one.
    pub(super) fn far_door(&self) -> Option<Door> {
        self.nodes.get(NODES).map(|node| node.door.clone())
    }

    /// Names of the first cluster's nodes.
    pub(super) fn names(&self) -> Vec<String> {
        self.nodes.iter().take(NODES).map(|node| node.name.clone()).collect()
    }

    /// Names and process ids.
    pub(super) fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.child.id()))
    }

    /// Names of those that have ended by themselves since this was last asked.
    pub(super) fn ended(&mut self) -> Vec<String> {
        let ended =
            self.nodes.iter_mut().filter_map(|node| (!node.ended && node.has_ended()).then(|| node.name.clone()));
        ended.collect()
    }

    pub(super) fn running(&self) -> usize {
        self.nodes.iter().filter(|node| !node.ended).count()
    }

    /// Asks them to stop, and ends those that do not.
    pub(super) async fn stop(mut self) {
        for node in self.nodes.iter().filter(|node| !node.ended) {
            if let Ok(pid) = libc::pid_t::try_from(node.child.id()) {
                // SAFETY: the child has not been waited for, so that its id is still its own.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
        }
        let until = Instant::now() + STOP_TIMEOUT;
        while self.running() > 0 && Instant::now() < until {
            self.ended();
            tokio::time::sleep(POLL).await;
        }
    }
}

fn knows(door: &Door, nodes: usize) -> bool {
    let ready = door.get("/readyz").is_ok_and(|answer| answer.status == 200);
    ready && door.get_json("/").is_ok_and(|hosted| hosted["members"].as_array().is_some_and(|m| m.len() == nodes))
}

impl NodeProcess {
    fn has_ended(&mut self) -> bool {
        self.ended |= matches!(self.child.try_wait(), Ok(Some(_)));
        self.ended
    }

    fn kill(&mut self) {
        // Errors mean that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended = true;
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
    }
}

/// Starts a process of this program that does not outlive the calling thread.
fn start(arguments: &[String]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    let mut command = Command::new(&program);
    command.args(arguments);
    // Their lives are not what the demo shows, unless it is asked for them.
    if std::env::var_os("RUST_LOG").is_none() {
        // When all of them leave at once, none takes what another one hands over.
        command.env("RUST_LOG", "warn,greenroom::shard::moves=error");
    }
    // Ctrl-C is for the demo, which then stops its nodes.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
    let tie = || {
        // SAFETY: a system call that touches no memory of this process.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
    let child = unsafe { command.pre_exec(tie) }.spawn();
    child.map_err(|error| format!("cannot start {}: {error}", program.display()))
}

/// The kinds that its nodes host.
fn kinds_of(stage: Stage) -> String {
    let arena: &[&str] = if stage.has_arena { &arena::NAMES } else { &[] };
    let plaza: &[&str] = if stage.has_second { &plaza::NAMES } else { &[] };
    [&kinds::NAMES[..], &[wallet::WALLET], arena, plaza].concat().join(",")
}

/// As many ports that nobody listens at, from `first` on; 0 for any.
fn free_ports(first: u16, count: usize) -> Result<Vec<u16>, String> {
    let first = match first {
        0 => {
            // Two that start at once begin apart.
            let places = u32::from(UNGIVEN.end - UNGIVEN.start - PORTS_TRIED);
            UNGIVEN.start + u16::try_from(std::process::id().wrapping_mul(257) % places).unwrap_or_default()
        }
        first => first,
    };
    // All are held until all are found, so that none is given twice.
    let mut held: Vec<TcpListener> = Vec::new();
    let mut last = io::Error::other("none is free");
    for port in (0..PORTS_TRIED).map_while(|step| first.checked_add(step)) {
        if held.len() == count {
            break;
        }
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => held.push(listener),
            Err(error) => last = error,
        }
    }
    if held.len() < count {
        return Err(format!("cannot find {count} free ports from {first} on: {last}; choose others with --port"));
    }
    let ports = held.iter().map(|listener| listener.local_addr().map(|address| address.port()));
    ports.collect::<io::Result<_>>().map_err(|error| format!("cannot find free ports: {error}"))
}

/// Of the first cluster.
const NODES: usize = 3;
const PORTS_TRIED: u16 = 100;
/// Ports that the system gives to nobody by itself: a node that starts, or starts again, finds its own free.
const UNGIVEN: Range<u16> = 10_000..32_768;
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// More than a node takes to stop in order.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(12);
const POLL: Duration = Duration::from_millis(50);
