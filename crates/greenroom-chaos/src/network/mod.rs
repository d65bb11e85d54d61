//! The network between the nodes, their table and the callers, and what is cut in it.

mod loopback;
mod namespaces;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use self::loopback::Loopback;
use self::namespaces::Namespaces;

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum End {
    Node(usize),
    Table,
}

/// The network.
pub(crate) struct Network {
    kind: Kind,
    /// How many faults cut a link, one way.
    cuts: Mutex<BTreeMap<(End, End), u32>>,
}

enum Kind {
    /// Each node in a network namespace of its own.
    Namespaces(Namespaces),
    /// All on loopback, behind relays.
    Loopback(Loopback),
}

impl Network {
    /// A network for so many nodes: namespaces if the system permits them and relays are not `wanted`.
    pub(crate) fn make(nodes: usize, wanted: bool) -> Result<Self, String> {
        let kind = if wanted {
            Kind::Loopback(Loopback::make(nodes)?)
        } else {
            match Namespaces::make(nodes) {
                Ok(namespaces) => Kind::Namespaces(namespaces),
                Err(why) => {
                    println!("==> NO NETWORK NAMESPACES: {why}");
                    println!(
                        "==> NO NETWORK NAMESPACES: the nodes run on loopback, and relays between them hold back what is cut"
                    );
                    Kind::Loopback(Loopback::make(nodes)?)
                }
            }
        };
        Ok(Self { kind, cuts: Mutex::default() })
    }

    /// The command that runs `program` where the node is, with its addresses as options.
    pub(crate) fn command(&self, node: usize, program: &Path) -> Command {
        match &self.kind {
            Kind::Namespaces(namespaces) => namespaces.command(node, program),
            Kind::Loopback(loopback) => loopback.command(node, program),
        }
    }

    /// Where callers find a node's door, as `host:port`.
    pub(crate) fn door(&self, node: usize) -> String {
        match &self.kind {
            Kind::Namespaces(namespaces) => namespaces.door(node),
            Kind::Loopback(loopback) => loopback.door(node),
        }
    }

    /// Where a node finds what listens at `port` of this machine's loopback, as `host:port`.
    pub(crate) fn way_to_table(&self, node: usize, port: u16) -> Result<String, String> {
        match &self.kind {
            Kind::Namespaces(namespaces) => namespaces.way_to_table(port),
            Kind::Loopback(loopback) => loopback.way_to_table(node, port),
        }
    }

    /// Lets nothing pass from one end to the other any more.
    pub(crate) fn cut(&self, from: End, to: End) -> Result<(), String> {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = cuts.entry((from, to)).or_insert(0);
        *count += 1;
        if *count == 1 { self.set(from, to, true) } else { Ok(()) }
    }

    /// Takes back one [`cut`](Self::cut).
    pub(crate) fn mend(&self, from: End, to: End) -> Result<(), String> {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = cuts.get_mut(&(from, to)) else { return Ok(()) };
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        cuts.remove(&(from, to));
        self.set(from, to, false)
    }

    fn set(&self, from: End, to: End, is_cut: bool) -> Result<(), String> {
        match &self.kind {
            Kind::Namespaces(namespaces) => namespaces.set(from, to, is_cut),
            Kind::Loopback(loopback) => {
                loopback.set(from, to, is_cut);
                Ok(())
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Namespaces(_) => "each node in a network namespace",
            Kind::Loopback(_) => "all on loopback behind relays",
        })
    }
}
