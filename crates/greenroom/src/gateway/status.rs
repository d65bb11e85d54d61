//! What a node says of itself and its cluster.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use greenroom_protocols::node::{End, KindInfo};
use serde_json::{Map, Value, json};

use super::Door;
use crate::cluster::table::Health;
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::hosts::Hosts;
use crate::node::SPAWNED_LISTED_MAX;
use crate::observe::memory;
use crate::observe::standing::standing;
use crate::pids;

/// Why the node is not to be sent requests, if so. One that was told to stop takes those that come for a while yet, and so does one
/// with a stuck shard, for the actors of its other shards.
pub(super) fn not_ready(node: &Here) -> Option<Cow<'static, str>> {
    let refused = refuses(node).or_else(|| node.is_leaving_soon().then_some(ABOUT_TO_LEAVE));
    refused.map(Cow::Borrowed).or_else(|| {
        let (shard, stuck_for) = node.stuck_shards().into_iter().next()?;
        let seconds = stuck_for.as_secs();
        Some(format!("shard {shard} has not finished a round for {seconds} s: a turn keeps its thread").into())
    })
}

/// Why the node takes no requests, if so.
pub(super) fn refuses(node: &Here) -> Option<&'static str> {
    if node.is_stopped() {
        Some("the node has stopped")
    } else if !node.view().view.is_active(node.me()) {
        Some("the node is not in the cluster yet")
    } else if !node.fence_open() {
        Some("the node's lease has run out; it starts no turn")
    } else if node.is_draining() {
        Some(ABOUT_TO_LEAVE)
    } else {
        None
    }
}

/// What can be called, for `GET /`.
pub(super) fn hosted(door: &Door) -> Value {
    let node = &door.node;
    let kinds: Vec<Value> = node
        .kinds()
        .methods()
        .filter(|(name, _)| !is_built_in(name))
        .map(|(name, methods)| {
            let methods: Vec<Value> = methods
                .iter()
                .map(|method| json!({ "name": method.name, "turn": if method.read { "read" } else { "exclusive" } }))
                .collect();
            json!({ "kind": name, "methods": methods })
        })
        .collect();
    let view = node.view();
    let elsewhere = view.view.active().flat_map(|(_, member)| member.kinds.iter().map(|kind| kind.name.clone()));
    let elsewhere: std::collections::BTreeSet<String> =
        elsewhere.filter(|name| !node.kinds().contains(name) && !is_built_in(name)).collect();
    json!({
        "node": node.name(),
        "cluster": node.config().cluster,
        "version": env!("CARGO_PKG_VERSION"),
        "call": "POST /{kind}/{key}/{method} with a JSON object of the method's arguments",
        "members": view.view.active().map(|(_, member)| &member.name).collect::<Vec<_>>(),
        "hosted_here": kinds,
        "hosted_elsewhere": elsewhere,
        "see_also": ["/openapi.json", "/-/kinds", "/healthz", "/readyz", "/metrics", "/-/status", "/-/pids"],
    })
}

