//! A host's stay at this node, as its control lane and the shards share it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use greenroom_protocols::host::{Bounds, ControlAction, OPEN_FACTOR, SessionId};
use greenroom_security::principal::Principal;
use greenroom_wire::host::HelloMap;
use tokio::sync::mpsc;

use super::offers::Taken;
use super::reads::Reads;
use super::visa::Visa;
use crate::actor::error::Refusal;
use crate::actor::key::Kind;
use crate::shard::baggage::{Baggage, Load};

/// A session.
pub(crate) struct Session {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) sdk: String,
    bounds: Bounds,
    pub(super) reads: Reads,
    /// The shards whose lanes it may join.
    pub(super) shards: u16,
    /// What it offers, by the offer's index in its Hello; empty for what was refused, or is not judged yet.
    pub(super) offers: Box<[OnceLock<Taken>]>,
    pub(super) seats: AtomicU32,
    pub(super) draining: AtomicBool,
    /// Whether nothing of it counts any more.
    pub(super) lost: AtomicBool,
    /// Set once its host may act no more: true if the host died, as far as this node can tell.
    pub(super) died: OnceLock<bool>,
    visa: Option<Arc<dyn Visa>>,
    /// What its calls carry outside of turns: on whose behalf they are.
    on_behalf: Load,
    told: mpsc::UnboundedSender<Told>,
}

/// What a control lane is told.
pub(super) enum Told {
    /// By the machine of the control plane.
    Plane(ControlAction),
    Shard(FromShard),
    /// The session is over: its host may act no more.
    Over,
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
        (reads, shards): (Reads, u16),
        visa: Option<Arc<dyn Visa>>,
        told: mpsc::UnboundedSender<Told>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            name: hello.name.clone(),
            sdk: hello.sdk.clone(),
            bounds: Bounds {
                seats_max: hello.seats_max.min(SEATS_MAX).div_ceil(u32::from(shards).max(1)),
                turns_max: hello.turns_max.clamp(1, TURNS_MAX),
                bytes_max: hello.bytes_max.clamp(BYTES_MIN, BYTES_MAX),
                weight: hello.weight.max(1),
            },
            reads,
            shards,
            offers: hello.offers.iter().map(|_| OnceLock::new()).collect(),
            seats: AtomicU32::new(0),
            draining: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            died: OnceLock::new(),
            on_behalf: visa
                .as_ref()
                .map(|visa| Arc::new(Baggage { principal: Some(visa.principal().clone()), ..Baggage::default() })),
            visa,
            told,
        })
    }

    /// The offer of `kind`, and its index.
    pub(super) fn offer(&self, kind: Kind) -> Option<(u32, &Taken)> {
        self.offers
            .iter()
            .enumerate()
            .find_map(|(at, offer)| offer.get().filter(|offer| offer.kind == kind).map(|offer| (at as u32, offer)))
    }

    /// Returns true for a connection of the principal that the session came with: a secret that others have read opens them no lane.
    pub(super) fn is_of(&self, principal: Option<&Principal>) -> bool {
        let own = self.visa.as_deref().map(Visa::principal);
        own.map(Principal::id) == principal.map(Principal::id)
    }

    /// Whether it may make this call outside of turns.
    ///
    /// # Errors
    /// [`Refusal::Denied`]: no rule of the door, by which it came, allows it (L18).
    pub(super) fn check_outside(&self, kind: &str, key: &str, method: &str) -> Result<(), Refusal> {
        self.visa.as_ref().map_or(Ok(()), |visa| visa.check(kind, key, method))
    }

    /// What its calls carry outside of turns.
    pub(super) fn on_behalf(&self) -> Load {
        self.on_behalf.clone()
    }

    /// How each of its lanes is bounded.
    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Turns of one lane that are open at most.
    pub(super) fn turns_open_max(&self) -> u64 {
        (self.bounds.turns_max as usize * OPEN_FACTOR) as u64
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Tells the control lane.
    pub(super) fn tell(&self, what: Told) {
        // If it is gone, the session is.
        let _ = self.told.send(what);
    }

    pub(super) fn id(&self) -> SessionId {
        SessionId(self.number)
    }
}

/// Turns that one lane may run at once, at most.
const TURNS_MAX: u32 = 65_536;
const BYTES_MIN: u64 = 64 << 10;
const BYTES_MAX: u64 = 64 << 20;
/// Seats of one session, at most.
const SEATS_MAX: u32 = 1_000_000;
