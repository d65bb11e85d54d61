//! What waits for slow consumers of streams and topics, of one node, all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Bytes that wait for whoever is slow to take them.
///
/// Each stream is bounded by itself, and holds its own producer back. What all of them hold together is counted here, so that
/// those who have taken nothing for longest can be let go when it is too much.
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    max: usize,
    over: Notify,
}

/// A part of a backlog, until it is dropped.
pub(crate) struct Held {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Backlog {
    /// One that should hold at most `max` bytes.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), max, over: Notify::new() })
    }

    /// Counts what begins to wait.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        let mut held = Held { backlog: self.clone(), bytes: 0 };
        held.set(bytes);
        held
    }

    /// What waits, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more waits than should.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.max
    }

    /// Resolves while more waits than should.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub(crate) async fn overflow(&self) {
        loop {
            let over = self.over.notified();
            if self.is_over() {
                return;
            }
            over.await;
        }
    }
}

impl Held {
    /// It is so many bytes now.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes >= before {
            self.backlog.bytes.fetch_add(bytes - before, Ordering::Relaxed);
            if bytes > before && self.backlog.is_over() {
                self.backlog.over.notify_one();
            }
        } else {
            self.backlog.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn what_is_dropped_waits_no_more() {
        let backlog = Backlog::new(10);
        let mut first = backlog.hold(6);
        assert!(!backlog.is_over() && backlog.overflow().now_or_never().is_none());
        let second = backlog.hold(5);
        assert!(backlog.is_over() && backlog.overflow().now_or_never().is_some());
        first.set(4);
        assert_eq!((backlog.bytes(), backlog.is_over()), (9, false));
        drop((first, second));
        assert_eq!(backlog.bytes(), 0);
    }
}
