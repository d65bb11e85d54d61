//! All nodes on loopback, each advertised at a relay of its own, which knows from a connection's first bytes who calls.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use greenroom_engines::free_port;
use greenroom_relay::{Gates, Relay};

use super::End;
use crate::nodes;

pub(super) struct Loopback {
    nodes: Vec<Ports>,
    gates: Arc<Gates<End>>,
}

struct Ports {
    listens: u16,
    relay: u16,
    door: u16,
}

impl Loopback {
    pub(super) fn make(count: usize) -> Result<Self, String> {
        let gates = Arc::new(Gates::default());
        let mut nodes = Vec::new();
        for node in 0..count {
            let (listener, relay) = listener()?;
            let ports = Ports { listens: free_port(), relay, door: free_port() };
            let between = move |first: &[u8]| Some((caller_of(first, count)?, End::Node(node)));
            let way = Relay::new(loopback(ports.listens), gates.clone()).told_by(between);
            way.start(listener).map_err(|error| error.to_string())?;
            nodes.push(ports);
        }
        Ok(Self { nodes, gates })
    }

    pub(super) fn command(&self, node: usize, program: &Path) -> Command {
        let ports = &self.nodes[node];
        let mut command = Command::new(program);
        command.args(["node", "--listen", &loopback(ports.listens), "--advertise", &loopback(ports.relay)]);
        command.args(["--http", &loopback(ports.door)]);
        command
    }

    pub(super) fn door(&self, node: usize) -> String {
        loopback(self.nodes[node].door)
    }

    pub(super) fn way_to_table(&self, node: usize, port: u16) -> Result<String, String> {
        let (listener, relay) = listener()?;
        let way = Relay::new(loopback(port), self.gates.clone()).between(End::Node(node), End::Table);
        way.start(listener).map_err(|error| error.to_string())?;
        Ok(loopback(relay))
    }

    pub(super) fn set(&self, from: End, to: End, is_cut: bool) {
        self.gates.set(&from, &to, is_cut);
    }
}

/// Who says Hello: its name is in there.
fn caller_of(first: &[u8], count: usize) -> Option<End> {
    let says = |name: &str| first.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    // From above, as node-1 is in node-10 too.
    (0..count).rev().find(|node| says(&nodes::name(*node))).map(End::Node)
}

/// A listener on a free port.
fn listener() -> Result<(TcpListener, u16), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("cannot listen on loopback: {error}"))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    Ok((listener, port))
}

fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
