//! Membership: one table in a store with compare-and-swap says which nodes live (Orleans §3.2; MSR-TR-2014-41).
//! Pure: no clock, no I/O, no randomness.
//!
//! - **The fence.** A node renews a small lease record beside the table. A renewal gives it a fence of one lease length
//!   from when the renewal *began*, and only when a look at the table that began after the renewal succeeded shows the
//!   node active. So a node declared dead gets nothing for a late renewal (M1, M3). A turn starts only before the fence;
//!   when it passes, or the node reads itself dead, the machine says [`Action::Stop`].
//! - **The judgement.** No clocks are compared. A reader that first saw a lease's counter at `s`, and sees it unchanged
//!   after it saw the row dead, knows that the lease is over at `s` plus a length plus the drift bound by its own clock;
//!   had it changed, that much after the death was seen. This time is published beside the view.
//! - **Death.** Two fresh suspicions by different active nodes let anyone write *dead* where at least three are active;
//!   everywhere, one's own suspicion and a lease that ran out do. Two nodes alone cannot evict each other on suspicion
//!   (M2). The age of a suspicion counts from the reader's last look before it appeared; one that was there at first
//!   sight has no known age and does not count (M5). Nothing ever brings a dead row back.
//! - **Joining.** The joiner's row gets its id by compare-and-swap, which also declares dead what had its name: a node whose
//!   lease has run out. While that lease may last the joiner waits, and once it has seen it renewed twice it gives up: a
//!   second process with the name of a living node does not replace it. It becomes active
//!   against a table in which every active node has reached it (M4); of two joiners the second one finds a conflict and
//!   asks the first as well. A joiner that cannot be reached by a node whose lease has run out declares that one dead, so
//!   a cluster whose nodes all died starts again under new names.
//!
//! The async side performs the actions, each with its own time limit, and hands back the result with the action's `op`;
//! results of an operation that was given up are ignored.

mod machine;
mod plan;
mod sightings;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use machine::Membership;
pub use table::{Etag, LeaseRecord, Row, Suspicion, Table};

use crate::checks::Checks;
use crate::node::{KindInfo, NodeId, View};
use crate::time::Timestamp;

/// How leases are timed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeaseTimes {
    /// How long a renewal holds; 4 s by default.
    pub length: Duration,
    /// Time between renewals; 1 s by default.
    pub renew_every: Duration,
    /// How much faster one clock may run than another, in thousandths; 10 by default.
    pub drift_permille: u32,
}

impl LeaseTimes {
    /// The times of leases that a renewal holds for so `long`: renewed four times as often.
    pub fn of(long: Duration) -> Self {
        Self { length: long, renew_every: long / 4, ..Self::default() }
    }

    /// After this long by its own clock a reader knows that a lease of that `length`, its own or another's, is over.
    pub fn judged_over(&self, length: Duration) -> Duration {
        length + length * self.drift_permille / 1000
    }
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { length: Duration::from_secs(4), renew_every: Duration::from_secs(1), drift_permille: 10 }
    }
}

/// How a node takes part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Lease times; `None` where the table is in this process's memory, so that nobody can replace this node: the fence
    /// is then [`Timestamp::NEVER`].
    pub lease: Option<LeaseTimes>,
    /// Longest time between two looks at the table; 1 s by default.
    pub poll_every: Duration,
    /// Suspicions that evict where at least three nodes are active; 2 by default.
    pub votes: usize,
    /// How long a suspicion counts; 10 s by default.
    pub suspicion_expiry: Duration,
    /// How long a dead row stays after its lease is over; 60 s by default.
    pub dead_kept: Duration,
    /// Time before a failed store operation is tried again; 250 ms by default.
    pub retry_after: Duration,
    /// Time after which a store operation is given up as unknown; 2 s by default.
    pub store_timeout: Duration,
    /// The safety checks in force.
    #[doc(hidden)]
    pub checks: Checks,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Some(LeaseTimes::default()),
            poll_every: Duration::from_secs(1),
            votes: 2,
            suspicion_expiry: Duration::from_secs(10),
            dead_kept: Duration::from_secs(60),
            retry_after: Duration::from_millis(250),
            store_timeout: Duration::from_secs(2),
            checks: Checks::default(),
        }
    }
}

/// One store operation: a result that carries another number than the one awaited is ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u64);

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The deadline came, or nothing happened.
    Tick,
    /// The answer to [`Action::ReadTable`]. The leases must have been read after the table's read had returned.
    TableRead {
        /// The operation.
        op: OpId,
        /// The table, or `None` if there is no such record yet.
        table: Option<(Table, Etag)>,
        /// Every lease record there is.
        leases: BTreeMap<NodeId, (LeaseRecord, Etag)>,
    },
    /// A write or renewal succeeded.
    Written {
        /// The operation.
        op: OpId,
        /// The record's new state.
        etag: Etag,
    },
    /// A write or renewal was refused: the record is no longer what was expected.
    Conflict {
        /// The operation.
        op: OpId,
    },
    /// The store did not answer or failed; a write may have happened, now or later.
    StoreFailed {
        /// The operation.
        op: OpId,
    },
    /// The answer to [`Action::ProbeForJoin`], or the lack of one.
    JoinProbeAnswered {
        /// The member that was asked.
        node: NodeId,
        /// Whether it reached us when it dialled back.
        reachable: bool,
    },
    /// Failure detection suspects `node`.
    Suspected {
        /// The silent node.
        node: NodeId,
    },
    /// A peer knows this version of the table.
    HeardVersion(u64),
    /// Say in the table that this node is about to leave: nothing new is given to it. It stays active until it leaves.
    Drain,
    /// Say in the table that this node hosts these kinds from now on.
    Kinds(Vec<KindInfo>),
    /// Leave for good. Every turn must have been stopped.
    Leave,
}

/// What must happen now.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Read the table, then, when that has returned, every lease record; answer with [`Event::TableRead`].
    ReadTable {
        /// The operation.
        op: OpId,
    },
    /// Write the table if its record is still `expect` (`None`: if there is no record).
    WriteTable {
        /// The operation.
        op: OpId,
        /// What to write.
        table: Table,
        /// What the record must be.
        expect: Option<Etag>,
    },
    /// Write the lease record if it is still `expect` (`None`: if there is no record).
    RenewLease {
        /// The operation.
        op: OpId,
        /// What to write.
        record: LeaseRecord,
        /// What the record must be.
        expect: Option<Etag>,
    },
    /// Delete the lease record of a node whose row is gone. No answer is awaited; failing is harmless.
    DeleteLease {
        /// The node.
        node: NodeId,
    },
    /// Ask that member to dial us back, and answer with [`Event::JoinProbeAnswered`].
    ProbeForJoin {
        /// The member.
        node: NodeId,
        /// Its address.
        address: String,
        /// Our id, by which it asks for us.
        joiner: NodeId,
    },
    /// No turn may start at or after this time by our own clock.
    SetFence {
        /// The fence: [`Timestamp::NEVER`] without leases, the clock's origin once we leave.
        until: Timestamp,
    },
    /// The cluster as we now know it. The version never falls; it stays while only `freed` changes.
    Publish(Arc<View>),
    /// Start no turn any more, stop, and exit. Nothing follows.
    Stop(StopReason),
}

/// Why a node must stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StopReason {
    /// The table says that this node is dead: it was evicted, or its name joined anew after its lease had run out.
    DeclaredDead,
    /// The lease could not be renewed in time.
    LeaseRanOut,
    /// It left as asked.
    Left,
    /// It never joined, as this node has its name and renews its lease.
    NameTaken(NodeId),
}
