//! Several clusters, one actor system (Geo §3): which clusters there are, the connections between them, and the machines
//! that keep an actor single over all of them.
//!
//! The node that owns an actor's range asks the other clusters before it grants an activation (`range.rs`, which drives
//! `greenroom_protocols::gsi`). What it says is a [`Letter`](letter::Letter) to a cluster and an actor; a gateway of that
//! cluster hands it to the node that owns the range there. Nodes of a cluster that is alone have none of this.

mod abroad;
mod accepted;
pub(crate) mod adaptive;
mod border;
mod changes;
mod clusters;
pub(crate) mod config;
mod counts;
mod driver;
mod early;
mod gateway;
mod homes;
mod letter;
mod listing;
mod mesh;
mod news;
mod post;
mod quiet;
mod range;
pub(crate) mod reliable_kinds;
mod reload;
mod states;
mod status;
mod term;
mod wandering;
pub(crate) mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::{Instances, NodeId};
#[cfg(feature = "tls")]
use greenroom_security::certificates::NodeCertificates;
use greenroom_security::link::Links;
#[cfg(feature = "tls")]
use greenroom_security::watched::Watched;
use greenroom_wire::Lane;
use greenroom_world::{BoxFuture, Timestamp, World};
use tokio::sync::Notify;

pub(crate) use self::accepted::AcceptedList;
use self::adaptive::Modes;
pub use self::adaptive::{Adaptive, GeoAdaptive};
pub use self::changes::{ClusterChange, ClustersUnchanged};
pub(crate) use self::clusters::Clusters;
pub use self::config::{GeoActivation, GeoCluster, GeoConfig, GeoHome, GeoInstances, GeoKind};
use self::counts::Counts;
pub use self::counts::GeoCounts;
pub(crate) use self::driver::start;
use self::early::EarlyReads;
use self::homes::Homes;
pub(crate) use self::letter::{Event, Message, Operation};
pub(crate) use self::listing::Listing;
use self::mesh::Mesh;
use self::news::Progress;
use self::post::LETTER_ROOM;
pub(crate) use self::range::{Deed, Effect, GeoRange, Presence};
pub(crate) use self::states::{States, check_kinds};
pub use self::status::{ClusterStatus, MultiCluster, Standings};
use self::term::Term;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::view::ClusterView;
use crate::cluster::{Order, Orders};
use crate::here::Here;
use crate::here::figures::Figures;
use crate::here::parts::{Met, Part};
use crate::shard::ShardPort;
use crate::state::early::Claim;

/// A node's part in its multi-cluster.
pub(crate) struct Geo {
    me: ClusterId,
    name: String,
    config: GeoConfig,
    world: Arc<dyn World>,
    shards: Vec<ShardPort>,
    orders: Orders,
    clusters: RwLock<Arc<Clusters>>,
    /// How connections to other clusters are made, if not as those to nodes.
    links: Option<Links>,
    /// The store that the list is in, if it is in one.
    listing: Option<Listing>,
    /// Why the list there is not looked at.
    listing_trouble: Mutex<Option<String>>,
    /// Clusters that do not answer, as far as this node knows.
    silent: RwLock<BTreeSet<ClusterId>>,
    mesh: OnceLock<Arc<Mesh>>,
    counts: Counts,
    progress: Progress,
    homes: Homes,
    early: EarlyReads,
    /// How many instances adaptive actors have.
    modes: Modes,
    /// Clusters whose clocks are ahead of this node's by so many seconds, where that is a fault.
    clocks: Mutex<BTreeMap<ClusterId, i64>>,
    list_changed: Notify,
    term: Term,
    next_call: AtomicU64,
    /// Calls that wait here for other clusters.
    waiting: AtomicI64,
    /// When the driver looks next, in ns.
    look_at: AtomicU64,
    look: Notify,
    /// Kinds' numbers of instances, as the newest view has them.
    view: RwLock<Arc<ClusterView>>,
}

impl Part for Arc<Geo> {
    fn report(&self, figures: &mut Figures) {
        self.counts().now().report(figures);
    }

    fn viewed(&self, view: &Arc<ClusterView>) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view.clone();
    }

    fn read(&self, here: &Arc<Here>, lane: Lane, met: Met) -> Result<BoxFuture<io::Result<()>>, Met> {
        if lane != Lane::Geo {
            return Err(met);
        }
        let (geo, here) = (self.clone(), here.clone());
        Ok(Box::pin(async move { gateway::read(&geo, &here, None, met).await }))
    }

    fn instances(&self, actor: &ActorId) -> Option<Adaptive> {
        self.adaptive(actor)
    }

    fn claim(&self, id: &ActorId, epoch: Epoch, key: &str) -> Option<Claim> {
        self.early.claim(id, epoch, key)
    }

    fn channel(&self) -> Option<u8> {
        Some(wandering::CHANNEL)
    }

    fn told(&self, here: &Arc<Here>, from: NodeId, payload: &[u8]) {
        self.told_to_yield(here, from, payload);
    }

    fn is_cluster_leaving(&self) -> bool {
        self.is_leaving()
    }
}

