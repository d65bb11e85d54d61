//! A simulated multi-cluster, and rooms in it that tell where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{ClusterChange, Config, GeoCluster, GeoConfig};
use greenroom_sim::{Faults, Sim};

use crate::cluster::{self, Cluster};

/// Where rooms are, and what became of them.
#[derive(Clone)]
pub(super) struct Rooms {
    sim: Sim,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    live: BTreeMap<String, Vec<String>>,
    activated: BTreeMap<String, usize>,
    ended: Vec<(String, String, Why)>,
    /// Posts that must not run twice: those that begin with a number sign.
    once: BTreeSet<String>,
}

impl Rooms {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in that a post runs.
    fn ran(&self, text: &str) {
        if text.starts_with('#') && !self.seen().once.insert(text.to_owned()) {
            self.sim.violated(format!("{text} runs a second time"));
        }
    }

    /// Whether a post that must not run twice has run.
    pub(super) fn has_run(&self, text: &str) -> bool {
        self.seen().once.contains(text)
    }

    /// The nodes that the room is active on.
    pub(super) fn live(&self, key: &str) -> Vec<String> {
        self.seen().live.get(key).cloned().unwrap_or_default()
    }

    /// How often the room was activated.
    pub(super) fn activated(&self, key: &str) -> usize {
        self.seen().activated.get(key).copied().unwrap_or(0)
    }

    /// Why activations of the room have ended, with their nodes.
    pub(super) fn ended(&self, key: &str) -> Vec<(String, Why)> {
        let seen = self.seen();
        seen.ended.iter().filter(|(room, ..)| room == key).map(|(_, node, why)| (node.clone(), *why)).collect()
    }
}

/// Being active.
struct Live {
    rooms: Rooms,
    key: String,
    node: String,
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut seen = self.rooms.seen();
        let live = seen.live.entry(self.key.clone()).or_default();
        if let Some(at) = live.iter().position(|node| *node == self.node) {
            live.remove(at);
        }
    }
}

macro_rules! room {
    ($room:ident, $($option:tt)*) => {
        /// A room of one configuration.
        pub(super) struct $room {
            posts: Vec<String>,
            live: Live,
        }

        impl Actor for $room {}

        impl $room {
            fn open(rooms: &Rooms, node: &str, cx: &Cx) -> Self {
                let (key, node) = (cx.key().to_string(), node.to_owned());
                let mut seen = rooms.seen();
                let live = seen.live.entry(key.clone()).or_default();
                if matches!(cx.kind(), "safe" | "fort") && !live.is_empty() {
                    rooms.sim.violated(format!("{key} is active on {node} while it is on {live:?}"));
                }
                live.push(node.clone());
                *seen.activated.entry(key.clone()).or_default() += 1;
                drop(seen);
                Self { posts: Vec::new(), live: Live { rooms: rooms.clone(), key, node } }
            }
        }

        #[actor($($option)*)]
        impl $room {
            pub async fn post(&mut self, text: String) -> usize {
                self.live.rooms.ran(&text);
                self.posts.push(text);
                self.posts.len()
            }

            pub async fn whereabouts(&self) -> String {
                self.live.node.clone()
            }

            pub async fn doubtful(&self, cx: &Cx) -> bool {
                cx.is_doubtful()
            }

            async fn deactivating(&mut self, _cx: &Cx, why: Why) {
                let ended = (self.live.key.clone(), self.live.node.clone(), why);
                self.live.rooms.seen().ended.push(ended);
            }
        }
    };
}

room!(Room, kind = "room", idle = "60s");
room!(Vault, kind = "vault", activation = "pessimistic", idle = "60s");
room!(Safe, kind = "safe", activation = "pessimistic", idle = "1s");
room!(Hearth, kind = "hearth", home = "lease:eu", idle = "60s");
room!(Fort, kind = "fort", activation = "pessimistic", home = "lease", idle = "1s");
room!(Board, kind = "board", instances = "per_cluster", idle = "60s");

/// Notes that a duplicate sends to the one that stays.
#[derive(Default, Actor)]
pub(super) struct Notes {
    all: Vec<String>,
}

#[actor(kind = "notes", idle = "60s")]
impl Notes {
    pub async fn add(&mut self, notes: Vec<String>) {
        self.all.extend(notes);
    }

    pub async fn all(&self) -> Vec<String> {
        self.all.clone()
    }

    async fn deactivating(&mut self, cx: &Cx, why: Why) {
        if why == Why::Duplicate {
            NotesRef::of(cx, cx.key().to_string()).add(std::mem::take(&mut self.all)).send();
        }
    }
}

/// Clusters of two nodes each, far from each other.
pub(super) struct World {
    pub(super) sim: Sim,
    pub(super) rooms: Rooms,
    clusters: BTreeMap<&'static str, Cluster>,
}

/// The clusters that there may be, and their nodes.
pub(super) const CLUSTERS: [(&str, [&str; 2]); 3] =
    [("eu", ["e1", "e2"]), ("us", ["u1", "u2"]), ("asia", ["s1", "s2"])];

/// Time between two clusters, one way.
pub(super) const FAR: Duration = Duration::from_millis(70);

