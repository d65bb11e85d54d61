//! A node: one process's part of a cluster.

pub(crate) mod builder;
#[cfg(feature = "tls")]
mod certificates;
pub(crate) mod config;
pub(crate) mod disks;
pub(crate) mod drain;
mod entering;
pub(crate) mod error;
mod facts;
pub(crate) mod inspect;
mod opening;
mod overview;
mod passing;
pub(crate) mod reachability;
mod security;
mod settings;
pub(crate) mod signals;
mod supervisor;
pub(crate) mod waits;

use std::time::Duration;

use futures_util::FutureExt;
use greenroom_world::Timestamp;

pub use self::config::{Config, ConsoleMode, KindConfig};
pub use self::drain::Drained;
pub use self::error::{Error, Result};
pub use self::inspect::{Brought, Inspected, Inspection, PastTurn, RunningTurn, WaitingMessage};
use self::signals::StopSignals;
use self::supervisor::Supervisor;
pub use self::waits::{LongTurn, Waits};
use crate::actor::key::{ActorId, Key, Kind};
use crate::blocking::{self, PoolStatus};
use crate::cluster::table::Health;
use crate::geo::{ClusterChange, ClustersUnchanged, MultiCluster};
use crate::here::Here;
use crate::here::figures::Figure;
pub use crate::here::node::Node;
use crate::locality::{self, ActorAdvice, Advice, MovedActor};
use crate::observe::events::{Event, Wanted};
use crate::observe::findings::{Finding, Findings};
use crate::pids::{self, DeadLetters, Spawned};
use crate::versioned::elsewhere::Post;

impl Node {
    /// The node's name.
    pub fn name(&self) -> &str {
        self.here().name()
    }

    /// Where messages of versioned states from other clusters come in.
    #[doc(hidden)]
    pub fn post(&self) -> &Post {
        self.here().versioned().post()
    }

    /// Where other nodes reach it.
    pub fn address(&self) -> &str {
        self.here().advertised()
    }

    /// Where its HTTP door is, if it has one, with the port that the system chose.
    pub fn http_address(&self) -> Option<String> {
        self.here().config().http.clone()
    }

    /// Where its gRPC door is, if it has one, with the port that the system chose.
    pub fn grpc_address(&self) -> Option<String> {
        self.here().config().grpc.clone()
    }

