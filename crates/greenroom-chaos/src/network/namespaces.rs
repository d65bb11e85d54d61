//! Each node in a network namespace, on a bridge of this machine.
//!
//! A way is cut by telling a node a wrong hardware address of the other end: what it sends is lost without a word, as
//! on a real network.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_engines::program;
use greenroom_relay::Relay;

use super::End;

pub(super) struct Namespaces {
    ip: PathBuf,
    /// Tells the names of this run from those of others.
    tag: u32,
    nodes: usize,
    /// The port of this machine's loopback that is handed on to the nodes.
    table: Mutex<Option<(u16, String)>>,
}

impl Namespaces {
    /// Makes them; what is not permitted, if they cannot be made.
    pub(super) fn make(nodes: usize) -> Result<Self, String> {
        let ip = program("ip", &[Path::new("/usr/sbin"), Path::new("/sbin")]);
        let ip = ip.ok_or("the program `ip` is missing: install iproute2")?;
        let this = Self { ip, tag: std::process::id() % 10_000, nodes, table: Mutex::default() };
        let bridge = this.bridge();
        this.ip(&format!("link add {bridge} type bridge"))?;
        this.ip(&format!("addr add {}/24 dev {bridge}", this.address(HERE)))?;
        this.ip(&format!("addr add {}/24 dev {bridge}", this.address(TABLE)))?;
        this.ip(&format!("link set {bridge} up"))?;
        for node in 0..nodes {
            let (namespace, link) = (this.namespace(node), this.link(node));
            this.ip(&format!("netns add {namespace}"))?;
            this.ip(&format!("link add {link} type veth peer name eth0 netns {namespace}"))?;
            this.ip(&format!("link set {link} master {bridge} up"))?;
            this.ip(&format!("-n {namespace} addr add {}/24 dev eth0", this.address(node + 1)))?;
            this.ip(&format!("-n {namespace} link set eth0 up"))?;
            this.ip(&format!("-n {namespace} link set lo up"))?;
        }
        Ok(this)
    }

    pub(super) fn command(&self, node: usize, program: &Path) -> Command {
        let mut command = Command::new(&self.ip);
        command.args(["netns", "exec", &self.namespace(node)]).arg(program);
        command.args(["node", "--insecure-listen", "--listen", &format!("{}:7000", self.address(node + 1))]);
        command.args(["--http", &self.door(node)]);
        command
    }

    pub(super) fn door(&self, node: usize) -> String {
        format!("{}:7070", self.address(node + 1))
    }

    pub(super) fn way_to_table(&self, port: u16) -> Result<String, String> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, address)) = &*table
            && *known == port
        {
            return Ok(address.clone());
        }
        let address = format!("{}:{port}", self.address(TABLE));
        let listener = TcpListener::bind(&address).map_err(|error| format!("cannot listen at {address}: {error}"))?;
        let open = Relay::<End>::new(format!("127.0.0.1:{port}"), Arc::default());
        open.start(listener).map_err(|error| error.to_string())?;
        *table = Some((port, address.clone()));
        Ok(address)
    }

    pub(super) fn set(&self, from: End, to: End, is_cut: bool) -> Result<(), String> {
        let End::Node(from) = from else { return Err("the table cannot be cut from a node this way only".to_owned()) };
        let to = match to {
            End::Node(node) => self.address(node + 1),
            End::Table => self.address(TABLE),
        };
        let namespace = self.namespace(from);
        if is_cut {
            return self.ip(&format!("-n {namespace} neigh replace {to} lladdr {NOBODY} dev eth0 nud permanent"));
        }
        self.ip(&format!("-n {namespace} neigh del {to} dev eth0"))
    }

    fn bridge(&self) -> String {
        format!("gr{}", self.tag)
    }

    fn namespace(&self, node: usize) -> String {
        format!("greenroom-{}-{node}", self.tag)
    }

    fn link(&self, node: usize) -> String {
        format!("gr{}n{node}", self.tag)
    }

    fn address(&self, host: usize) -> String {
        format!("10.{}.{}.{host}", 100 + self.tag % 100, self.tag / 100)
    }

    fn ip(&self, arguments: &str) -> Result<(), String> {
        let output = Command::new(&self.ip).args(arguments.split(' ')).output();
        let output = output.map_err(|error| format!("ip {arguments}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Drop for Namespaces {
    /// As far as they were made.
    fn drop(&mut self) {
        for node in 0..self.nodes {
            drop(self.ip(&format!("netns del {}", self.namespace(node))));
            drop(self.ip(&format!("link del {}", self.link(node))));
        }
        drop(self.ip(&format!("link del {}", self.bridge())));
    }
}

/// The callers' place in the network, and the table's.
const HERE: usize = 254;
const TABLE: usize = 253;
/// A hardware address that nobody has.
const NOBODY: &str = "02:00:00:00:00:99";
