//! What waits at an activation. An empty one is a null pointer: idle activations are many.

use std::cell::Cell;
use std::collections::VecDeque;

/// A queue, first in first out. The bound is kept by who fills it.
pub(super) struct Mailbox<T>(Cell<Waiting<T>>);

/// `None` if nothing waits.
type Waiting<T> = Option<Box<VecDeque<T>>>;

impl<T> Mailbox<T> {
    pub(super) fn new() -> Self {
        Self(Cell::new(None))
    }

    fn with<R>(&self, look: impl FnOnce(&mut Waiting<T>) -> R) -> R {
        let mut waiting = self.0.take();
        let seen = look(&mut waiting);
        self.0.set(waiting);
        seen
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.with(|waiting| waiting.is_none())
    }

    pub(super) fn len(&self) -> usize {
        self.with(|waiting| waiting.as_ref().map_or(0, |waiting| waiting.len()))
    }

    pub(super) fn push(&self, message: T) {
        self.with(|waiting| waiting.get_or_insert_default().push_back(message));
    }

    /// Takes the first message if `may_begin` says so of it.
    pub(super) fn pop_if<R>(&self, may_begin: impl FnOnce(&T) -> Option<R>) -> Option<(R, T)> {
        self.with(|waiting| {
            let queue = waiting.as_mut()?;
            let answer = may_begin(queue.front()?)?;
            let first = queue.pop_front()?;
            if queue.is_empty() {
                *waiting = None;
            }
            Some((answer, first))
        })
    }

    /// Takes everything.
    pub(super) fn take(&self) -> impl Iterator<Item = T> {
        self.0.take().into_iter().flat_map(|waiting| waiting.into_iter())
    }
}
