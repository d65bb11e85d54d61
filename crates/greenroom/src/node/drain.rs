//! How a node leaves in order: it stops taking what is new, hands over what it has, and waits for what runs.
//!
//! 1. It says in the membership table that it is about to leave, so that nobody places anything on it and its ranges of the
//!    directory go to others.
//! 2. Its activations end at their turn boundaries. What waits at them, and what still comes for them, goes on to where
//!    their actors are next.
//! 3. It takes no more calls from outside, and waits until those that it has taken are answered.
//! 4. It says farewell to the other nodes, stops, and leaves the table.
//!
//! All within one bound: what has not ended by then is cut, and said.

use std::sync::Arc;
use std::time::Duration;

use greenroom_world::{Stage, Timestamp};
use tokio::sync::oneshot;

use crate::cluster::Order;
use crate::here::Here;
use crate::here::parts::Part;
use crate::observe::events::Happened;
use crate::shard::{Item, STUCK_AFTER, Shard};

/// How a drain went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Activations that the node had when the drain began.
    pub activations: u64,
    /// Activations that had not ended in time, spawned actors among them. Callers of what ran there do not know its outcome.
    pub cut: u64,
    /// Some of those that were cut in the middle of a turn or a hook.
    pub cut_names: Vec<String>,
    /// Calls that this node or its callers outside made, and that were not answered in time.
    pub calls_cut: u64,
}

impl Drained {
    /// Whether everything ended in time.
    pub fn is_whole(&self) -> bool {
        self.cut == 0 && self.calls_cut == 0
    }
}

/// Drains the node when it is asked to.
pub(super) struct Drains;

impl Part for Drains {
    fn drain(&self, here: &Arc<Here>) {
        if here.is_draining() {
            return;
        }
        let this = here.clone();
        let bound = here.config().drain_timeout;
        here.world().spawn(
            Stage::Control,
            Box::pin(async move {
                drain(&this, bound).await;
            }),
        );
    }
}

/// Drains the node and has it leave, within `bound`, once it is polled: from then on it goes to its end, whether somebody
/// waits for it or not.
pub(super) async fn begin(node: &Arc<Here>, bound: Duration) -> Drained {
    let (send, drained) = oneshot::channel();
    let this = node.clone();
    let draining = async move {
        // An error means that nobody waits any more.
        let _ = send.send(drain(&this, bound).await);
    };
    node.world().spawn(Stage::Control, Box::pin(draining));
    match drained.await {
        Ok(drained) => drained,
        Err(_) => {
            node.halted().await;
            Drained::default()
        }
    }
}

/// Drains the node. Who asks while it drains waits until it has left.
async fn drain(node: &Arc<Here>, bound: Duration) -> Drained {
    let mut drained = Drained { activations: node.activations(), ..Drained::default() };
    if !node.begin_drain() {
        node.closed().await;
        return drained;
    }
    let world = node.world();
    let until = world.now() + bound;
    let (name, activations) = (node.name(), drained.activations);
    tracing::info!(name, activations, ?bound, "this node drains: it hands over what it has, and leaves");
    node.happened(Happened::Draining { node: name.to_owned() });
    node.order(Order::Drain);
    let announced = (world.now() + ANNOUNCE_TIMEOUT).min(world.now() + bound / 4);
    wait(node, announced, || is_announced(node)).await;
    node.begin_hand_over();
    hand_over(node, until).await;
    node.begin_closing();
    let closing = world.now();
    wait(node, until, || calls(node) == 0 && node.requests() == 0).await;
    if node.config().http.is_some() {
        // Clients of the door hear that it closes before it does.
        wait(node, until.min(closing + CLOSING_TIME), || false).await;
    }
    drained.cut = left(node);
    drained.calls_cut = calls(node);
    if drained.is_whole() {
        farewell(node, until).await;
    }
    let left = on_shards(node, until.max(world.now() + ANSWER_TIMEOUT), |shard| shard.refuse_waiting()).await;
    if !drained.is_whole() {
        drained.cut_names = left.into_iter().flatten().collect();
        let Drained { cut, calls_cut, cut_names, .. } = &drained;
        tracing::warn!(cut, calls_cut, some = ?cut_names, "the drain has taken its time; what has not ended is cut");
    }
    leave(node, until).await;
    node.closed().await;
    drained
}

/// Whether every other node is known to know that this one is about to leave.
fn is_announced(node: &Here) -> bool {
    let view = node.view();
    let me = node.me();
    let others = || view.view.active().filter(|(other, _)| *other != me);
    !view.view.is_serving(me) && others().all(|(other, _)| node.loads().table_of(other) >= view.view.version)
}

