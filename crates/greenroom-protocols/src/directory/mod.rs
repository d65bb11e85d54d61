//! The directory: within a cluster, which node hosts an actor (Orleans §3.4; MSR-TR-2014-41). At most one does.
//! Pure: no clock, no I/O, no randomness.
//!
//! Actors hash into [`RANGES`] ranges, each owned by one active node of a view by rendezvous hashing. A node that does not
//! know where an actor is sends the *call* to the owner of its range, which [resolves](Range::resolve) it, places and
//! [grants](Range::grant) it if it is nowhere, and forwards the call with the [`Grant`]. The host activates the actor
//! only if it [accepts](Range::accept) the grant.
//!
//! - **Epochs.** Each grant of an absent actor carries an epoch that rises over all owners of the range: the version of
//!   the owner's view in its upper half. A host remembers the highest epoch that it has released in the range, its
//!   *floor*, and refuses a grant at or below it: so a grant that was delayed until the activation had come and gone
//!   activates nothing. The floor rises *before* the release is sent, and a release removes only the entry with exactly
//!   its node and epoch (D5).
//! - **Tenures.** A host accepts a grant only if, in the host's own view, the grantor owns the range and has done so without a
//!   break since the view in which it granted. If the grant's view is newer the host is behind and must catch up; if it is older
//!   than the tenure, the grantor must. A version that a node skipped counts: whoever lived and died between two views may
//!   have owned the range in between, and then the same owner's tenure begins anew.
//! - **Recovery.** A new owner, or one whose tenure begins anew, starts empty and lets absent actors wait until every active node of its view
//!   has reported its activations of the range from that view or a later one, and until the leases of the dead that have
//!   not reported are over. What is reported is served at once. An actor on a node that died waits for that node's lease.
//!
//! - **Moves.** An actor that goes to another host with its state is nowhere until the owner has given it to the one or to
//!   the other, by compare-and-swap on its epoch; see `moves`. Both report what they hold, and drop it only on the word of the owner of
//!   their own view: a former owner may have given it to the other, which could not accept that any more. Who holds the state judges the grant by the floor as it was when it began to:
//!   later it may have risen by another actor's end, and the grant may be the answer to a second question, its first one lost.
//!
//! This is one mechanism where the design names two (the old owner's snapshot, and registration anew after a crash): the
//! old owner, alive or dead, is not asked, because the hosts know best. A report is a few entries a node and range, it is
//! idempotent, and a hand-off that is interrupted by a crash needs no case of its own. D3 cannot happen, for there is no
//! registration that could reach the old owner: what it granted late is refused by the host or reported by it.
//!
//! The async side holds one [`Range`] for each range behind one mutex, together with this node's activations of the range, so
//! that accepting a grant and taking down the activation, and taking in a view and listing the activations, are each one step.

mod host;
mod moves;
mod owner;
mod range;
mod tenure;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use host::{Acceptance, Host};
pub use moves::{Decision, Move};
pub use owner::Owner;
pub use range::Range;
pub use tenure::owner;

use crate::node::{NodeId, View};
use crate::time::Timestamp;

/// How many ranges there are: a fixed number, part of the protocol.
pub const RANGES: u16 = 128;

/// One range of the directory, below [`RANGES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RangeId(pub u16);

/// The range of an actor whose identity hashes to `hash`. Every node must hash alike.
pub const fn range_of(hash: u64) -> RangeId {
    RangeId((hash >> (u64::BITS - RANGES.ilog2())) as u16)
}

/// An activation's epoch: within a range a later grant has a higher one, whoever granted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after `self` for an owner whose view has this version.
    pub(crate) fn next(self, version: u64) -> Epoch {
        Epoch(self.0.saturating_add(1).max(version << 32))
    }
}

/// Where an actor is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Placed {
    /// The host.
    pub node: NodeId,
    /// The activation's epoch.
    pub epoch: Epoch,
}

/// The owner's leave to host an actor; travels with each call that the owner forwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// The host and the epoch.
    pub placed: Placed,
    /// The owner that says so.
    pub by: NodeId,
    /// The version of its view when it said so.
    pub view: u64,
}

/// What the owner of a range knows of an actor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resolution {
    /// It is, or was last granted, there: forward the call with this grant.
    At(Grant),
    /// It is nowhere: place it, then [grant](Range::grant) it.
    Absent,
    /// Not known yet: ask again on [`Action::Ready`], or at `until` if that is given.
    Wait {
        /// When the dead host's lease is over.
        until: Option<Timestamp>,
    },
    /// This node does not own the range; that one does, as far as it knows.
    NotOwner(Option<NodeId>),
}

/// What happened to one range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<K> {
    /// Membership published this view.
    View(Arc<View>),
    /// A host reported its activations.
    Report(Report<K>),
    /// The owner asks for our activations.
    Asked {
        /// The asker.
        from: NodeId,
        /// The version that it needs them from, or a later one.
        view: u64,
    },
    /// A host released an actor, or refused a grant as stale.
    Released(Released<K>),
    /// The deadline came.
    Tick,
}

/// What must be done for one range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<K> {
    /// Send our report to the range's owner.
    Report {
        /// The owner.
        to: NodeId,
        /// What we host.
        report: Report<K>,
    },
    /// Ask a host for its report.
    AskReport {
        /// The host.
        from: NodeId,
        /// The range.
        range: RangeId,
        /// Our view's version: it must report from that or a later one.
        view: u64,
        /// The node to ask through, as the way between the two may be cut; nothing for the direct way.
        via: Option<NodeId>,
    },
    /// Tell a host to deactivate this: a later activation of the actor is elsewhere.
    Deactivate {
        /// The host.
        node: NodeId,
        /// The actor.
        key: K,
        /// The epoch of the activation to end.
        epoch: Epoch,
    },
    /// What was answered with `Wait` and no time may be asked again.
    Ready,
}

/// All that one host has of one range.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Report<K> {
    /// The host.
    pub from: NodeId,
    /// The range.
    pub range: RangeId,
    /// The version of the host's view when it listed them.
    pub view: u64,
    /// Its activations, and those whose states have left it and that the owner has not decided.
    pub activations: Vec<(K, Epoch)>,
    /// States that have come to it and that the owner has not decided, by the activations that they were.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub in_transit: Vec<(K, Placed)>,
}

/// Actors that a node lists for a [`Report`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostedActors<K> {
    /// See [`Report::activations`].
    pub activations: Vec<(K, Epoch)>,
    /// See [`Report::in_transit`].
    pub in_transit: Vec<(K, Placed)>,
}

impl<K> Default for HostedActors<K> {
    fn default() -> Self {
        Self { activations: Vec::new(), in_transit: Vec::new() }
    }
}

impl<K> From<Vec<(K, Epoch)>> for HostedActors<K> {
    fn from(activations: Vec<(K, Epoch)>) -> Self {
        Self { activations, in_transit: Vec::new() }
    }
}

/// An actor that a host released.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Released<K> {
    /// The actor.
    pub key: K,
    /// Where it was.
    pub placed: Placed,
}
