//! What all parts of a node share: its world, its shards, what it hosts, and what it knows of its cluster.

pub(crate) mod built_in;
mod by_kind;
mod dealer;
mod descriptions;
mod ending;
mod fence;
pub(crate) mod figures;
pub(crate) mod foreign;
pub(crate) mod gate;
pub(crate) mod halt;
pub(crate) mod heat;
pub(crate) mod history;
pub(crate) mod kinds;
pub(crate) mod location;
pub(crate) mod meter;
pub(crate) mod node;
pub(crate) mod parts;
pub(crate) mod port;
pub(crate) mod registrar;
pub(crate) mod reliable;
pub(crate) mod samples;
pub(crate) mod stores;
pub(crate) mod strangers;
pub(crate) mod tail;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::node::{Member, NodeId};
use greenroom_protocols::reminders::Wall;
use greenroom_protocols::state_versions;
use greenroom_security::link::Links;
use greenroom_world::World;
use tokio::sync::watch;

use self::dealer::Dealer;
use self::figures::{Figure, Figures};
use self::halt::Halt;
use self::kinds::Kinds;
use self::parts::{Part, Parts};
use self::stores::Stores;
use self::strangers::Strangers;
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::view::ClusterView;
use crate::node::config::Config;
use crate::observe::events::Events;
use crate::pids::dead_letters::Office;
use crate::shard::underway::Way;
use crate::shard::{Gauges, ShardId, ShardPort};
use crate::state::early::Claim;
use crate::stream::backlog::Backlog;
use crate::time::tick::Ticked;

/// A node's inside.
pub(crate) struct Here {
    world: Arc<dyn World>,
    config: Config,
    name: String,
    advertised: String,
    kinds: Kinds,
    shards: Vec<ShardPort>,
    gauges: Vec<Gauges>,
    /// Set once the table has given this node an id.
    me: OnceLock<NodeId>,
    /// What the floors above keep.
    parts: Parts,
    /// A random number of this incarnation, for the keys of its spawned actors.
    birth: u32,
    dead_letters: Office,
    view: RwLock<Arc<ClusterView>>,
    /// Nanoseconds of the world's clock from which on no turn may start.
    fence: AtomicU64,
    stores: Stores,
    links: Arc<Links>,
    /// Why the node has stopped, once it has.
    halted: watch::Sender<Option<Halt>>,
    /// Sockets that somebody may still come in by.
    entrances: watch::Sender<usize>,
    stopped: AtomicBool,
    /// Whether this node was told to stop, and drains soon.
    leaving_soon: AtomicBool,
    /// Whether this node drains, whoever asked for it.
    draining: AtomicBool,
    /// Whether it activates nothing any more.
    handing_over: AtomicBool,
    /// Whether it takes no calls from outside any more.
    closing: AtomicBool,
    /// Requests that the HTTP door works on.
    requests: AtomicU64,
    dealer: Dealer,
    outside_calls: AtomicU32,
    worker_epochs: AtomicU64,
    strangers: Strangers,
    backlog: Arc<Backlog>,
    events: Events,
}

impl Here {
    #[expect(clippy::too_many_arguments, reason = "the parts of a node, put together in one place")]
    pub(crate) fn new(
        world: Arc<dyn World>,
        config: Config,
        name: String,
        advertised: String,
        kinds: Kinds,
        shards: Vec<ShardPort>,
        stores: Stores,
        links: Links,
        parts: Parts,
    ) -> Self {
        let gauges = shards.iter().map(|_| Gauges::default()).collect();
        // 0 stands for any.
        let birth = (world.random() as u32).max(1);
        let backlog = Backlog::new(config.backlog_len_max);
        Self {
            birth,
            dead_letters: Office::default(),
            world,
            config,
            name,
            advertised,
            kinds,
            shards,
            gauges,
            me: OnceLock::new(),
            parts,
            view: RwLock::default(),
            fence: AtomicU64::new(NEVER_OPEN),
            stores,
            links: Arc::new(links),
            halted: watch::Sender::new(None),
            entrances: watch::Sender::new(0),
            stopped: AtomicBool::new(false),
            leaving_soon: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            handing_over: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            dealer: Dealer::default(),
            outside_calls: AtomicU32::new(0),
            worker_epochs: AtomicU64::new(0),
            strangers: Strangers::default(),
            backlog,
            events: Events::default(),
        }
    }

    pub(crate) fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What other nodes dial.
    pub(crate) fn advertised(&self) -> &str {
        &self.advertised
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The name of the protocol of a kind that itself says `own`.
    pub(crate) fn protocol_of(&self, kind: &str, own: &str) -> String {
        self.config.protocol_of(kind, own)
    }

    /// How connections to other nodes are made.
    pub(crate) fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Wall {
        Wall(0) + self.world.wall()
    }

    pub(crate) fn shards(&self) -> &[ShardPort] {
        &self.shards
    }

    pub(crate) fn gauges(&self) -> &[Gauges] {
        &self.gauges
    }

    pub(crate) fn spin(&self) -> Duration {
        self.world.spin()
    }

    /// This incarnation's id; 0, which no node has, before it joined.
    pub(crate) fn me(&self) -> NodeId {
        self.me.get().copied().unwrap_or(NodeId(0))
    }

    /// Takes in the id that the table has given to this incarnation.
    pub(crate) fn be(&self, me: NodeId) {
        self.me.get_or_init(|| me);
    }

    /// What a feature that each node has keeps here.
    ///
    /// # Panics
    /// If the node was put together without it.
    #[inline]
    pub(crate) fn part<P: Part>(&self) -> &P {
        self.find_part().unwrap_or_else(|| panic!("a node has no {}", std::any::type_name::<P>()))
    }

    /// What a feature keeps here, if the node has it.
    #[inline]
    pub(crate) fn find_part<P: Part>(&self) -> Option<&P> {
        self.parts.find()
    }

    /// How messages find their actors.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &dyn Way> {
        self.parts.ways()
    }

