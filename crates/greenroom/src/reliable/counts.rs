//! What a node's partitions do, for its metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::here::Here;
use crate::here::figures::Figures;

/// A node's counts.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    /// Partitions that this node owns.
    pub(crate) owned: AtomicU64,
    /// Their actors in memory.
    pub(crate) actors: AtomicU64,
    /// Messages that are not committed yet.
    pub(crate) waiting: AtomicU64,
    /// Messages that are committed and not acknowledged.
    pub(crate) outgoing: AtomicU64,
    /// Answers to calls with idempotency keys that are kept, and their bytes.
    pub(crate) answers: AtomicU64,
    pub(crate) answers_bytes: AtomicU64,
    /// Calls with new keys that were refused, as no more answers may be kept.
    pub(crate) answers_refused: AtomicU64,
    /// Messages that are parked.
    pub(crate) parked: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) turns: AtomicU64,
    /// Time that commits took, in microseconds.
    pub(crate) commit_micros: AtomicU64,
    /// True while this node's partitions take nothing new: the cluster drains, and its journal held nothing at a look.
    pub(super) is_closed: AtomicBool,
    /// True if the journal held nothing of the cluster's partitions at a look after this node's were closed.
    pub(super) is_vacant: AtomicBool,
    /// What turns that were run again have come to besides; at most [`DIFFERENCES_MAX`].
    differences: Mutex<Vec<String>>,
}

impl Counts {
    pub(super) fn report(&self, figures: &mut Figures) {
        for (name, help, count) in [
            ("greenroom_reliable_partitions", "Partitions of reliable actors that this node owns.", &self.owned),
            ("greenroom_reliable_actors", "Reliable actors in memory.", &self.actors),
            ("greenroom_reliable_waiting", "Messages whose turns are not committed.", &self.waiting),
            ("greenroom_reliable_outgoing", "Committed messages that are not acknowledged.", &self.outgoing),
            ("greenroom_reliable_answers", "Answers to calls with idempotency keys that are kept.", &self.answers),
            ("greenroom_reliable_answers_bytes", "Bytes of those answers, about.", &self.answers_bytes),
            (
                "greenroom_reliable_answers_refused_total",
                "Calls with new idempotency keys that were refused, as no more answers may be kept.",
                &self.answers_refused,
            ),
            ("greenroom_reliable_commits_total", "Commits of reliable actors.", &self.commits),
            ("greenroom_reliable_turns_total", "Turns in those commits.", &self.turns),
        ] {
            figures.count(name, help, count.load(Ordering::Relaxed));
        }
        let took = Duration::from_micros(self.commit_micros.load(Ordering::Relaxed)).as_secs_f64();
        figures.put("greenroom_reliable_commit_seconds_total", "Time that those commits took.", took);
    }

    pub(super) fn differ(&self, found: &str) {
        let mut differences = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        if differences.len() < DIFFERENCES_MAX {
            differences.push(found.to_owned());
        }
    }

    /// What turns that were run again have come to besides, on this node.
    pub(crate) fn differences(&self) -> Vec<String> {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Actors in memory, waiting and outgoing messages, kept answers and their bytes, parked messages.
type Gauges = [u64; 6];

/// One ownership's part of the counts, for as long as it lasts.
pub(super) struct Share {
    node: Arc<Here>,
    told: Gauges,
}

impl Share {
    pub(super) fn new(node: Arc<Here>) -> Self {
        node.reliable().owned.fetch_add(1, Ordering::Relaxed);
        Self { node, told: Gauges::default() }
    }

    /// Says how it is now.
    pub(super) fn tell(&mut self, now: Gauges) {
        let Counts { actors, waiting, outgoing, answers, answers_bytes, parked, .. } = self.node.reliable();
        let gauges = [actors, waiting, outgoing, answers, answers_bytes, parked];
        for ((gauge, now), told) in gauges.into_iter().zip(now).zip(&mut self.told) {
            if *told != now {
                gauge.fetch_add(now.wrapping_sub(*told), Ordering::Relaxed);
                *told = now;
            }
        }
    }

    /// Counts a call that was refused, as no more answers may be kept.
    pub(super) fn turned_down(&self) {
        self.node.reliable().answers_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, turns: u64, took: Duration) {
        let counts = self.node.reliable();
        counts.commits.fetch_add(1, Ordering::Relaxed);
        counts.turns.fetch_add(turns, Ordering::Relaxed);
        counts.commit_micros.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.tell(Gauges::default());
        self.node.reliable().owned.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The first ones say enough.
const DIFFERENCES_MAX: usize = 64;
