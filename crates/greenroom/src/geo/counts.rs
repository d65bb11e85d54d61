//! What a node counts of its part in a multi-cluster.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::here::figures::Figures;

/// Counters since the node started.
#[derive(Default)]
pub(crate) struct Counts {
    asked: AtomicU64,
    forwarded: AtomicU64,
    answered: AtomicU64,
    activated: AtomicU64,
    doubtful: AtomicU64,
    found: AtomicU64,
    ended: AtomicU64,
    merged: AtomicU64,
    lost: AtomicU64,
    /// The states that had them, the last ones at the end.
    lost_of: Mutex<VecDeque<String>>,
    dropped: AtomicU64,
    switched: AtomicU64,
    yielded: AtomicU64,
}

/// The counters at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct GeoCounts {
    /// Questions sent to other clusters.
    pub questions: u64,
    /// Calls sent to instances of other clusters.
    pub forwarded: u64,
    /// Calls of other clusters that ran in this one.
    pub answered: u64,
    /// Instances activated here.
    pub activated: u64,
    /// Those of them that were perhaps not the only ones.
    pub doubtful: u64,
    /// Instances of this cluster that were found to be duplicates.
    pub duplicates_found: u64,
    /// Those of them that have ended.
    pub duplicates_ended: u64,
    /// Duplicates of other clusters that instances of this one have taken over.
    pub duplicates_merged: u64,
    /// Updates of versioned states that duplicates had told confirmed, and that instances that stay had not confirmed when these ended.
    pub updates_lost: u64,
    /// Messages to other clusters that were not sent, as a queue was full.
    pub dropped: u64,
    /// Switches of adaptive actors between one instance and one in each cluster, decided here.
    pub switches: u64,
    /// Actors that were given up here for the cluster that calls them most.
    pub yielded: u64,
}

impl GeoCounts {
    pub(super) fn report(&self, figures: &mut Figures) {
        for (name, help, count) in [
            ("greenroom_geo_questions_total", "Questions sent to other clusters.", self.questions),
            ("greenroom_geo_forwarded_total", "Calls sent to instances of other clusters.", self.forwarded),
            ("greenroom_geo_answered_total", "Calls of other clusters that ran here.", self.answered),
            ("greenroom_geo_activated_total", "Instances activated here.", self.activated),
            ("greenroom_geo_doubtful_total", "Those that were perhaps not the only ones.", self.doubtful),
            ("greenroom_geo_duplicates_found_total", "Duplicates that were found here.", self.duplicates_found),
            ("greenroom_geo_duplicates_ended_total", "Duplicates that have ended here.", self.duplicates_ended),
            ("greenroom_geo_duplicates_merged_total", "Duplicates elsewhere, taken over.", self.duplicates_merged),
            ("greenroom_geo_updates_lost_total", "Confirmed updates that ended with a duplicate.", self.updates_lost),
            (
                "greenroom_geo_switches_total",
                "Switches of adaptive actors between one instance and one in each cluster, decided here.",
                self.switches,
            ),
            (
                "greenroom_geo_yielded_total",
                "Actors that were given up here for the cluster that calls them most.",
                self.yielded,
            ),
            ("greenroom_geo_dropped_total", "Messages to other clusters that found no room.", self.dropped),
        ] {
            figures.count(name, help, count);
        }
    }
}

impl Counts {
    pub(super) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn forwarded(&self) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn activated(&self, doubtful: bool) {
        self.activated.fetch_add(1, Ordering::Relaxed);
        self.doubtful.fetch_add(doubtful.into(), Ordering::Relaxed);
    }

    pub(super) fn duplicate_found(&self) {
        self.found.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn duplicate_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn merged(&self) {
        self.merged.fetch_add(1, Ordering::Relaxed);
    }

    /// A duplicate has ended with so many updates of this state that nobody else has.
    pub(crate) fn updates_lost(&self, state: &str, updates: usize) {
        self.lost.fetch_add(updates as u64, Ordering::Relaxed);
        let mut all = self.lost_of.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other != state);
        if all.len() == LOST_OF_MAX {
            all.pop_front();
        }
        all.push_back(state.to_owned());
    }

    /// The last states of which updates were lost.
    pub(super) fn lost_of(&self) -> Vec<String> {
        self.lost_of.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn switched(&self) {
        self.switched.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn yielded(&self) {
        self.yielded.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them now.
    pub(crate) fn now(&self) -> GeoCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        GeoCounts {
            questions: read(&self.asked),
            forwarded: read(&self.forwarded),
            answered: read(&self.answered),
            activated: read(&self.activated),
            doubtful: read(&self.doubtful),
            duplicates_found: read(&self.found),
            duplicates_ended: read(&self.ended),
            duplicates_merged: read(&self.merged),
            updates_lost: read(&self.lost),
            dropped: read(&self.dropped),
            switches: read(&self.switched),
            yielded: read(&self.yielded),
        }
    }
}

/// States of which updates were lost that are named: the log has them all.
const LOST_OF_MAX: usize = 16;
