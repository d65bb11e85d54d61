//! A simulated multi-cluster whose actors have versioned states: pages that everybody writes lines on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError, Version};
use greenroom::{ClusterChange, Config, GeoCluster, GeoConfig, GeoInstances, GeoKind, KindConfig};
use greenroom_sim::{Sim, SimStore};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::remote::Remote;
use super::world::{CLUSTERS, FAR};
use crate::cluster::Cluster;

/// What was written down, in order.
#[derive(Default, Clone, Serialize, Deserialize)]
pub(super) struct Lines(Vec<u64>);

impl VersionedStateWithOutput for Lines {
    type Update = u64;
    /// The line's number, from 1.
    type Output = u64;

    fn apply(&mut self, line: &u64) -> Result<u64, Rejected> {
        self.0.push(*line);
        Ok(self.0.len() as u64)
    }
}

/// A page of which each cluster has an instance, unless the configuration says otherwise.
#[derive(Default, Actor)]
pub(super) struct Page {
    lines: Versioned<Lines>,
    /// Which activation it is.
    instance: u64,
}

/// What one activation shows of its page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    pub(super) instance: u64,
    pub(super) confirmed: Vec<u64>,
    pub(super) tentative: Vec<u64>,
    pub(super) version: Version,
}

impl Page {
    fn shown(&self) -> Shown {
        let (confirmed, version) = self.lines.confirmed();
        let (confirmed, tentative) = (confirmed.0.clone(), self.lines.tentative().0.clone());
        Shown { instance: self.instance, confirmed, tentative, version }
    }
}

#[actor(instances = "per_cluster", idle = "20s")]
impl Page {
    /// Answers when the line is confirmed, with its number.
    #[update]
    pub async fn write(&self, line: u64) -> Result<u64, UpdateError> {
        self.lines.enqueue(line).await
    }

    /// Answers at once.
    #[update]
    pub async fn jot(&self, line: u64) -> Shown {
        self.lines.enqueue(line);
        self.shown()
    }

    /// Linearizable.
    pub async fn read(&self) -> Result<Vec<u64>, StateError> {
        self.lines.refresh_now().await?;
        Ok(self.lines.confirmed().0.0.clone())
    }

    /// What this instance has, at once.
    pub async fn glance(&self) -> Shown {
        self.shown()
    }

    pub async fn since(&self, seen: Version) -> Result<Vec<u64>, StateError> {
        Ok(self.lines.read_at_least(seen).await?.0.0.clone())
    }

    /// The number of lines of each version from now on.
    pub async fn watch(&self) -> impl Stream<Item = usize> + use<> {
        use futures_util::StreamExt;
        self.lines.versions().map(|(lines, _)| lines.0.len())
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// A diary, of which there is never more than one: a state that is saved as a whole.
#[derive(Default, Actor)]
pub(super) struct Diary {
    lines: Stored<Written>,
}

#[derive(Default, Serialize, Deserialize)]
struct Written(Vec<u64>);

impl State for Written {}

#[actor(activation = "pessimistic", idle = "20s")]
impl Diary {
    pub async fn write(&mut self, cx: &Cx, line: u64) -> Result<(), StateError> {
        self.lines.0.push(line);
        self.lines.save(cx).await
    }

    pub async fn read(&self) -> Vec<u64> {
        self.lines.0.clone()
    }

    /// Writes a last line, and ends.
    pub async fn close(&mut self, cx: &Cx, line: u64) -> Result<(), StateError> {
        cx.deactivate();
        self.write(cx, line).await
    }
}

/// How pages are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) clusters: usize,
    pub(super) protocol: &'static str,
    pub(super) single: bool,
    /// Whether that changes with how pages are used, and does so soon.
    pub(super) adaptive: bool,
    /// Whether nodes know that the store is in the first cluster.
    pub(super) placed: bool,
    /// The cluster that leads, if not one by the key.
    pub(super) leader: Option<&'static str>,
    /// Whether what is read while others are asked is used only if they have had no instance of late.
    pub(super) quiet: bool,
}

impl Setup {
    pub(super) const fn of(protocol: &'static str) -> Self {
        Self { clusters: 3, protocol, single: false, adaptive: false, placed: false, leader: None, quiet: true }
    }
}

/// The multi-cluster. The store of its pages is in the first cluster.
pub(super) struct Library {
    pub(super) sim: Sim,
    pub(super) store: SimStore,
    pub(super) setup: Setup,
    clusters: BTreeMap<&'static str, Cluster>,
}

impl Library {
    /// All clusters, once all of them answer.
    pub(super) async fn open(sim: &Sim, setup: Setup) -> Self {
        let this = Self::boot(sim, setup).await;
        this.all_answer().await;
        this
    }

    pub(super) async fn boot(sim: &Sim, setup: Setup) -> Self {
        Self::boot_with(sim, setup, |builder, _, _| builder).await
    }

