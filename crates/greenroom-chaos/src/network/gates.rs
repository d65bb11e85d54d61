//! Which ways are shut, for relays.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

use super::End;

/// The ways that are shut; relays wait before them.
#[derive(Default)]
pub(super) struct Gates {
    shut: Mutex<BTreeSet<(End, End)>>,
    changed: Condvar,
}

impl Gates {
    pub(super) fn set(&self, from: End, to: End, is_shut: bool) {
        let mut shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        if is_shut {
            shut.insert((from, to));
        } else {
            shut.remove(&(from, to));
        }
        self.changed.notify_all();
    }

    /// Returns once the way is open.
    pub(super) fn pass(&self, from: End, to: End) {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(shut, |shut| shut.contains(&(from, to))));
    }
}
