//! How a node ends: what it takes no more while it drains and closes, and why it has stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::halt::Halt;
use super::{CLOSED, Here};
use crate::shard::Item;

impl Here {
    /// Has the node drain, as another one or an operator asked for it.
    pub(crate) fn ask_to_drain(self: &Arc<Self>) {
        self.parts.all().for_each(|part| part.drain(self));
    }

    /// Notes that the node was told to stop: clients are to go elsewhere, and those that come are still served.
    pub(crate) fn announce_leaving(&self) {
        self.leaving_soon.store(true, Ordering::Release);
    }

    /// Whether it was told to stop.
    #[cfg(feature = "http")]
    pub(crate) fn is_leaving_soon(&self) -> bool {
        self.leaving_soon.load(Ordering::Acquire)
    }

    /// Notes that the node drains; whether it did not before.
    pub(crate) fn begin_drain(&self) -> bool {
        !self.draining.swap(true, Ordering::AcqRel)
    }

    /// Whether the node drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Activates nothing any more.
    pub(crate) fn begin_hand_over(&self) {
        self.handing_over.store(true, Ordering::Release);
    }

    pub(crate) fn is_handing_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire)
    }

    /// Takes no calls from outside any more.
    pub(crate) fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Requests that the HTTP door works on.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Acquire)
    }

    /// Counts a request of the HTTP door until it is dropped.
    #[cfg(feature = "http")]
    pub(crate) fn count_request(&self) -> impl Drop + '_ {
        struct Request<'a>(&'a Here);
        impl Drop for Request<'_> {
            fn drop(&mut self) {
                self.0.end_request();
            }
        }
        self.begin_request();
        Request(self)
    }

    pub(crate) fn begin_request(&self) {
        self.requests.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end_request(&self) {
        self.requests.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the shards that have kept their threads for too long, each with the time since its last round ended. One that has
    /// ended is none of them.
    pub(crate) fn stuck_shards(&self) -> Vec<(usize, Duration)> {
        let now = self.world().now();
        let shards = self.gauges().iter().zip(self.shards()).enumerate();
        let stuck = shards.filter(|(_, (gauges, port))| gauges.is_stuck(now) && !port.is_closed());
        stuck.map(|(index, (gauges, _))| (index, gauges.in_one_go(now))).collect()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Ends everything at once: no turn starts any more, and what runs is dropped.
    pub(crate) fn halt(&self, why: impl Into<Halt>) {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        self.fence.store(CLOSED, Ordering::Release);
        for port in &self.shards {
            let _ = port.push(Item::Run(Box::new(|shard| shard.stop(Timestamp::default()))));
        }
        self.halted.send_replace(Some(why.into()));
    }

    /// Counts a socket that somebody may come in by, until what is returned is dropped: after the socket.
    pub(crate) fn count_entrance(self: &Arc<Self>) -> impl Drop + Send + use<> {
        struct Entrance(Arc<Here>);
        impl Drop for Entrance {
            fn drop(&mut self) {
                self.0.entrances.send_modify(|open| *open -= 1);
            }
        }
        self.entrances.send_modify(|open| *open += 1);
        Entrance(self.clone())
    }

    /// Waits until the node has stopped and nobody comes in by its sockets: they may be had again.
    pub(crate) async fn closed(&self) {
        self.halted().await;
        // The node itself keeps the sender.
        let _ = self.entrances.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Why the node has stopped; waits until it has.
    pub(crate) async fn halted(&self) -> Halt {
        let mut halted = self.halted.subscribe();
        let why = halted.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or(Halt::Because("it was dropped"))
    }
}
