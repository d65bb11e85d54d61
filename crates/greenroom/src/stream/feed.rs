//! What a method has made: a stream that owns its data, tied to the activation that it came from.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;

use super::backlog::Backlog;
use crate::actor::error::{Doubt, Failure};
use crate::actor::key::ActorId;
use crate::shard::ShardPort;

/// The items of a stream, and why it breaks off if it does.
pub(crate) type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Failure>> + Send>>;

/// A stream before it is consumed.
pub(crate) struct Feed<T> {
    /// `None` for one that is only passed on: it has its tie elsewhere.
    pub(crate) tie: Option<Arc<Tie>>,
    /// The shard that polls it; `None` for one that was made outside of all shards.
    pub(crate) home: Option<ShardPort>,
    pub(crate) items: Items<T>,
    /// How large its items are; `None` where nobody knows before they are encoded.
    pub(crate) weight: Option<Weight<T>>,
}

/// What items weigh that wait for a consumer of this process.
pub(crate) struct Weight<T> {
    /// An item's size, in bytes.
    pub(crate) of: fn(&T) -> usize,
    /// Where what waits is counted.
    pub(crate) backlog: Arc<Backlog>,
}

/// Between an activation and what runs beside its turns: this keeps the activation from being idle, and ends with it.
pub(crate) struct Tie {
    actor: ActorId,
    ended: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Tie {
    pub(crate) fn new(actor: ActorId) -> Arc<Self> {
        Arc::new(Self { actor, ended: AtomicBool::new(false), waker: Mutex::default() })
    }

    pub(crate) fn actor(&self) -> &ActorId {
        &self.actor
    }

    /// The activation has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Resolves when the activation has ended.
    pub(crate) fn poll_ended(&self, context: &Context<'_>) -> Poll<Failure> {
        {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if waker.as_ref().is_none_or(|known| !known.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        if !self.is_ended() {
            return Poll::Pending;
        }
        Poll::Ready(Doubt::Ended { actor: self.actor.to_string() }.into())
    }
}

impl<T> Feed<T> {
    /// What is over for the consumer although the stream may have more.
    pub(crate) fn poll_broken(&self, context: &Context<'_>) -> Poll<Failure> {
        match &self.tie {
            Some(tie) => tie.poll_ended(context),
            None => Poll::Pending,
        }
    }
}
