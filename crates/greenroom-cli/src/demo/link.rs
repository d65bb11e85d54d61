//! The demo's second cluster: what its nodes and those of the first are told of each other, and the link between them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use greenroom_relay::{Gates, Relay};

use crate::arena;
use crate::wallet::WALLET;

/// The link between two clusters, which is as long as one over an ocean. It hands on until the demo ends.
pub(super) struct Link {
    gates: Arc<Gates<&'static str>>,
    is_cut: bool,
}

impl Link {
    /// Lays it, and writes a file for each node: `clusters` says which one it is in, `gateways` its gateway's port.
    pub(super) fn lay(
        folder: &Path,
        clusters: &[&'static str],
        gateways: &[u16],
    ) -> Result<(Self, Vec<PathBuf>), String> {
        let gates = Arc::new(Gates::default());
        let failed = |error: io::Error| format!("cannot lay a link between the clusters: {error}");
        let mut relays: Vec<SocketAddr> = Vec::new();
        for gateway in gateways {
            let relay = Relay::new(format!("127.0.0.1:{gateway}"), gates.clone());
            let relay = relay.between(FIRST, SECOND).round_trip(ROUND_TRIP);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
            relays.push(relay.start(listener).map_err(failed)?);
        }
        let mut files = Vec::new();
        for (at, (cluster, gateway)) in clusters.iter().zip(gateways).enumerate() {
            let store = folder.join("state.db");
            let store = format!("sqlite:{}", store.display());
            // What a string is in Rust it is in TOML.
            let mut text = format!("cluster = \"{cluster}\"\nstore = {store:?}\n");
            text += &format!("[geo]\ngateway = \"127.0.0.1:{gateway}\"\nlook_again_every = 2\n");
            for known in [FIRST, SECOND] {
                let ways: Vec<String> = clusters
                    .iter()
                    .zip(&relays)
                    .filter(|(of, _)| **of == known)
                    .map(|(_, relay)| format!("\"{relay}\""))
                    .collect();
                text += &format!("[geo.clusters.{known}]\ngateways = [{}]\n", ways.join(", "));
            }
            // Matches are played in one cluster, and nobody asks the other one for their players.
            for kind in arena::NAMES.iter().filter(|kind| **kind != "arena") {
                text += &format!("[geo.kinds.{kind}]\ninstances = \"per_cluster\"\n");
            }
            // Each cluster has wallets of its own.
            text += &format!("[geo.kinds.{WALLET}]\ninstances = \"per_cluster\"\n");
            let file = folder.join(format!("node-{}.toml", at + 1));
            std::fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            files.push(file);
        }
        Ok((Self { gates, is_cut: false }, files))
    }

    /// Cuts it, or heals it; says whether it is cut now.
    pub(super) fn toggle(&mut self) -> bool {
        self.is_cut = !self.is_cut;
        match self.is_cut {
            true => self.gates.cut(&FIRST, &SECOND),
            false => self.gates.heal(&FIRST, &SECOND),
        }
        self.is_cut
    }
}

/// The cluster with three nodes and the arena.
pub(super) const FIRST: &str = "here";
/// The one of a single node.
pub(super) const SECOND: &str = "there";

const ROUND_TRIP: Duration = Duration::from_millis(80);