/// The node's and the cluster's state, for `greenroom status`. Counts are totals since the node started.
pub(super) fn status(door: &Door) -> Value {
    let node = &door.node;
    let view = node.view();
    let me = node.me();
    let members: Vec<Value> = view
        .view
        .members
        .iter()
        .map(|(id, member)| {
            let activations = if *id == me { node.activations() } else { node.loads().of(*id) };
            json!({
                "id": id.0,
                "name": member.name,
                "status": standing(&view.view, *id, member),
                "why": view.view.ends.get(id).map(End::to_string),
                "address": member.address,
                "http": member.http,
                "kinds": member.kinds.iter().map(|kind| &kind.name).collect::<Vec<_>>(),
                "interfaces": member.kinds.iter().map(interface).collect::<Map<_, _>>(),
                "roles": member.roles,
                "activations": activations,
            })
        })
        .collect();
    let shards: Vec<Value> = node
        .gauges()
        .iter()
        .zip(node.shards())
        .map(|(gauges, port)| {
            json!({
                "activations": gauges.activations(),
                "spawned": gauges.spawned(),
                "restarts": gauges.restarts(),
                "turns": gauges.turns(),
                "calls": gauges.calls(),
                "sends_refused": gauges.sends_refused(),
                "busy_seconds": gauges.busy_nanos() as f64 / 1e9,
                "inbox": port.waiting(),
                "shed": gauges.shed().turned_away(),
                "shedding_per_mille": gauges.shed().share(),
            })
        })
        .collect();
    let turns: u64 = node.gauges().iter().map(|gauges| gauges.turns()).sum();
    let answers: std::collections::BTreeMap<String, u64> =
        door.answers().into_iter().map(|(status, count)| (status.to_string(), count)).collect();
    json!({
        "node": {
            "name": node.name(),
            "id": me.0,
            "version": env!("CARGO_PKG_VERSION"),
            "address": node.advertised(),
            "http": node.config().http,
            "uptime_seconds": door.opened.elapsed().as_secs_f64(),
            "ready": not_ready(node).is_none(),
        },
        "cluster": { "name": node.config().cluster, "table_version": view.view.version, "members": members },
        "table": table(&door.table),
        "activations": node.activations(),
        "spawned": node.gauges().iter().map(|gauges| gauges.spawned()).sum::<u64>(),
        "dead_letters": node.dead_letters().count(),
        "turns": turns,
        "shards": shards,
        "reminders": reminders(node),
        "hosts": hosts(node),
        "figures": figures(node),
        "reliable": node.journal().map(|_| reliable(node)),
        "bad_frames": node.strangers().bad_frames(),
        "connections_refused": node.strangers().refused(),
        "http": {
            "answers": answers,
            "connections": door.connections.len(),
            "connections_refused": door.refused.load(Ordering::Relaxed),
            "watchers_let_go": door.stalled.load(Ordering::Relaxed),
        },
        "backlog_bytes": node.backlog().bytes(),
        "resident_bytes": memory::resident(),
    })
}

/// The hosts that have a session here.
fn hosts(node: &Here) -> Vec<Value> {
    let shown = node.part::<Hosts>().shown().into_iter().map(|host| {
        json!({
            "name": host.name,
            "sdk": host.sdk,
            "from": host.from,
            "session": host.session,
            "age_seconds": node.wall().since(host.since).as_secs(),
            "seats": host.seats,
            "draining": host.draining,
            "kinds": host.kinds.iter().map(|(kind, version)| ((*kind).to_owned(), (*version).into())).collect::<Map<_, Value>>(),
        })
    });
    shown.collect()
}

/// What the node's features have measured, by the names of their metrics.
fn figures(node: &Here) -> Map<String, Value> {
    node.figures().iter().map(|figure| (figure.name().to_owned(), figure.value().into())).collect()
}

/// The version of a kind's interface, and the oldest one whose callers it serves.
fn interface(kind: &KindInfo) -> (String, Value) {
    (kind.name.clone(), json!({ "version": kind.version, "compatible": kind.compatible }))
}

/// The node's spawned actors, for `greenroom pids`.
pub(super) async fn pids(door: &Door) -> Value {
    let spawned = pids::list(&door.node, SPAWNED_LISTED_MAX).await;
    json!({ "node": door.node.name(), "spawned": spawned })
}

/// What this node does of the cluster's reminders.
fn reminders(node: &Here) -> Value {
    let counts = &node.calendar().counts;
    json!({
        "ranges": counts.ranges.load(Ordering::Relaxed),
        "loaded": counts.loaded.load(Ordering::Relaxed),
        "ticks": counts.ticks.load(Ordering::Relaxed),
        "retries": counts.retries.load(Ordering::Relaxed),
        "refused": counts.hopeless.load(Ordering::Relaxed),
        "failed": counts.failed.load(Ordering::Relaxed),
        "missed": counts.missed.load(Ordering::Relaxed),
    })
}

/// What this node's partitions of reliable actors do.
fn reliable(node: &Here) -> Value {
    let counts = node.reliable();
    json!({
        "partitions": counts.owned.load(Ordering::Relaxed),
        "of": node.config().reliable.partitions,
        "actors": counts.actors.load(Ordering::Relaxed),
        "waiting": counts.waiting.load(Ordering::Relaxed),
        "outgoing": counts.outgoing.load(Ordering::Relaxed),
        "commits": counts.commits.load(Ordering::Relaxed),
        "turns": counts.turns.load(Ordering::Relaxed),
    })
}

/// How the membership table's store has been answering this node.
fn table(health: &Health) -> Value {
    json!({
        "store": health.store(),
        "answers": health.answers(),
        "failures": health.failures(),
        "seconds_since_answer": health.since_answer().map(|since| since.as_secs_f64()),
        "failing": health.failing(),
    })
}

const ABOUT_TO_LEAVE: &str = "the node is about to leave";