impl World {
    /// The first `count` clusters, as `change` configures them, once all of them answer.
    pub(super) async fn start(sim: &Sim, count: usize, change: impl Fn(&mut Config) + Clone + 'static) -> Self {
        let world = Self::boot(sim, count, change).await;
        world.all_answer(count).await;
        world
    }

    /// The first `count` clusters, as `change` configures them.
    pub(super) async fn boot(sim: &Sim, count: usize, change: impl Fn(&mut Config) + Clone + 'static) -> Self {
        let all = CLUSTERS[..count].iter().map(|(name, nodes)| (*name, &nodes[..])).collect();
        Self::boot_of(sim, all, change, |builder, _| builder).await
    }

    /// These clusters of these nodes, as `change` configures them and `equip` adds to them.
    pub(super) async fn boot_of(
        sim: &Sim,
        all: Vec<(&'static str, &'static [&'static str])>,
        change: impl Fn(&mut Config) + Clone + 'static,
        equip: impl Fn(greenroom::Builder, &str) -> greenroom::Builder + Clone + 'static,
    ) -> Self {
        let rooms = Rooms { sim: sim.clone(), seen: Arc::default() };
        for (at, (_, one)) in all.iter().enumerate() {
            for (_, other) in &all[..at] {
                sim.apart(one, other, FAR);
            }
        }
        let listed = multi_cluster(&all);
        let mut clusters = BTreeMap::new();
        for (name, nodes) in all {
            let listed = listed.clone();
            let (rooms, change, equip) = (rooms.clone(), change.clone(), equip.clone());
            let build = move |builder: greenroom::Builder, node: &str| {
                let [room, vault, safe, board, hearth, fort] =
                    std::array::from_fn(|_| (rooms.clone(), node.to_owned()));
                let builder = equip(builder, node);
                let node = node.to_owned();
                let (listed, change) = (listed.clone(), change.clone());
                builder
                    .configure(move |config| {
                        config.cluster = name.to_owned();
                        let mut geo = listed;
                        geo.gateway = Some(format!("{node}:7300"));
                        config.geo = Some(geo);
                        change(config);
                    })
                    .register::<Notes>()
                    .register_with(move |cx| Room::open(&room.0, &room.1, cx))
                    .register_with(move |cx| Vault::open(&vault.0, &vault.1, cx))
                    .register_with(move |cx| Safe::open(&safe.0, &safe.1, cx))
                    .register_with(move |cx| Board::open(&board.0, &board.1, cx))
                    .register_with(move |cx| Hearth::open(&hearth.0, &hearth.1, cx))
                    .register_with(move |cx| Fort::open(&fort.0, &fort.1, cx))
            };
            let cluster = Cluster::new(sim, build);
            cluster.start_all(nodes).await;
            clusters.insert(name, cluster);
        }
        Self { sim: sim.clone(), rooms, clusters }
    }

    /// Waits until all nodes hear all clusters.
    pub(super) async fn all_answer(&self, count: usize) {
        let hears = |node: &&str| {
            let status = self.node(node).multi_cluster().expect("it is in a multi-cluster");
            status.clusters.iter().filter(|cluster| cluster.answers).count() == count
        };
        while !CLUSTERS[..count].iter().flat_map(|(_, nodes)| nodes).all(&hears) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until these nodes hold the lease of `kind` for their clusters.
    pub(super) async fn leases(&self, nodes: &[&str], kind: &str) {
        let holds = |node: &&str| {
            let status = self.node(node).multi_cluster().expect("it is in a multi-cluster");
            status.leases.iter().any(|leased| leased == kind)
        };
        while !nodes.iter().all(holds) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// One of the clusters.
    pub(super) fn cluster(&self, name: &str) -> &Cluster {
        &self.clusters[name]
    }

    /// A node that lives.
    pub(super) fn node(&self, name: &str) -> Node {
        let find = |cluster: &Cluster| cluster.node(name);
        self.clusters.values().find_map(find).expect("the node lives")
    }

    /// Has the list of clusters changed by whichever node does; whether one has.
    pub(super) async fn change(&self, change: &ClusterChange) -> bool {
        for name in CLUSTERS.iter().flat_map(|(_, nodes)| nodes) {
            if self.node(name).change_clusters(change).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Cuts the first cluster from all others.
    pub(super) fn cut(&self) {
        for (_, other) in &CLUSTERS[1..] {
            self.sim.partition(&CLUSTERS[0].1, other);
        }
    }
}

/// What nodes are told of these clusters.
fn multi_cluster(all: &[(&str, &[&str])]) -> GeoConfig {
    let mut geo = GeoConfig::default();
    for (name, nodes) in all {
        geo.clusters.insert((*name).to_owned(), GeoCluster::at(nodes.iter().map(|node| format!("{node}:7300"))));
    }
    geo
}

/// Runs a scenario in a world without accidents but those that it makes.
pub(super) fn run<F: Future<Output = ()> + 'static>(seed: u64, scenario: impl FnOnce(Sim) -> F + 'static) {
    run_under(seed, Faults::none(), scenario);
}

/// Runs a scenario in a world with these faults.
pub(super) fn run_under<F: Future<Output = ()> + 'static>(
    seed: u64,
    faults: Faults,
    scenario: impl FnOnce(Sim) -> F + 'static,
) {
    cluster::sim(seed, faults).deadline(Duration::from_secs(900)).run(scenario);
}
