//! Failure detection: each node watches a few others and suspects the silent ones (SWIM: Das, Gupta & Motivala, DSN '02;
//! seeded rings as in Orleans).
//! Pure: no clock, no I/O; its only randomness is the seed that it is given.
//!
//! The active nodes stand in several rings, each in its own seeded order; a node watches its successor in each ring, or
//! the next one after it that it does not watch yet, so that with few nodes everyone watches everyone. A watched node is
//! probed directly; after two probes without an answer an intermediary is asked to probe it; after that it is suspected,
//! and again after each further such sequence while the silence lasts. Suspicion decides nothing: see
//! [`membership`](crate::membership).
//!
//! A node that was itself paused finds its timers late; it then begins its probes again and accuses nobody.

mod detector;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use detector::FailureDetector;

use crate::node::{NodeId, View};

/// How a node watches others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Number of rings, and so of nodes that each node watches; 3 by default.
    pub rings: u32,
    /// Time between probes of one node; 500 ms by default.
    pub probe_every: Duration,
    /// Silence after which a probe counts as missed; 500 ms by default, for an indirect probe too.
    pub probe_timeout: Duration,
    /// Missed direct probes in a row before the indirect one; 2 by default.
    pub misses: u32,
    /// Seeds the choice of intermediaries; different on each node.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rings: 3,
            probe_every: Duration::from_millis(500),
            probe_timeout: Duration::from_millis(500),
            misses: 2,
            seed: 0,
        }
    }
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Membership published this view.
    View(Arc<View>),
    /// The deadline came.
    Tick,
    /// The probed node answered, itself or through the intermediary; answers may come late, twice or never.
    Answer {
        /// The probed node.
        node: NodeId,
        /// The probe's number.
        seq: u64,
    },
}

/// What must be done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Probe that node.
    Probe {
        /// The node.
        to: NodeId,
        /// Its answer must carry this.
        seq: u64,
    },
    /// Ask `via` to probe `to`.
    ProbeVia {
        /// The intermediary.
        via: NodeId,
        /// The node.
        to: NodeId,
        /// The answer must carry this.
        seq: u64,
    },
    /// That node is silent: tell the membership machine.
    Suspect {
        /// The node.
        node: NodeId,
    },
}
