//! Subscriptions to the versions of a state.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, stream};
use greenroom_protocols::bcas::Version;
use tokio::sync::watch;

use super::VersionedStateWithOutput;
use super::protocol::StateValue;

/// The confirmed states of one [`Versioned`](super::Versioned) field, as they come: first the one that is there, then each
/// later one. Who is slow misses those in between, never the last one. It ends with the activation.
///
/// A method can return it, or what it makes of it, as a stream of replies.
pub struct Versions<S>(Pin<Box<dyn Stream<Item = (Arc<S>, Version)> + Send>>);

impl<S: VersionedStateWithOutput> Versions<S> {
    /// `None` is the subscription of an actor that is not active: it has nothing.
    pub(super) fn new(seen: Option<watch::Receiver<(StateValue, Version)>>) -> Self {
        Self(Box::pin(stream::unfold(seen, |seen| async move {
            let mut seen = seen?;
            seen.changed().await.ok()?;
            let (state, version) = seen.borrow_and_update().clone();
            Some(((state.typed(), version), Some(seen)))
        })))
    }
}

impl<S> Stream for Versions<S> {
    type Item = (Arc<S>, Version);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<S> fmt::Debug for Versions<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Versions")
    }
}
