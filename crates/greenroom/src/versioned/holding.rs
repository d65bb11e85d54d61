//! Users' states, updates and outputs as the pure machine holds them: shared until they change.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use greenroom_protocols::bcas;

use super::{Rejected, VersionedStateWithOutput};

/// A value that the machine passes around without looking into it: two are equal if they are the same one.
pub(super) struct Holding<T>(pub(super) Arc<T>);

impl<T> Holding<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Clone for Holding<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Holding<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> PartialEq for Holding<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Holding<T> {}

impl<T> Hash for Holding<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        std::ptr::hash(&*self.0, hasher);
    }
}

impl<T> fmt::Debug for Holding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<S: VersionedStateWithOutput> bcas::Versioned for Holding<S> {
    type Update = Holding<S::Update>;
    type Output = Holding<S::Output>;
    type Error = Rejected;

    fn apply(&mut self, update: &Self::Update) -> Result<Self::Output, Rejected> {
        let state = Arc::make_mut(&mut self.0);
        match catch_unwind(AssertUnwindSafe(|| state.apply(&update.0))) {
            Ok(result) => result.map(Holding::new),
            Err(panic) => Err(Rejected(format!("it panicked: {}", crate::shard::panic_message(&*panic)))),
        }
    }
}
