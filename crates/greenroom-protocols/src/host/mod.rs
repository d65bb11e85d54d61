//! The node's side of the host protocol: which host has the seat of an activation, and what of that host counts. Pure: no clock,
//! no I/O, no randomness.
//!
//! A *host* is a process, in any language, that runs turns of kinds which are not linked into the node; its stay at a node is a
//! *session*. An activation stays in the node and has a *seat* in a session. Two machines, for two threads: [`Sessions`] at the control
//! plane (greetings, leases, offers), and [`Lanes`] at each shard (seats and turns of its activations). What the first says to the
//! second ([`Word`]) comes in order, whenever that is. [`Pulse`] is the host's side of the lease.
//!
//! # States
//!
//! Session: greeting (5 s) → open → draining → gone; open or draining → *lost*, when its control lane breaks or its lease is over →
//! gone. It never comes back. Seat: making → ready → ending → free; or *held*, from the loss of its lane or session until it may
//! be given away. An activation whose seat is free again gets another when a turn waits for that. Turn: waiting for room or for a seat → sent → ended, or abandoned; a sent one *waits* while a request of its is open.
//!
//! # Rules
//!
//! Each stands against a trace; [`Checks`] takes them out one by one, for tests.
//!
//! - **L1** A held seat is given away after Released, LaneDropped, Goodbye, or a Hello that names the session as ended; when the host's
//!   process is known to be gone; or when its lease is over by the node's clock. Before that an activation does not go to another node either:
//!   what it carries there is what its Released has brought ([`LaneEvent::Carry`]).
//! - **L2, L6** The host looks at its lease before it begins or goes on with anything; the lease counts from when it sent the Alive,
//!   and it takes 0.99 of it ([`Pulse`]).
//! - **L3** What comes from a host counts if session, lane, seat and turn are live when it is handled.
//! - **L7** Numbers of seats and turns only rise, also when a lane is joined again.
//! - **L8** A turn with an open request gives back its place, and its bytes: it has evidently been read.
//! - **L12** The first digest of a kind's version holds while a session offers it; others are refused.
//! - **L15** Of turns that were sent and lost only those run again that may: reads, and reliable turns.
//! - **L16** Turns that wait for a seat or for room are untouched when their host is lost: no try is counted.
//! - **L18** A request may name a turn of its own lane only, and only while that is live.
//! - **L19** Streams end with their seat.
//! - **L20** A kind leaves the node's row [`Settings::grace`] after its last session, and the row changes at most once a second.
//! - **L23** An activation goes from one version of its kind to a newer one, never back; seats of an older version are left at turn
//!   boundaries as soon as a newer one serves the same callers.
//! - A host is told of no longer lease than the node itself has: what the cluster gives to others when the node's lease is over, no host
//!   of that node runs any more.
//! - A host that does not drop a broken lane within a lease of having been told gets no further lease: its seats cannot be held for ever.

mod checks;
mod event;
mod lane;
mod lanes;
mod offers;
mod place;
mod pulse;
mod sessions;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

pub use checks::Checks;
pub use event::{ControlAction, ControlEvent, LaneAction, LaneEvent, Word};
pub use lanes::{Lanes, Named};
pub use pulse::Pulse;
pub use sessions::Sessions;

/// A session's number: never given twice by a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

/// A shard of the node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shard(pub u32);

/// A seat's number, from 1, in one session and shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seat(pub u64);

/// A turn's number, from 1, in one session and shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TurnNumber(pub u64);

/// A stream's number, which its host gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stream(pub u64);

/// An activation, as its shard knows it; may be used again once it has [left](LaneAction::Left), was
/// [not made](LaneAction::NotMade) or found [no host](LaneAction::NoHost).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Activation(pub u64);

/// A turn, as its shard knows it: used once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cookie(pub u64);

/// A kind's name.
pub type KindName = Arc<str>;

/// A description's digest.
pub type Digest = Arc<str>;

/// A kind that a host offers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Offer {
    /// The kind.
    pub kind: KindName,
    /// The version of its interface, and the oldest one whose callers it serves.
    pub versions: crate::versions::Offer,
    /// The digest of its description.
    pub digest: Digest,
}

/// What a session takes at most.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// Seats of one shard.
    pub seats_max: u32,
    /// Turns of one lane that run; 16 times as many may be open, or wait for room.
    pub turns_max: u32,
    /// Bytes of turns on one lane that were sent and have not ended: one frame may go beyond it.
    pub bytes_max: u64,
    /// What its share of seats is by, beside other sessions; at least 1.
    pub weight: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { seats_max: 100_000, turns_max: 1_024, bytes_max: 8 << 20, weight: 1 }
    }
}

