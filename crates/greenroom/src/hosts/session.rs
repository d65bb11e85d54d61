//! A host's stay at this node, as its control lane and the shards share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use greenroom_protocols::versions::Offer;
use greenroom_wire::host::HelloMap;
use tokio::sync::mpsc;

use super::offers::Taken;
use crate::actor::key::Kind;

/// A session.
pub(crate) struct Session {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) sdk: String,
    pub(super) weight: u32,
    pub(super) turns_max: usize,
    pub(super) bytes_max: u64,
    pub(super) seats_max: u32,
    /// The shards whose lanes it may join.
    pub(super) shards: u16,
    /// What it offers, by the offer's index in its Hello; empty for what was refused.
    pub(super) offers: Vec<Option<Taken>>,
    pub(super) seats: AtomicU32,
    pub(super) draining: AtomicBool,
    /// Whether nothing of it counts any more.
    pub(super) lost: AtomicBool,
    pub(super) told: mpsc::UnboundedSender<FromShard>,
}

/// What a shard tells the control lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FromShard {
    /// The user lane of that shard has broken.
    LaneLost(u16),
    /// The last seat on that shard is free, of a session that drains.
    Drained(u16),
}

impl Session {
    pub(super) fn new(
        number: u64,
        hello: &HelloMap,
        shards: u16,
        offers: Vec<Option<Taken>>,
        told: mpsc::UnboundedSender<FromShard>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            name: hello.name.clone(),
            sdk: hello.sdk.clone(),
            weight: hello.weight.max(1),
            turns_max: (hello.turns_max as usize).clamp(1, TURNS_MAX),
            bytes_max: hello.bytes_max.clamp(BYTES_MIN, BYTES_MAX),
            seats_max: hello.seats_max.min(SEATS_MAX),
            shards,
            offers,
            seats: AtomicU32::new(0),
            draining: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            told,
        })
    }

    /// The offer of `kind`, and its index.
    pub(super) fn offer(&self, kind: Kind) -> Option<(u32, &Taken)> {
        self.offers
            .iter()
            .enumerate()
            .find_map(|(at, offer)| offer.as_ref().filter(|offer| offer.kind == kind).map(|offer| (at as u32, offer)))
    }

    /// The version of `kind` that it offers to new seats.
    pub(super) fn offers(&self, kind: Kind) -> Option<Offer> {
        let open = !self.draining.load(Ordering::Relaxed) && !self.lost.load(Ordering::Relaxed);
        open.then(|| self.offer(kind)).flatten().map(|(_, taken)| taken.offer)
    }

    /// How full it is, for its weight.
    pub(super) fn fullness(&self) -> u64 {
        u64::from(self.seats.load(Ordering::Relaxed)) * 1_000 / u64::from(self.weight)
    }

    pub(super) fn has_room(&self) -> bool {
        self.seats.load(Ordering::Relaxed) < self.seats_max
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells the control lane.
    pub(super) fn tell(&self, what: FromShard) {
        // If it is gone, the session is.
        let _ = self.told.send(what);
    }
}

/// Turns that one lane may run at once, at most.
const TURNS_MAX: usize = 65_536;
const BYTES_MIN: u64 = 64 << 10;
const BYTES_MAX: u64 = 64 << 20;
/// Seats of one session, at most.
const SEATS_MAX: u32 = 1_000_000;
