//! Two clusters of node processes with a wide-area network between them, which relays emulate.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_relay::{Gates, Relay};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::{NodeProcess, Target, describe, free_address};
use crate::driver::Plan;

/// One of the two clusters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    /// Near the store.
    California,
    /// As far from the store as from California.
    Netherlands,
}

impl Place {
    pub(super) const ALL: [Place; 2] = [Place::California, Place::Netherlands];

    pub(super) fn name(self) -> &'static str {
        match self {
            Place::California => "california",
            Place::Netherlands => "netherlands",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Place::California => Place::Netherlands,
            Place::Netherlands => Place::California,
        }
    }
}

/// The clusters of a run. Dropping it ends their processes at once.
pub(super) struct Sites {
    sites: [Site; 2],
    gates: Arc<Gates<Place>>,
    /// What the store is, and how its distance is made.
    pub(super) store: String,
    _dir: TempDir,
}

struct Site {
    nodes: Vec<NodeProcess>,
}

impl Sites {
    /// Starts both clusters, and returns when they hear each other.
    pub(super) async fn start(plan: &Plan) -> Result<Self, String> {
        let folder = plan.dir_given.clone().unwrap_or_else(in_memory);
        let dir = TempDir::with_prefix_in("greenroom-geo-", &folder)
            .map_err(|error| format!("no directory in {}: {error}", folder.display()))?;
        let gates = Arc::new(Gates::default());
        let mut gateways = Vec::new();
        for place in Place::ALL {
            let own = free_address().map_err(|error| format!("no free port: {error}"))?;
            let relay = Relay::new(own.to_string(), gates.clone()).between(place.other(), place);
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let far = bound.and_then(|listener| relay.round_trip(plan.geo.wan_rtt).start(listener));
            gateways.push((own, far.map_err(|error| format!("no relay: {error}"))?));
        }
        let start = |place: Place| start(plan, place, &gateways, dir.path());
        let sites = [start(Place::California)?, start(Place::Netherlands)?];
        let store = format!(
            "SQLite in {}, its calls held for {:?} in {} and {:?} in {}",
            folder.display(),
            plan.geo.store_rtt,
            Place::California.name(),
            plan.geo.wan_rtt,
            Place::Netherlands.name()
        );
        let mut sites = Self { sites, gates, store, _dir: dir };
        sites.ready().await?;
        Ok(sites)
    }

    async fn ready(&mut self) -> Result<(), String> {
        let end = Instant::now() + START_TIMEOUT;
        for place in Place::ALL {
            let count = self.at(place).nodes.len();
            for node in &mut self.sites[place as usize].nodes {
                while !(node.is_ready().await
                    && node.door().members().await == Some(count)
                    && hears(&node.door().json("/-/clusters").await, place.other()))
                {
                    if let Some(status) = node.ended() {
                        return Err(format!("node {} ended before it was ready: {status}", node.name()));
                    }
                    if Instant::now() >= end {
                        return Err(format!(
                            "node {} does not hear the other cluster after {START_TIMEOUT:?}",
                            node.name()
                        ));
                    }
                    tokio::time::sleep(START_POLL).await;
                }
            }
        }
        Ok(())
    }

    /// Waits until both clusters hold the leases of the kinds that are at home in them.
    pub(super) async fn leased(&self) -> Result<(), String> {
        let end = Instant::now() + START_TIMEOUT;
        for (kind, place) in HOMES {
            for node in &self.at(place).nodes {
                while !holds(&node.door().json("/-/clusters").await, kind) {
                    if Instant::now() >= end {
                        return Err(format!("node {} has no lease for {kind} after {START_TIMEOUT:?}", node.name()));
                    }
                    tokio::time::sleep(START_POLL).await;
                }
            }
        }
        Ok(())
    }

    fn at(&self, place: Place) -> &Site {
        &self.sites[place as usize]
    }