async fn hand_over(node: &Arc<Here>, until: Timestamp) {
    let world = node.world();
    while left(node) > 0 && world.now() < until && !node.is_stopped() {
        for port in node.shards() {
            // A shard that has ended has nothing to hand over.
            let _ = port.push(Item::Run(Box::new(|shard| shard.give_up(0))));
        }
        // Again for those that were busy starting, and have become new ones meanwhile.
        wait(node, until.min(world.now() + HAND_OVER_AGAIN), || left(node) == 0).await;
    }
}

async fn farewell(node: &Arc<Here>, until: Timestamp) {
    let until = until.min(node.world().now() + FAREWELL_TIMEOUT);
    let quiet = || on_shards(node, until, |shard| !shard.has_parked() && !shard.has_undecided());
    while node.world().now() < until && quiet().await.contains(&false) {
        node.world().sleep_until(node.world().now() + POLL).await;
    }
    on_shards(node, until, Shard::say_farewell).await;
    while node.world().now() < until && !node.is_stopped() {
        let waits = on_shards(node, until, Shard::awaits_farewells).await.contains(&true);
        if !waits && calls(node) == 0 {
            return;
        }
        node.world().sleep_until(node.world().now() + POLL).await;
    }
}

/// Stops the shards, and takes the node out of the table.
async fn leave(node: &Arc<Here>, until: Timestamp) {
    let world = node.world();
    // Stateless workers have their hooks too.
    let until = until.max(world.now() + LAST_HOOKS);
    for port in node.shards() {
        let _ = port.push(Item::Run(Box::new(move |shard| shard.stop(until))));
    }
    // A closed inbox is a shard that has come to its end. One that keeps its thread never does, and is not waited for.
    let ended = || node.shards().iter().all(|port| port.is_closed());
    wait(node, until + STUCK_AFTER, || ended() || world.now() >= until && !node.stuck_shards().is_empty()).await;
    for (shard, stuck_for) in node.stuck_shards() {
        tracing::error!(
            shard,
            ?stuck_for,
            "a shard does not end, as a turn keeps its thread; the node leaves without it"
        );
    }
    node.order(Order::Leave);
    let leaving = world.sleep_until(world.now() + LEAVE_TIMEOUT);
    tokio::select! {
        biased;
        _ = node.halted() => {}
        () = leaving => node.halt("it was stopped"),
    }
}

/// Waits until `done`, at the latest at `until` or when the node has stopped.
async fn wait(node: &Here, until: Timestamp, done: impl Fn() -> bool) {
    let world = node.world();
    while world.now() < until && !node.is_stopped() && !done() {
        world.sleep_until((world.now() + POLL).min(until)).await;
    }
}

/// Returns the answers to `ask` of the shards that give one by `until`: neither those that have ended nor those that are stuck.
async fn on_shards<T: Send + 'static>(node: &Here, until: Timestamp, ask: fn(&Shard) -> T) -> Vec<T> {
    let mut answers = Vec::new();
    for port in node.shards() {
        let (send, answer) = oneshot::channel();
        let run = move |shard: &Shard| {
            // An error means that nobody waits any more.
            let _ = send.send(ask(shard));
        };
        if port.push(Item::Run(Box::new(run))).is_ok() {
            answers.push(answer);
        }
    }
    let mut said = Vec::new();
    for answer in answers {
        tokio::select! {
            biased;
            answer = answer => said.extend(answer),
            () = node.world().sleep_until(until) => {}
        }
    }
    said
}

/// Activations that have not ended, and spawned actors.
fn left(node: &Here) -> u64 {
    let spawned: u64 = node.gauges().iter().map(|gauges| gauges.spawned()).sum();
    node.directory().map_or(0, |directory| directory.active() as u64) + spawned
}

/// Calls that somebody waits for.
fn calls(node: &Here) -> u64 {
    node.gauges().iter().map(|gauges| gauges.calls()).sum()
}

/// Time for the cluster to hear that the node is about to leave. Who has not heard places what is handed back again.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which what has not ended is asked again.
const HAND_OVER_AGAIN: Duration = Duration::from_millis(200);
/// Time that the door answers everybody that it closes.
const CLOSING_TIME: Duration = Duration::from_millis(250);
/// Time for the other nodes to take leave.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the shards to answer a drain whose bound is over.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the hooks of stateless workers.
const LAST_HOOKS: Duration = Duration::from_millis(500);
/// Time to tell the table that the node leaves.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(5);
