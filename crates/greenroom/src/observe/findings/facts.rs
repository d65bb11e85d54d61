//! What a node knows of itself and its cluster at a moment, of what is published anyway.

use std::time::Duration;

use crate::shard::waits::LongTurn;

/// What the checks look at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The name of the node that looks.
    pub(crate) node: String,
    /// The members of the cluster, this one among them.
    pub(crate) members: Vec<Member>,
    /// Its lease; `None` for a node that needs none, or has not joined yet.
    pub(crate) lease: Option<Lease>,
    /// The address that other nodes are told, and why it does not lead back to this node, if so.
    pub(crate) unreachable: Option<(String, String)>,
    /// Why the table's store does not answer, if so.
    pub(crate) table_failing: Option<String>,
    /// The node's stores that are on disks of its machine.
    pub(crate) disks: Vec<Disk>,
    /// The node's threads, in their order.
    pub(crate) shards: Vec<Shard>,
    /// The methods of the program's kinds that were called here.
    pub(crate) methods: Vec<Method>,
    /// Turns that have run for longer than `long_turn`.
    pub(crate) long_turns: Vec<LongTurn>,
    /// Messages of reliable actors that are parked in the partitions that this node owns.
    pub(crate) parked: u64,
    /// Ticks of reminders that were refused for good in the last minute, about.
    pub(crate) ticks_refused: f64,
    /// Ticks of reminders that failed in all their attempts in the last minute, about, and the reminder that did so last.
    pub(crate) ticks_failed: (f64, String),
    /// Events of topics that were not delivered to a subscriber in the last minute, about, and the reason of the last one.
    pub(crate) deliveries_failed: (f64, String),
    /// How late the tick of a reminder is that is late longest.
    pub(crate) tick_late: Duration,
    /// Saves of states of the last minute, about, and those that took over a second.
    pub(crate) saves_slow: Share,
    /// The same, and those that met a conflict.
    pub(crate) saves_in_conflict: Share,
    /// The other clusters.
    pub(crate) clusters: Vec<Cluster>,
    /// Actors that were activated here in the last minute, about, while not all clusters answered.
    pub(crate) doubtful: f64,
    /// Instances that were found to be duplicates in the last minute, about.
    pub(crate) duplicates: f64,
    /// `None` where the system does not tell.
    pub(crate) memory: Option<Memory>,
    /// `None` for a node without certificates.
    pub(crate) certificate: Option<Certificate>,
    /// What the nodes say of their kinds.
    pub(crate) kinds: Vec<Kind>,
    /// The outlets of each node that can own partitions of reliable actors.
    pub(crate) outlets: Vec<(String, Vec<String>)>,
    /// Kinds that hosts have offered and that no node had when they were called; and how often they were in the last minute, about.
    pub(crate) missed: Vec<(String, f64)>,
    /// Kinds of hosts whose operations were refused in the last minute, about, though nobody awaited the outcome; and the last reason.
    pub(crate) operations_refused: Vec<(String, f64, String)>,
}

/// The disk of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    /// The store's purpose.
    pub(crate) store: String,
    /// Its URL.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) log_bytes: u64,
    pub(crate) since_checkpoint: Duration,
    pub(crate) free_bytes: u64,
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Standing {
    Joining,
    #[default]
    Active,
    Draining,
    Left,
    Dead,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) standing: Standing,
    /// Why it is dead.
    pub(crate) why: Option<String>,
    /// How long it has not answered this node.
    pub(crate) silent_for: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    pub(crate) left: Duration,
    pub(crate) length: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    /// The part of the last second that its thread was busy.
    pub(crate) busy: f64,
    pub(crate) activations: u64,
    /// Thousandths of outside calls that it turns away.
    pub(crate) shedding: u32,
    /// How long it has been in one go without looking at anything else.
    pub(crate) in_one_go: Duration,
    /// A method that has kept it from others before, with how long each time.
    pub(crate) stalled_by: Option<(String, Duration)>,
}

/// So many, and of them so many that are meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) all: f64,
    pub(crate) of_them: f64,
}

impl Share {
    pub(crate) fn value(self) -> f64 {
        if self.all > 0.0 { self.of_them / self.all } else { 0.0 }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Method {
    pub(crate) kind: String,
    pub(crate) method: String,
    /// Turns of the last minute, about, and those that failed.
    pub(crate) failed: Share,
    /// The same of the last hour.
    pub(crate) failed_usually: Share,
    /// Messages of the last minute, about, and those that waited for over a second.
    pub(crate) waited: Share,
    /// Time that its turns took in the last minute, about.
    pub(crate) took: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) answers: bool,
    /// True until it is in force in the list: it owns nothing yet.
    pub(crate) joining: bool,
    pub(crate) trouble: Option<String>,
    /// By how many seconds its clock is ahead of this one's, if by more than a minute.
    pub(crate) clock_ahead_s: Option<i64>,
}

/// Bytes of this process in memory, and how many it may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) limit: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Certificate {
    pub(crate) left: Duration,
}

/// What a node says of a kind that it hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) version: u16,
    pub(crate) placement: String,
    pub(crate) home: String,
    pub(crate) instances: String,
}