    /// `https` if its HTTP door has a certificate, else `http`.
    pub fn http_scheme(&self) -> &'static str {
        self.here().config().door_scheme()
    }

    /// Activations on this node.
    pub fn activations(&self) -> u64 {
        self.here().activations()
    }

    /// What has happened at the node, the last first: at most so many of its last 4096 events.
    pub fn events(&self, len_max: usize) -> Vec<Event> {
        self.here().events().last(&Wanted::default(), len_max).0
    }

    /// What this node finds wrong at itself and its cluster, the worst first; it looks once a second.
    pub fn findings(&self) -> Vec<Finding> {
        self.here().find_part::<Findings>().map(|findings| findings.last().to_vec()).unwrap_or_default()
    }

    /// What the node's features have measured: `/metrics` of the HTTP door shows the same under the same names.
    pub fn figures(&self) -> Vec<Figure> {
        self.here().figures()
    }

    /// What the optimiser of this node knows of who talks with whom: wishes and edges at most `top` a shard.
    pub fn advice(&self, top: usize) -> impl Future<Output = Advice> + Send {
        let node = self.here().clone();
        async move { locality::advice(&node, top).await }
    }

    /// What this node's pool of threads for what blocks has, and why.
    pub fn blocking_pool(&self) -> PoolStatus {
        blocking::status(self.here())
    }

    /// What it knows of one actor: `None` if that is on another node, or is not among those that are sent most.
    pub fn explain(&self, kind: &str, key: impl Into<Key>) -> impl Future<Output = Option<ActorAdvice>> + Send {
        let (node, id) = (self.here().clone(), Kind::known(kind).map(|kind| ActorId::unchecked(kind, key.into())));
        async move { locality::explain(&node, id?).await }
    }

    /// The actors that this node's optimiser has last moved, to other nodes or to other shards of this one, at most 1,024, the last one last.
    pub fn moved_actors(&self) -> Vec<MovedActor> {
        locality::moved(self.here())
    }

    /// Lets this node's optimiser take part in no exchange of actors, or go on. It is forgotten when the node stops; what an exchange that
    /// goes on has agreed is still done.
    pub fn pause_optimiser(&self, paused: bool) {
        locality::pause(self.here(), paused);
    }

    /// Names of the nodes that are active in the cluster, as far as this one knows, in the order in which they joined.
    pub fn members(&self) -> Vec<String> {
        self.here().view().view.active().map(|(_, member)| member.name.clone()).collect()
    }

    /// The multi-cluster that the node is in, as it sees it; `None` for a cluster that is alone.
    pub fn multi_cluster(&self) -> Option<MultiCluster> {
        let node = self.here();
        node.geo().map(|geo| geo.status(node))
    }

    /// Changes the list of clusters, one step at a time; it spreads to all of them by itself.
    ///
    /// # Errors
    /// Why it was not changed, and what helps.
    pub fn change_clusters<'a>(
        &'a self,
        change: &'a ClusterChange,
    ) -> impl Future<Output = Result<MultiCluster, ClustersUnchanged>> + Send + 'a {
        let node = self.here();
        async move {
            let geo = node.geo().ok_or(ClustersUnchanged::Alone)?;
            geo.change(node, change).await?;
            Ok(geo.status(node))
        }
        .boxed()
    }

    /// Connections that were closed at their first bytes: strangers, other clusters, other versions.
    pub fn refused_connections(&self) -> u64 {
        self.here().strangers().refused()
    }

    /// Connections between shards that were closed for a frame that could not be read.
    pub fn bad_frames(&self) -> u64 {
        self.here().strangers().bad_frames()
    }

    /// The spawned actors of this node: at most [`SPAWNED_LISTED_MAX`] of each of its shards.
    ///
    /// # Cancel safety
    /// Safe: nothing changes.
    pub fn spawned(&self) -> impl Future<Output = Vec<Spawned>> + Send {
        pids::list(self.here(), SPAWNED_LISTED_MAX).boxed()
    }

    /// The one-way messages that come to nothing on this node from now on: those to spawned actors that have ended, and
    /// those that were refused with nobody to tell.
    pub fn dead_letters(&self) -> DeadLetters {
        self.here().dead_letters().open()
    }

    /// What turns of reliable actors on this node would have committed otherwise after a failover, if they are [run
    /// again](crate::Reliability::rerun): the first 64 findings, each with its actor, its method, what differs, and what to do.
    /// Empty in a program whose volatile fields decide nothing that is kept, sent or answered.
    pub fn interference(&self) -> Vec<String> {
        self.here().reliable().differences()
    }

    /// Whether the node has stopped, by itself or because it was told to.
    pub fn is_stopped(&self) -> bool {
        self.here().is_stopped()
    }

    /// Waits until the node has stopped by itself, and says why: its lease ran out, or the cluster declared it dead.
    pub fn halted(&self) -> impl Future<Output = Error> + Send {
        let node = self.here();
        node.halted().map(move |halt| halt.error(node)).boxed()
    }

    /// Runs until Ctrl-C, SIGTERM or a SIGHUP that is not ignored, goes on serving for the configuration's `drain_delay` or until the next signal, and
    /// [drains](Self::drain). A drain that an operator asked for ends it as well.
    ///
    /// # Errors
    /// [`Error::Halted`] when the node stops by itself, and [`Error::Stuck`] when it has left without one of its shards.
    pub fn run_until_ctrl_c(self) -> impl Future<Output = Result<()>> + Send {
        async move { self.run_until(StopSignals::listen()?).await }.boxed()
    }

    pub(crate) async fn run_until(self, mut signals: StopSignals) -> Result<()> {
        let supervisor = Supervisor::of_process(self.here())?;
        supervisor.ready();
        tokio::select! {
            why = self.halted() => {
                supervisor.stopping();
                return if self.here().is_draining() { self.has_ended() } else { Err(why) };
            }
            () = signals.told() => {}
        }
        supervisor.stopping();
        self.serve_on(&mut signals).await;
        self.drain().await;
        self.has_ended()
    }

    /// Tells a program whose node has drained that a shard of it did not end.
    fn has_ended(&self) -> Result<()> {
        match self.here().stuck_shards().first() {
            None => Ok(()),
            Some((shard, stuck_for)) => Err(Error::Stuck { shard: *shard, seconds: stuck_for.as_secs() }),
        }
    }

    /// Serves on while load balancers hear that this node is about to leave.
    async fn serve_on(&self, signals: &mut StopSignals) {
        let node = self.here();
        let delay = node.config().drain_delay;
        if delay.is_zero() {
            return;
        }
        node.announce_leaving();
        tracing::info!(name = node.name(), ?delay, "this node was told to stop: it serves on, and then drains");
        tokio::select! {
            _ = self.halted() => {}
            () = signals.told() => {}
            () = node.world().sleep_until(node.world().now() + delay) => {}
        }
    }

    /// Stops in order, as [`drain`](Self::drain) does, within the configuration's `stop_timeout`.
    pub fn stop(&self) -> impl Future<Output = ()> + Send {
        let bound = self.here().config().stop_timeout;
        drain::begin(self.here(), bound).map(drop).boxed()
    }

    /// Hands over what the node has, and leaves the cluster, within the configuration's `drain_timeout`.
    ///
    /// The node gets nothing new. Its activations end at their turn boundaries, with their hooks; what waits for them, and what
    /// still comes, is forwarded to where their actors are next. Then it refuses calls from outside, which may be
    /// retried elsewhere, waits for those that it has taken, and leaves. What has not ended in time is cut, as the
    /// result says.
    ///
    /// # Cancel safety
    /// Nothing happens before the future is first polled. Dropping it after that ends nothing: the node drains on and leaves,
    /// and whoever calls this or [`stop`](Self::stop) again waits for that.
    pub fn drain(&self) -> impl Future<Output = Drained> + Send {
        let bound = self.here().config().drain_timeout;
        drain::begin(self.here(), bound).boxed()
    }
}

