//! Replies that wait for their turn's state to be saved.

use std::sync::{Mutex, PoisonError};

use crate::actor::error::Failure;

/// A reply that has been given and not yet let go.
pub(crate) trait Held: Send {
    /// Lets it go.
    fn release(self: Box<Self>);

    /// Tells the caller instead that the turn's state was not saved.
    fn fail(self: Box<Self>, failure: Failure);
}

/// Keeps the reply of an activation's exclusive turn.
#[derive(Default)]
pub(crate) struct Holder(Mutex<Option<Box<dyn Held>>>);

impl Holder {
    pub(crate) fn hold(&self, reply: Box<dyn Held>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
    }

    pub(crate) fn take(&self) -> Option<Box<dyn Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
