//! How long a node may act: turns begin, and act on others, while its lease lasts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::{Here, NEVER_OPEN};

impl Here {
    /// Whether turns may begin and act on others.
    #[inline]
    pub(crate) fn fence_open(&self) -> bool {
        let fence = self.fence.load(Ordering::Acquire);
        fence == u64::MAX || self.world.now().as_nanos() < fence
    }

    /// Whether what has been gathered for other nodes may still leave: turns may act, or none has ever begun.
    pub(crate) fn may_send(&self) -> bool {
        self.fence.load(Ordering::Acquire) == NEVER_OPEN || self.fence_open()
    }

    /// How long they may from now on; nothing once they may not.
    pub(crate) fn fence_left(&self) -> Duration {
        Timestamp::from_nanos(self.fence.load(Ordering::Acquire)).since(self.world.now())
    }

    /// Whether that ends of itself, as the node has a lease.
    pub(crate) fn has_lease(&self) -> bool {
        self.fence.load(Ordering::Acquire) != u64::MAX
    }

    /// Whether they may at `now`, for who has just looked at the clock.
    pub(crate) fn fence_open_at(&self, now: Timestamp) -> bool {
        now.as_nanos() < self.fence.load(Ordering::Acquire)
    }

    pub(crate) fn set_fence(&self, until: Timestamp) {
        if !self.is_stopped() {
            self.fence.store(until.as_nanos(), Ordering::Release);
        }
    }

    /// When a call made now from outside of all turns must have ended.
    pub(crate) fn deadline(&self, limit: Option<Duration>) -> Timestamp {
        self.world.now() + limit.unwrap_or(self.config.call_timeout)
    }
}