impl Here {
    /// This node's part in a multi-cluster, if it is in one.
    #[inline]
    pub(crate) fn geo(&self) -> Option<&Arc<Geo>> {
        self.find_part()
    }
}

impl Geo {
    /// The part of a node of the cluster `name`, if its configuration names a multi-cluster.
    pub(crate) fn new(
        config: &GeoConfig,
        name: &str,
        (clusters, in_force, listing, links): (Clusters, bool, Option<Listing>, Option<Links>),
        accepted: AcceptedList,
        world: Arc<dyn World>,
        shards: Vec<ShardPort>,
        orders: Orders,
    ) -> Arc<Self> {
        let me = clusters::id_of(name);
        // Nothing is carried to who was never heard.
        let silent = clusters.configuration().clusters.into_keys().filter(|id| *id != me).collect();
        let term = Term::new(me, &clusters, in_force, accepted, config.lost_after(), world.now());
        Arc::new(Self {
            me,
            name: name.to_owned(),
            config: config.clone(),
            shards,
            orders,
            clusters: RwLock::new(Arc::new(clusters)),
            links,
            listing,
            listing_trouble: Mutex::default(),
            silent: RwLock::new(silent),
            mesh: OnceLock::new(),
            counts: Counts::default(),
            progress: Progress::default(),
            homes: Homes::default(),
            early: EarlyReads::default(),
            modes: Modes::default(),
            clocks: Mutex::default(),
            list_changed: Notify::new(),
            term,
            // What this cluster has forgotten goes on being answered: no number is one of then.
            next_call: AtomicU64::new(world.random()),
            world,
            waiting: AtomicI64::new(0),
            look_at: AtomicU64::new(u64::MAX),
            look: Notify::new(),
            view: RwLock::default(),
        })
    }

    /// This cluster.
    pub(crate) fn me(&self) -> ClusterId {
        self.me
    }

    /// This cluster's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The certificates for connections to other clusters, if they are not those for nodes.
    #[cfg(feature = "tls")]
    pub(crate) fn certificates(&self) -> Option<&Watched<NodeCertificates>> {
        self.links.as_ref().and_then(Links::certificates)
    }

    /// How connections to other clusters are made.
    fn links<'a>(&'a self, node: &'a Here) -> &'a Links {
        self.links.as_ref().unwrap_or_else(|| node.links())
    }

    pub(crate) fn config(&self) -> &GeoConfig {
        &self.config
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The list of clusters that this node works by.
    pub(crate) fn clusters(&self) -> Arc<Clusters> {
        self.clusters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Clusters that do not answer.
    pub(crate) fn silent(&self) -> BTreeSet<ClusterId> {
        self.silent.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether a cluster answers; whether that is news.
    fn note_silent(&self, cluster: ClusterId, silent: bool) -> bool {
        let mut known = self.silent.write().unwrap_or_else(PoisonError::into_inner);
        if silent { known.insert(cluster) } else { known.remove(&cluster) }
    }

    /// How many instances the actors of `kind` have.
    pub(crate) fn instances(&self, kind: Kind) -> Instances {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.hosts(kind).map_or(Instances::PerCluster, |hosts| hosts.instances)
    }

    /// Whether there is at most one instance of an actor of `kind` over all clusters.
    pub(crate) fn is_single(&self, kind: Kind) -> bool {
        self.instances(kind) != Instances::PerCluster
    }

    /// A number for a call that no other one of this cluster has: one process counts from a number drawn at random.
    pub(crate) fn next_call(&self) -> u64 {
        self.next_call.fetch_add(1, Ordering::Relaxed)
    }

    /// Wants a newer list of clusters than it knows: whoever has it is about to tell.
    pub(crate) fn wants_list(&self, epoch: u64) {
        tracing::debug!(epoch, "another cluster works by a newer list of clusters");
        self.list_changed.notify_one();
    }

    /// Counts calls that wait here.
    pub(crate) fn waits(&self, more: i64) {
        self.waiting.fetch_add(more, Ordering::Relaxed);
    }

    /// Calls that wait here.
    pub(crate) fn waiting(&self) -> i64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Hands an order to the control plane. What does not fit is repeated.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.try_send(order);
    }

    /// Lets the driver look at `at`, if it would look later.
    pub(crate) fn look_at(&self, at: Option<Timestamp>) {
        if at.is_some_and(|at| at.as_nanos() < self.look_at.load(Ordering::Acquire)) {
            self.look.notify_one();
        }
    }
}
