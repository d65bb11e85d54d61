//! The loops of a node's part in a multi-cluster.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_world::{BoxFuture, Listener, Stage, Timestamp};

use super::mesh::Mesh;
use super::wandering::wander;
use super::word::News;
use super::{Geo, adaptive, gateway};
use crate::cluster::Order;
use crate::here::Here;

/// Starts the node's part, once it has joined its cluster.
pub(crate) fn start(node: &Arc<Here>, geo: &Arc<Geo>, gateway: Option<Box<dyn Listener>>) {
    let _ = geo.mesh.set(Mesh::new(geo, node));
    let world = node.world();
    if let Some(listener) = gateway {
        world.spawn(Stage::Control, Box::pin(gateway::accept(geo.clone(), node.clone(), listener)));
    }
    let spawn = |part: BoxFuture<()>| {
        world.spawn(Stage::Control, Box::pin(node.clone().vital("its part in the multi-cluster", part)));
    };
    spawn(Box::pin(tick(geo.clone(), node.clone())));
    spawn(Box::pin(spread(geo.clone(), node.clone())));
    spawn(Box::pin(accept_lists(geo.clone(), node.clone())));
    spawn(Box::pin(adaptive::report(geo.clone(), node.clone())));
    spawn(Box::pin(wander(geo.clone(), node.clone())));
    if geo.listing.is_some() {
        spawn(Box::pin(look_at_listing(geo.clone(), node.clone())));
    }
}

/// Lets machines go on when they are due.
async fn tick(geo: Arc<Geo>, node: Arc<Here>) {
    let world = node.world();
    while !node.is_stopped() {
        let Some(directory) = node.directory() else { return };
        // What is planned from here on is looked at, or wakes this.
        geo.look_at.store(u64::MAX, Ordering::Release);
        let due = directory.deadline_abroad().unwrap_or(Timestamp::NEVER);
        geo.look_at.store(due.as_nanos(), Ordering::Release);
        if due > world.now() {
            let far = due.min(world.now() + LOOK_EVERY);
            tokio::select! {
                biased;
                () = geo.look.notified() => {}
                () = world.sleep_until(far) => {}
            }
        }
        directory.tick_abroad(&geo, world.now());
        geo.tick_adaptive(&node);
    }
}

/// Tells the others what this node works by, and keeps connections to the other clusters.
async fn spread(geo: Arc<Geo>, node: Arc<Here>) {
    let world = node.world();
    let mut doubts_at = world.now();
    while !node.is_stopped() {
        let list = geo.clusters();
        geo.look_at_term(&node);
        geo.settle(&node);
        geo.finish_changes(&node).await;
        if let Some(mesh) = geo.mesh.get() {
            mesh.keep(list.configuration().clusters.into_keys().filter(|id| *id != geo.me() && geo.answers_to(*id)));
        }
        node.order(Order::Clusters(Box::new(News::of(&geo, &node))));
        if doubts_at <= world.now() {
            doubts_at = world.now() + DOUBTS_EVERY;
            node.order(Order::Doubtful);
        }
        tokio::select! {
            biased;
            () = geo.list_changed.notified() => {}
            () = world.sleep_until(world.now() + SPREAD_EVERY) => {}
        }
    }
}

/// Writes lists that are heard to the membership table, and works by them.
async fn accept_lists(geo: Arc<Geo>, node: Arc<Here>) {
    let world = node.world();
    while !node.is_stopped() {
        geo.accept_heard(&node).await;
        tokio::select! {
            biased;
            () = geo.term.to_accept.notified() => {}
            () = world.sleep_until(world.now() + SPREAD_EVERY) => {}
        }
    }
}

/// Looks at the list in its store: clusters that hear nobody else learn of changes there.
async fn look_at_listing(geo: Arc<Geo>, node: Arc<Here>) {
    let world = node.world();
    while !node.is_stopped() {
        geo.look_at_listing(&node).await;
        let half = geo.config.lost_after() / 2;
        let every = if half.is_zero() { LIST_EVERY } else { LIST_EVERY.min(half / 2) };
        world.sleep_until(world.now() + every).await;
    }
}

/// Longest time between two looks at what is due.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Time between two looks at the list in its store.
const LIST_EVERY: Duration = Duration::from_secs(10);
/// Time between two tellings of what is in doubt.
const DOUBTS_EVERY: Duration = Duration::from_secs(10);
/// Time between two tellings.
const SPREAD_EVERY: Duration = Duration::from_secs(2);
