//! The modes that a node knows, of actors that have switched.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use greenroom_protocols::adaptive::{Known, Mode};
use greenroom_world::Timestamp;

use crate::cluster::directory::Entry;

/// Modes by actor. Actors that are not here have one instance, wherever they were called first.
#[derive(Default)]
pub(crate) struct Modes(RwLock<BTreeMap<Entry, (Known, Timestamp)>>);

impl Modes {
    /// What is known of `key`.
    pub(crate) fn known(&self, key: &Entry) -> Known {
        self.read().get(key).map(|(known, _)| known.clone()).unwrap_or_default()
    }

    /// The mode of `key`.
    pub(crate) fn mode(&self, key: &Entry) -> Mode {
        self.read().get(key).map(|(known, _)| known.mode).unwrap_or_default()
    }

    /// When the mode of `key` became known here.
    pub(crate) fn since(&self, key: &Entry) -> Option<Timestamp> {
        self.read().get(key).map(|(_, since)| *since)
    }

    /// Takes in a mode; whether it is news.
    pub(crate) fn learn(&self, now: Timestamp, key: &Entry, known: &Known) -> bool {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(key).map(|(known, _)| known.epoch).unwrap_or_default();
        if known.epoch <= before {
            return false;
        }
        if all.len() >= MODES_MAX
            && !all.contains_key(key)
            && let Some(oldest) = all.iter().min_by_key(|(_, (_, since))| *since).map(|(key, _)| key.clone())
        {
            // Who reports it knows it, and is told where it is decided: then all hear of it again.
            all.remove(&oldest);
        }
        all.insert(key.clone(), (known.clone(), now));
        true
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Entry, (Known, Timestamp)>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Modes that one node remembers.
const MODES_MAX: usize = 65_536;