impl Here {
    /// Waits until this node is active in the cluster.
    pub(super) async fn joined(&self, table: &Health) -> Result<()> {
        let world = self.world().clone();
        let patience = JOIN_TIMEOUT.max(self.config().lease * JOIN_LEASES);
        let until: Timestamp = world.now() + patience;
        while !(self.fence_open() && self.takes_part()) {
            if self.is_stopped() {
                return Err(self.halted().await.error(self));
            }
            if world.now() >= until {
                return Err(Error::NotJoined {
                    cluster: self.config().cluster.clone(),
                    seconds: patience.as_secs(),
                    hint: self.join_hint(table),
                });
            }
            world.sleep_until(world.now() + JOIN_POLL).await;
        }
        Ok(())
    }

    /// What may keep this node from joining.
    fn join_hint(&self, table: &Health) -> String {
        let view = self.view();
        match view.view.called(self.name()).find(|(id, _)| *id != self.me()) {
            Some((_, other)) => format!(
                "a node called {:?} at {} is in the cluster; it may live until its lease has run out, which may be longer than \
                 this node's: wait for that, or take another name",
                self.name(),
                other.address
            ),
            None => {
                let table =
                    table.failing().map(|why| format!("its membership table's store, {}, fails: {why}", table.store()));
                table.or_else(|| self.links().last_failure()).unwrap_or_else(|| NOT_JOINED_HINT.to_owned())
            }
        }
    }
}

/// Spawned actors of one shard that [`Node::spawned`] lists.
pub const SPAWNED_LISTED_MAX: usize = 10_000;
/// Time for a node to become a member, and in its own leases: enough for a dead one's to run out before it.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);
const JOIN_LEASES: u32 = 3;
const NOT_JOINED_HINT: &str = "can its members reach it at its address, and it them?";
const JOIN_POLL: Duration = Duration::from_millis(5);
