//! The demo's node processes, none of which outlives it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::door::Door;
use crate::kinds;

/// Three node processes and the directory of their table. Dropping it ends them at once.
pub(super) struct Nodes {
    nodes: Vec<NodeProcess>,
    _table: TempDir,
}

struct NodeProcess {
    name: String,
    child: Child,
    door: Door,
    ended: bool,
}

impl Nodes {
    /// Starts them, with HTTP doors from `port` on.
    pub(super) fn start(port: u16) -> Result<Self, String> {
        let dir = tempfile::Builder::new().prefix("greenroom-demo-").tempdir().map_err(|error| {
            format!("cannot make a temporary directory: {error}; set TMPDIR to one that can be used")
        })?;
        let table = format!("sqlite:{}", dir.path().join("table.db").display());
        let ports = free_ports(port).map_err(|error| format!("cannot find free ports from {port} on: {error}"))?;
        let mut nodes = Nodes { nodes: Vec::new(), _table: dir };
        for (at, port) in ports.into_iter().enumerate() {
            nodes.nodes.push(NodeProcess::start(&format!("demo-{}", at + 1), port, &table)?);
        }
        Ok(nodes)
    }

    /// Resolves when each knows all.
    pub(super) async fn ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(ended) = self.ended().first() {
                return Err(format!("node {ended} has ended; what it said is above"));
            }
            let all = self.nodes.len();
            let doors = self.doors();
            // The client blocks; this thread must stay to hear signals.
            let ready = tokio::task::spawn_blocking(move || doors.iter().all(|door| knows(door, all))).await;
            if ready.unwrap_or(false) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("the nodes were not ready within {} s", START_TIMEOUT.as_secs()));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub(super) fn doors(&self) -> Vec<Door> {
        self.nodes.iter().map(|node| node.door.clone()).collect()
    }

    /// Names and process ids.
    pub(super) fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.nodes.iter().map(|node| (node.name.as_str(), node.child.id()))
    }

    /// Names of those that have ended since this was last asked.
    pub(super) fn ended(&mut self) -> Vec<String> {
        let ended = self.nodes.iter_mut().filter_map(|node| {
            let news = !node.ended && matches!(node.child.try_wait(), Ok(Some(_)));
            node.ended |= news;
            news.then(|| node.name.clone())
        });
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
    fn start(name: &str, port: u16, table: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
        let http = format!("127.0.0.1:{port}");
        let mut command = Command::new(&program);
        command.args(["node", "--name", name, "--listen", "127.0.0.1:0", "--http", &http, "--table", table]);
        command.args(["--kinds", &kinds::NAMES.join(","), "--shards", "1", "--until-stdin-ends"]);
        // Their lives are not what the demo shows, unless it is asked for them.
        if std::env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "warn");
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
        let child = child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let door = Door::new(&http, REQUEST_TIMEOUT);
        Ok(Self { name: name.to_owned(), child, door, ended: false })
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if !self.ended {
            // Errors mean that it has ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Three ports that nobody listens at, from `first` on.
fn free_ports(first: u16) -> io::Result<Vec<u16>> {
    // All are held until all are found, so that none is given twice.
    let mut held: Vec<TcpListener> = Vec::new();
    let candidates = (0..PORTS_TRIED).map(|step| if first == 0 { 0 } else { first.saturating_add(step) });
    let mut last = None;
    for port in candidates {
        if held.len() == NODES {
            break;
        }
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => held.push(listener),
            Err(error) => last = Some(error),
        }
    }
    if held.len() < NODES {
        return Err(last.unwrap_or_else(|| io::Error::other("none is free")));
    }
    held.iter().map(|listener| listener.local_addr().map(|address| address.port())).collect()
}

const NODES: usize = 3;
const PORTS_TRIED: u16 = 100;
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// More than a node takes to stop in order.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(12);
const POLL: Duration = Duration::from_millis(50);
