//! Numbers for Prometheus, in its text format 0.0.4.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

use greenroom_protocols::node::{Member, NodeId};
use greenroom_store::DiskUsage;

use super::{Door, methods, status};
use crate::node::disks::StoreDisks;
use crate::observe::memory;
use crate::observe::standing::standing;

/// Everything that is measured.
pub(super) fn write(door: &Door) -> String {
    let node = &door.node;
    let view = node.view();
    let mut page = Page(String::new());
    page.family("greenroom_info", "gauge", "Version and name of the node.");
    let name = escaped(node.name());
    page.line("greenroom_info", &format!("version=\"{}\",node=\"{name}\"", env!("CARGO_PKG_VERSION")), 1);
    page.one("greenroom_up_seconds", "gauge", "Time since the door opened.", door.opened.elapsed().as_secs());
    page.one(
        "greenroom_ready",
        "gauge",
        "1 if the node is to be sent calls.",
        u8::from(status::not_ready(node).is_none()),
    );

    page.family("greenroom_members", "gauge", "Nodes in the membership table, by where they stand.");
    for label in ["joining", "active", "draining", "left", "dead"] {
        let stands = |(id, member): &(&NodeId, &Member)| standing(&view.view, **id, member) == label;
        let count = view.view.members.iter().filter(stands).count();
        page.line("greenroom_members", &format!("status=\"{label}\""), count);
    }
    page.one("greenroom_table_version", "gauge", "Version of the membership table.", view.view.version);

    let table = &door.table;
    let (answers, failures) = (table.answers(), table.failures());
    page.one("greenroom_table_answers_total", "counter", "Operations on the table's store that it answered.", answers);
    page.one("greenroom_table_failures_total", "counter", "Operations on the table's store that failed.", failures);
    let failing = u8::from(table.failing().is_some());
    page.one("greenroom_table_failing", "gauge", "1 if the last operation on the table's store failed.", failing);
    if let Some(since) = table.since_answer() {
        let help = "Time since the table's store last answered.";
        page.one("greenroom_table_seconds_since_answer", "gauge", help, since.as_secs_f64());
    }

    stores(&mut page, door);
    let entries = node.directory().map_or(0, |directory| directory.entries());
    page.one("greenroom_directory_entries", "gauge", "Actors in this node's part of the directory.", entries);

    let gauges = node.gauges();
    page.shards("greenroom_activations", "gauge", "Activations.", gauges.iter().map(|g| g.activations()));
    page.shards("greenroom_turns_total", "counter", "Turns begun.", gauges.iter().map(|g| g.turns()));
    page.shards("greenroom_calls_in_flight", "gauge", "Calls that turns wait for.", gauges.iter().map(|g| g.calls()));
    let refused = gauges.iter().map(|g| g.sends_refused());
    page.shards("greenroom_sends_refused_total", "counter", "One-way messages that were refused.", refused);
    let given_up = gauges.iter().map(|g| g.cancelled());
    page.shards(
        "greenroom_calls_cancelled_total",
        "counter",
        "Calls given up by their callers before they began.",
        given_up,
    );
    let dead = node.dead_letters().count();
    page.one(
        "greenroom_dead_letters_total",
        "counter",
        "One-way messages that came to nothing, with nobody to tell.",
        dead,
    );
    page.shards("greenroom_spawned_actors", "gauge", "Spawned actors.", gauges.iter().map(|g| g.spawned()));
    let restarts = gauges.iter().map(|g| g.restarts());
    page.shards("greenroom_restarts_total", "counter", "Spawned actors that were made anew after a failure.", restarts);
    let busy = gauges.iter().map(|g| g.busy_nanos() as f64 / 1e9);
    page.shards("greenroom_busy_seconds_total", "counter", "Time spent in turns and connections.", busy);
    let shed = gauges.iter().map(|g| g.shed().turned_away());
    page.shards("greenroom_calls_shed_total", "counter", "Calls that were turned away as work waits too long.", shed);
    let inboxes = node.shards().iter().map(|port| port.waiting());
    page.shards("greenroom_inbox_length", "gauge", "What other threads have handed over and is not taken up.", inboxes);

    methods::write(&mut page, node);

    for figure in node.figures() {
        let kind = if figure.only_rises() { "counter" } else { "gauge" };
        page.one(figure.name(), kind, figure.help(), figure.value());
    }

    page.one(
        "greenroom_bad_frames_total",
        "counter",
        "Frames from other nodes that were refused.",
        node.strangers().bad_frames(),
    );
    let refused = node.strangers().refused();
    page.one("greenroom_connections_refused_total", "counter", "Connections to the node's port refused.", refused);

    page.family("greenroom_http_requests_total", "counter", "Answers of the HTTP door, by status.");
    for (status, count) in door.answers() {
        page.line("greenroom_http_requests_total", &format!("status=\"{status}\""), count);
    }
    page.one("greenroom_http_connections", "gauge", "Connections of the HTTP door.", door.connections.len());
    let waiting = node.backlog().bytes() as u64;
    page.one("greenroom_backlog_bytes", "gauge", "Bytes that wait for slow consumers of streams and topics.", waiting);
    let gone = door.stalled.load(Ordering::Relaxed);
    page.one("greenroom_http_watchers_let_go_total", "counter", "Watchers let go, as too much waited for them.", gone);
    let refused = door.refused.load(Ordering::Relaxed);
    page.one("greenroom_http_connections_refused_total", "counter", "Connections that found no room.", refused);
    if let Some(certificates) = node.links().certificates() {
        let help = "Time for which the node's certificate is still valid.";
        page.one("greenroom_certificate_seconds_left", "gauge", help, certificates.current().seconds_left());
    }
    if let Some(bytes) = memory::resident() {
        page.one("process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM.", bytes);
    }
    page.0
}

pub(super) struct Page(String);

/// A figure of a store's disk, in the unit of its metric.
type DiskFigure = fn(&DiskUsage) -> f64;

/// Adds the stores that are on disks of this machine.
fn stores(page: &mut Page, door: &Door) {
    let seen = door.node.find_part::<StoreDisks>().map(StoreDisks::seen).unwrap_or_default();
    let families: [(&str, &str, DiskFigure); 4] = [
        ("greenroom_store_bytes", "Bytes of the store's file.", |usage| usage.bytes as f64),
        ("greenroom_store_log_bytes", "Bytes of the store's write-ahead log.", |usage| usage.log_bytes as f64),
        (
            "greenroom_store_seconds_since_checkpoint",
            "Time since this process last copied the whole log into the file, or opened it.",
            |usage| usage.since_checkpoint.as_secs_f64(),
        ),
        ("greenroom_store_free_bytes", "Bytes that can still be written on the store's disk.", |usage| {
            usage.free_bytes as f64
        }),
    ];
    for (name, help, value) in families.into_iter().filter(|_| !seen.is_empty()) {
        page.family(name, "gauge", help);
        for disk in seen.iter() {
            page.line(name, &format!("store=\"{}\"", escaped(&disk.store)), value(&disk.usage));
        }
    }
}

impl Page {
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn shards(&mut self, name: &str, kind: &str, help: &str, values: impl Iterator<Item = impl Display>) {
        self.family(name, kind, help);
        for (shard, value) in values.enumerate() {
            self.line(name, &format!("shard=\"{shard}\""), value);
        }
    }
}

/// A label's value as the format wants it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