    /// The same, with what `more` makes of each cluster's nodes.
    pub(super) async fn boot_with(
        sim: &Sim,
        setup: Setup,
        more: fn(greenroom::Builder, &str, Setup) -> greenroom::Builder,
    ) -> Self {
        let store = SimStore::journal(sim, "pages", Arc::new(MemoryStore::new()));
        for (at, (_, one)) in CLUSTERS.iter().enumerate() {
            for (_, other) in &CLUSTERS[..at] {
                sim.apart(one, other, FAR);
            }
        }
        let activations = Arc::new(AtomicU64::new(1));
        let mut clusters = BTreeMap::new();
        for (name, nodes) in &CLUSTERS[..setup.clusters] {
            let (pages, activations) = (store.clone(), activations.clone());
            let build = move |builder: greenroom::Builder, node: &str| {
                let journal = pages.journal_seen_by(node);
                let way = if *name == CLUSTERS[0].0 { Duration::ZERO } else { FAR };
                let own = node.to_owned();
                more(builder, name, setup)
                    .configure(move |config| configure(config, name, &own, setup))
                    .register::<Diary>()
                    .register_with({
                        let activations = activations.clone();
                        move |_| {
                            let instance = activations.fetch_add(1, Ordering::Relaxed);
                            Page { lines: Versioned::default(), instance }
                        }
                    })
                    .state_journal("", Arc::new(Remote { journal, way }))
            };
            let cluster = Cluster::new(sim, build);
            cluster.start_all(nodes).await;
            cluster.supervise();
            clusters.insert(*name, cluster);
        }
        Self { sim: sim.clone(), store, setup, clusters }
    }

    /// Waits until all nodes hear all clusters.
    pub(super) async fn all_answer(&self) {
        let hears = |name: &&str| {
            let status = self.try_node(name).and_then(|node| node.multi_cluster());
            status.is_some_and(|status| status.clusters.iter().all(|cluster| cluster.own || cluster.answers))
        };
        while !self.names().all(|name| hears(&name)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// All nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        CLUSTERS[..self.setup.clusters].iter().flat_map(|(_, nodes)| *nodes)
    }

    pub(super) fn try_node(&self, name: &str) -> Option<Node> {
        self.clusters.values().find_map(|cluster| cluster.node(name))
    }

    /// A node that lives.
    pub(super) fn node(&self, name: &str) -> Node {
        self.try_node(name).expect("the node lives")
    }

    pub(super) fn cluster_of(&self, node: &str) -> &Cluster {
        let (name, _) = CLUSTERS.iter().find(|(_, nodes)| nodes.contains(&node)).expect("there is such a node");
        &self.clusters[name]
    }

    /// Has the list of clusters changed by whichever node does; whether one has.
    pub(super) async fn change(&self, change: &ClusterChange) -> bool {
        for name in self.names() {
            if self.node(name).change_clusters(change).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Cuts the first cluster, and the store with it, from all others.
    pub(super) fn cut(&self) {
        for (_, other) in &CLUSTERS[1..self.setup.clusters] {
            self.sim.partition(&[CLUSTERS[0].1[0], CLUSTERS[0].1[1], self.store.name()], other);
        }
    }
}

/// Tells a node of the multi-cluster, and how its pages are kept.
pub(super) fn configure(config: &mut Config, cluster: &str, node: &str, setup: Setup) {
    let mut geo = GeoConfig::default();
    for (name, nodes) in &CLUSTERS[..setup.clusters] {
        geo.clusters.insert((*name).to_owned(), GeoCluster::at(nodes.map(|node| format!("{node}:7300"))));
    }
    geo.gateway = Some(format!("{node}:7300"));
    if setup.placed {
        geo.stores.insert("default".to_owned(), CLUSTERS[0].0.to_owned());
    }
    if setup.adaptive {
        let mut kind = GeoKind::default();
        kind.instances = Some(GeoInstances::Adaptive);
        geo.kinds.insert("page".to_owned(), kind);
        let adaptive = &mut geo.adaptive;
        (adaptive.window, adaptive.dwell) = (Duration::from_secs(4), Duration::from_secs(8));
        (adaptive.report_every, adaptive.gain) = (Duration::from_secs(1), 3.0);
        if setup.placed {
            // Without hysteresis, where both cost about the same: as many switches as there can be.
            (adaptive.ratio, adaptive.gain, adaptive.notice) = (1.0, 0.0, 0.55);
            (adaptive.window, adaptive.dwell) = (Duration::from_secs(2), Duration::from_secs(3));
        }
    }
    if setup.single {
        let mut kind = GeoKind::default();
        kind.instances = Some(GeoInstances::Single);
        geo.kinds.insert("page".to_owned(), kind);
    }
    geo.checks.quiet = setup.quiet;
    config.cluster = cluster.to_owned();
    config.geo = Some(geo);
    let kind: &mut KindConfig = config.kinds.entry("page".to_owned()).or_default();
    kind.protocol = Some(setup.protocol.to_owned());
    kind.leader = setup.leader.map(str::to_owned);
    kind.snapshot_every = Some(7);
}
