//! What may pass from where to where.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

/// The ways between the ends of a network that are shut; all others are open. One thread shuts and opens them, those of the
/// relays stand before them.
#[derive(Debug)]
pub struct Gates<End> {
    shut: Mutex<BTreeSet<(End, End)>>,
    changed: Condvar,
}

impl<End: Ord> Default for Gates<End> {
    fn default() -> Self {
        Self { shut: Mutex::default(), changed: Condvar::new() }
    }
}

impl<End: Ord + Clone> Gates<End> {
    /// Shuts or opens the way from one end to the other; not the way back.
    pub fn set(&self, from: &End, to: &End, is_shut: bool) {
        let mut shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        let way = (from.clone(), to.clone());
        if is_shut {
            shut.insert(way);
        } else {
            shut.remove(&way);
        }
        self.changed.notify_all();
    }

    /// Shuts both ways.
    pub fn cut(&self, one: &End, other: &End) {
        self.set(one, other, true);
        self.set(other, one, true);
    }

    /// Opens both ways.
    pub fn heal(&self, one: &End, other: &End) {
        self.set(one, other, false);
        self.set(other, one, false);
    }

    /// Returns once the way is open.
    pub(crate) fn pass(&self, way: &(End, End)) {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(shut, |shut| shut.contains(way)));
    }
}