/// What a node's user sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// How long an answered Alive lets a host act; 5 s by default.
    pub lease: Duration,
    /// How long a connection may take to its Hello; 5 s.
    pub greeting: Duration,
    /// How long an activation waits for a host, and a kind without sessions stays in the node's row; 8 s by default.
    pub grace: Duration,
    /// Shards of the node.
    pub shards: usize,
    /// Foreign kinds of a node at most; 1,024.
    pub kinds_max: usize,
    /// Which rules hold.
    pub checks: Checks,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(5),
            greeting: Duration::from_secs(5),
            grace: Duration::from_secs(8),
            shards: 1,
            kinds_max: 1_024,
            checks: Checks::default(),
        }
    }
}

/// Why a node does not host a kind for a host, whatever its description says.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum NotAllowed {
    /// The kind is linked into this node.
    #[error("kind \"{0}\" is linked into this node's program; give the host's kind another name")]
    Linked(KindName),
    /// The kind is one of the runtime's own.
    #[error("kind \"{0}\" is the runtime's own; give the host's kind another name")]
    Reserved(KindName),
    /// The host's principal may not offer it.
    #[error(
        "kind \"{0}\" may not be offered by this host, by the roles that it has shown at the door; allow it in `hosts.allow`: \
         {{ roles = [..], kinds = [\"{0}\"] }}"
    )]
    NotYours(KindName),
    /// Its description is not one.
    #[error("the description of kind \"{kind}\" is refused: {why}")]
    Description {
        /// The kind.
        kind: KindName,
        /// What is wrong with it.
        why: Arc<str>,
    },
}

/// What became of an offer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The node hosts the kind through this session.
    Taken,
    /// The same, and in place of an older version: that gets no new seats where this one serves the same callers.
    TakenInPlace,
    /// It is refused.
    Refused(Refusal),
}

/// Why an offer is refused. The host is at fault; its other offers stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This node may not host it.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// Another description of this version is in use.
    #[error(
        "version {version} of kind \"{kind}\" has another description here (digest {claimed}, this one {offered}); \
         raise the version, or stop the hosts of the other one"
    )]
    Digest {
        /// The kind.
        kind: KindName,
        /// The version.
        version: u16,
        /// The digest in use.
        claimed: Digest,
        /// The digest offered.
        offered: Digest,
    },
    /// There are too many kinds.
    #[error("this node hosts {max} kinds of hosts already; offer fewer kinds")]
    TooMany {
        /// How many it hosts at most.
        max: usize,
    },
    /// A version of 0, or one that serves callers of a newer version than itself.
    #[error(
        "kind \"{kind}\" has version {version} and serves callers from {compatible}; both begin at 1, and the second is not above the first"
    )]
    Versions {
        /// The kind.
        kind: KindName,
        /// The version.
        version: u16,
        /// The oldest one it would serve.
        compatible: u16,
    },
}

/// Why a session is closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Close {
    /// It has drained, or said goodbye.
    Done,
    /// Its Hello did not come in time.
    Silent,
    /// Its lease is over.
    LeaseOver,
    /// Its control lane is broken, its process is gone, or its host has begun another session.
    Broken,
    /// The node's own lease is over.
    Fenced,
}

/// What a host has done that the protocol does not allow: its lane ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// It answered for a seat that waits for no such answer.
    #[error("a seat is named that waits for no such answer")]
    Seat,
    /// It ended a turn that does not run.
    #[error("a turn is ended that does not run")]
    Turn,
    /// It began a stream under a number in use, or more streams than a lane may have.
    #[error("a stream has a number in use, or the lane has too many")]
    Stream,
    /// It has no number left to give to a seat or turn.
    #[error("the lane has used up its numbers")]
    Numbers,
}

/// How a turn came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It was sent, its host was lost, and it may run again: begin it again. It is no try that failed.
    Again,
    /// It was sent, and its host was lost: it may have run.
    Unknown,
    /// Nothing began, for there is no host: refuse it, or let it wait; no try is counted.
    NoHost,
    /// Nothing began, for the activation leaves its seat for good: resubmit it.
    Unseated,
    /// Nothing began, for too many turns are open at its host.
    Overloaded,
    /// Nothing began, for its caller has given up.
    Cancelled,
    /// It was sent and dropped, as the activation left its seat at once: it may have run.
    Abandoned,
}

/// Most streams that a host produces on a lane.
pub const STREAMS_MAX: usize = 4_096;

/// Shortest time between two changes of a node's row.
const ROW_PACE: Duration = Duration::from_secs(1);

/// Seats of a lane that are left at once when nobody waits for that.
const LEAVING_MAX: usize = 64;

/// Turns that wait at an activation for its seat.
const WAITING_MAX: usize = 1_024;

/// Open turns of a lane, for each that may run.
pub const OPEN_FACTOR: usize = 16;