    /// Calls a method through the door of the first node there.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        place: Place,
        target: Target<'_>,
        arguments: &Value,
    ) -> Result<T, String> {
        let node = self.at(place).nodes.first().ok_or("its processes have ended")?;
        node.door().call(target, arguments).await.map_err(|error| describe(target, &error))
    }

    /// Lets nothing pass between the clusters.
    pub(super) fn cut(&self) {
        self.gates.cut(&Place::California, &Place::Netherlands);
    }

    /// Lets everything pass again.
    pub(super) fn heal(&self) {
        self.gates.heal(&Place::California, &Place::Netherlands);
    }

    /// Messages between clusters that the nodes have counted so far: questions, and calls sent to instances elsewhere.
    pub(super) async fn crossings(&self) -> u64 {
        let mut sum = 0;
        for node in self.sites.iter().flat_map(|site| &site.nodes) {
            let about = node.door().json("/-/clusters").await.unwrap_or_default();
            let count = |name: &str| about["counts"][name].as_u64().unwrap_or(0);
            sum += count("questions") + count("forwarded");
        }
        sum
    }

    /// What kills the processes of a cluster.
    pub(super) fn killer(&self, place: Place) -> Killer {
        Killer { processes: self.at(place).nodes.iter().map(NodeProcess::id).collect() }
    }

    /// Time that all nodes have spent on processors.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.sites.iter().flat_map(|site| &site.nodes).map(NodeProcess::cpu_seconds).sum()
    }

    /// The round trip to the other cluster as a node measures it, in ms.
    pub(super) async fn measured_trip_ms(&self) -> Option<f64> {
        let node = self.at(Place::California).nodes.first()?;
        let about = node.door().json("/-/clusters").await?;
        about["clusters"].as_array()?.iter().find_map(|cluster| cluster["round_trip_ms"].as_f64())
    }
}

/// Kills the processes of one cluster. They stay children of this one until [`Sites`] is dropped.
pub(super) struct Killer {
    processes: Vec<u32>,
}

impl Killer {
    pub(super) fn kill(&self) {
        for process in self.processes.iter().filter_map(|process| libc::pid_t::try_from(*process).ok()) {
            // SAFETY: a child that has not been waited for, so that its id is still its own.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
}

/// Whether a node says that it hears the cluster at `place`.
fn hears(about: &Option<Value>, place: Place) -> bool {
    let clusters = about.as_ref().and_then(|about| about["clusters"].as_array());
    clusters.into_iter().flatten().any(|cluster| cluster["name"] == place.name() && cluster["answers"] == true)
}

/// Whether a node says that its cluster holds the lease of `kind`.
fn holds(about: &Option<Value>, kind: &str) -> bool {
    let leases = about.as_ref().and_then(|about| about["leases"].as_array());
    leases.into_iter().flatten().any(|leased| leased == kind)
}

/// Starts the nodes of one cluster, the first of which is its gateway.
fn start(plan: &Plan, place: Place, gateways: &[(SocketAddr, SocketAddr)], dir: &Path) -> Result<Site, String> {
    let name = place.name();
    let table = format!("sqlite:{}", dir.join(format!("{name}.db")).display());
    let store_rtt = match place {
        Place::California => plan.geo.store_rtt,
        Place::Netherlands => plan.geo.wan_rtt,
    };
    let mut nodes = Vec::new();
    for number in 0..plan.nodes {
        let mut file = format!("cluster = {name:?}\nstore = \"sqlite:{}\"\n", dir.join("state.db").display());
        file += "call_timeout = 600\nstore_timeout = 30\nmailbox_len_max = 100000\nshed_after = 0\n[geo]\n";
        if number == 0 {
            let _ = writeln!(file, "gateway = \"{}\"", gateways[place as usize].0);
        }
        for place in Place::ALL {
            let far = gateways[place as usize].1;
            let _ = writeln!(file, "[geo.clusters.{}]\ngateways = [\"{far}\"]", place.name());
        }
        let near = Place::California.name();
        let _ = writeln!(file, "[geo.stores]\ndefault = {near:?}\n[kinds.geo_bytes_vlb_each]\nleader = {near:?}");
        for (kind, home) in HOMES {
            let _ = writeln!(file, "[kinds.{kind}]\nhome = \"lease:{}\"", home.name());
        }
        let path = dir.join(format!("{name}-{number}.toml"));
        std::fs::write(&path, file).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let store_rtt = format!("{}ms", store_rtt.as_secs_f64() * 1e3);
        let path = path.display().to_string();
        let options = ["--config", &path, "--store-rtt", &store_rtt];
        nodes.push(NodeProcess::start(&format!("{name}-{}", number + 1), &table, plan.shards, &options)?);
    }
    Ok(Site { nodes })
}

/// A folder in memory, where there is one: a store's distance is what is emulated, not its device.
fn in_memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Kinds that are at home somewhere.
const HOMES: [(&str, Place); 3] = [
    ("geo_bytes_volatile_home_c", Place::California),
    ("geo_bytes_volatile_home_n", Place::Netherlands),
    ("geo_bytes_kept_home_c", Place::California),
];
/// Time for the clusters to hear each other.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const START_POLL: Duration = Duration::from_millis(50);
