//! The actors that a node's optimiser has moved, for people.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use greenroom_world::Timestamp;
use serde::Serialize;

use crate::here::Here;
use crate::observe::events::Moved;

/// An actor that an optimiser has moved.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct MovedActor {
    /// The moves of its node are numbered from 1, since it started.
    pub number: u64,
    /// The actor.
    pub actor: String,
    /// The name of the node that it left.
    pub from: String,
    /// The name of the node that it went to.
    pub to: String,
    /// From which shard to which, if it stayed on its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<[u16; 2]>,
    /// When it went, in seconds since its node's optimiser started.
    pub at_s: f64,
    /// How many seconds ago that was when this was told.
    pub ago_s: f64,
    /// Messages a minute that this was to bring nearer, less those that it put farther.
    pub gain: i64,
    /// What the move costs, in messages.
    pub cost: u32,
    /// Why it went.
    pub why: &'static str,
}

impl MovedActor {
    fn moved(&self) -> Moved {
        let (from, to, shards) = (self.from.clone(), self.to.clone(), self.shards);
        Moved { from, to, shards, why: format!("by the optimiser, as {}", self.why) }
    }
}

/// The last of them, the last one last.
#[derive(Default)]
pub(super) struct Log {
    /// When the optimiser started.
    begun: OnceLock<Timestamp>,
    all: Mutex<VecDeque<MovedActor>>,
}

impl Log {
    pub(super) fn begin(&self, now: Timestamp) {
        let _ = self.begun.set(now);
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<MovedActor>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An actor has been moved: its number and time are not known before.
    pub(super) fn note(&self, here: &Here, moved: MovedActor, now: Timestamp) {
        here.optimised(moved.actor.clone(), moved.moved());
        let at_s = self.seconds(now);
        let mut all = self.all();
        let number = all.back().map_or(1, |last| last.number + 1);
        let MovedActor { actor, from, to, shards, gain, cost, why, .. } = &moved;
        tracing::debug!(number, %actor, %from, %to, ?shards, gain, cost, why, "the optimiser has moved an actor");
        if all.len() >= LOG_MAX {
            all.pop_front();
        }
        all.push_back(MovedActor { number, at_s, ..moved });
    }

    /// Seconds since the optimiser started.
    fn seconds(&self, now: Timestamp) -> f64 {
        now.since(*self.begun.get_or_init(|| now)).as_secs_f64()
    }

    pub(super) fn last(&self, now: Timestamp) -> Vec<MovedActor> {
        let seconds = self.seconds(now);
        let told = |moved: &MovedActor| MovedActor { ago_s: (seconds - moved.at_s).max(0.0), ..moved.clone() };
        self.all().iter().map(told).collect()
    }
}

/// Moves that a node remembers.
const LOG_MAX: usize = 1024;