    /// What all features keep here.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &dyn Part> {
        self.parts.all()
    }

    /// What they have measured.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let mut figures = Figures::default();
        self.parts().for_each(|part| part.report(&mut figures));
        figures.into_all()
    }

    /// Whether the tick of a reminder of `id` is still what the reminder wants.
    ///
    /// # Errors
    /// Why that cannot be known.
    pub(crate) async fn is_due(self: &Arc<Self>, id: &ActorId, ticked: &Ticked) -> Result<bool, String> {
        match self.parts().find_map(|part| part.is_due(self, id, ticked)) {
            Some(due) => due.await,
            None => Ok(false),
        }
    }

    /// What one of the parts says to who looks and asks for `what`, choosing by `by`.
    pub(crate) fn shows(&self, what: &str, by: &serde_json::Value) -> Option<serde_json::Value> {
        self.parts().find_map(|part| part.shows(what, by))
    }

    /// The record of this key, if it is being read for the actor and nobody has claimed it: for its activation's first look.
    pub(crate) fn claim(&self, id: &ActorId, epoch: Epoch, key: &str) -> Option<Claim> {
        self.parts().find_map(|part| part.claim(id, epoch, key))
    }

    /// Tells this incarnation from all others, also where the table is not kept.
    pub(crate) fn birth(&self) -> u32 {
        self.birth
    }

    /// What waits for slow consumers of streams and topics.
    pub(crate) fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// Who has come to the listeners and was not let in.
    pub(crate) fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    /// What has happened here.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn dead_letters(&self) -> &Office {
        &self.dead_letters
    }

    // The cluster.

    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The version in force of the state called `state` of `kind`. Other clusters do not say what they read, so in a multi-cluster
    /// it stays the first: who can write an earlier version than its own does so.
    pub(crate) fn in_force(&self, kind: Kind, state: &str) -> u8 {
        match self.config.geo {
            Some(_) => state_versions::FIRST,
            None => self.view().view.states.of(kind.name(), state),
        }
    }

    pub(crate) fn set_view(&self, view: Arc<ClusterView>) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view.clone();
        self.parts.all().for_each(|part| part.viewed(&view));
    }

    /// Whether `node` is in the cluster and not dead, as far as is known here.
    pub(crate) fn is_member(&self, node: NodeId) -> bool {
        self.view().member(node).is_some()
    }

    /// Whether `node` has been in the cluster and is no more, or is dead.
    pub(crate) fn is_lost(&self, node: NodeId) -> bool {
        let view = self.view();
        view.member(node).is_none() && node.0 < view.view.next_node
    }

    pub(crate) fn member(&self, node: NodeId) -> Option<Member> {
        self.view().member(node).cloned()
    }

    // Activations.

    /// The epoch of a stateless worker: it is compared with nobody's.
    pub(crate) fn next_worker_epoch(&self) -> Epoch {
        Epoch(self.worker_epochs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The shard for a new activation of `kind`: the one that is `near`, unless the one whose turn it is is much emptier and may be
    /// `chosen`, or the kind is not to be had on every shard.
    pub(crate) fn choose_shard(&self, kind: &str, near: u16, may_be_chosen: bool) -> ShardId {
        let near = if may_be_chosen { self.dealer.choose(near, &self.gauges) } else { near };
        let beside = self.parts.all().find_map(|part| part.shard_beside(self, kind, near));
        self.shard(beside.unwrap_or(near))
    }

    pub(crate) fn shard(&self, index: u16) -> ShardId {
        self.shards[usize::from(index)].id
    }

    /// The shard that messages from outside come in by whose actor is on none yet.
    pub(crate) fn entrance(&self, hash: u64) -> ShardPort {
        self.shards[usize::from(self.dealer.entrance(hash, self.shards.len()))]
    }

    /// The shard whose turn it is to get something new.
    pub(crate) fn deal_shard(&self) -> u16 {
        self.dealer.deal(self.shards.len())
    }

    /// Activations on this node.
    pub(crate) fn activations(&self) -> u64 {
        self.gauges.iter().map(Gauges::activations).sum()
    }

    /// A number for a call from outside of all actors, that no other one of the last hour has.
    pub(crate) fn next_outside(&self) -> u32 {
        self.outside_calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a host may offer `kind` here, which the node does not have: one has, or the node takes hosts at all.
    pub(crate) fn may_be_offered(&self, kind: &str) -> bool {
        self.config().hosts.are_taken() || self.parts().any(|part| part.has_had(kind))
    }

    /// Whether `kind` is offered at this node, and the cluster does not know of it yet: it will at once.
    pub(crate) fn is_yet_to_come(&self, kind: Kind) -> bool {
        let offered = || self.parts().any(|part| part.is_offered(kind.name()));
        self.kinds().is_foreign(kind) && self.view().hosts(kind).is_none() && offered()
    }

    // Refusals.

    pub(crate) fn unknown_kind(&self, kind: &str) -> Refusal {
        if self.parts().any(|part| part.miss(kind)) {
            return Refusal::NoHost { kind: kind.to_owned(), had: 0, there: 0 };
        }
        Refusal::UnknownKind { kind: kind.to_owned(), near: self.view().near_kinds(kind) }
    }
}

/// The fence before the node was first admitted.
const NEVER_OPEN: u64 = 0;
/// The fence of a node that has stopped.
const CLOSED: u64 = 1;
