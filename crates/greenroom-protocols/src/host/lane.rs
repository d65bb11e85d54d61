//! One session's lane to a shard.

use std::collections::{BTreeMap, VecDeque};

use super::{Activation, Bounds, Cookie, OPEN_FACTOR, Offer, Seat, Stream, TurnNumber};

/// What a shard knows of a session.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lane {
    pub(super) bounds: Bounds,
    /// What it offers, by the index in its Hello.
    pub(super) offers: BTreeMap<u32, Offer>,
    pub(super) is_joined: bool,
    pub(super) is_draining: bool,
    /// Whether it was said that a draining session has no seat left.
    pub(super) is_drained: bool,
    /// The lane has broken, and its host has not said yet that it has dropped its seats.
    pub(super) is_held: bool,
    /// Nothing that the session says counts any more.
    pub(super) is_lost: bool,
    pub(super) seats: BTreeMap<Seat, Activation>,
    pub(super) last_seat: u64,
    pub(super) turns: BTreeMap<TurnNumber, Cookie>,
    pub(super) last_turn: u64,
    /// Turns that were dropped before their host has said so: their ends are no fault, and do not count.
    pub(super) dropped: BTreeMap<TurnNumber, Seat>,
    /// Turns that wait for room, of seats that are ready.
    pub(super) queue: VecDeque<Cookie>,
    /// Turns that run, and have no open request.
    pub(super) running: usize,
    /// Bytes of these.
    pub(super) bytes: u64,
    pub(super) streams: BTreeMap<Stream, Seat>,
    /// Seats that are ending.
    pub(super) ending: usize,
    /// Where the search goes on for seats that are to be left.
    pub(super) sweep: Option<Seat>,
}

impl Lane {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            offers: BTreeMap::new(),
            is_joined: false,
            is_draining: false,
            is_drained: false,
            is_held: false,
            is_lost: false,
            seats: BTreeMap::new(),
            last_seat: 0,
            turns: BTreeMap::new(),
            last_turn: 0,
            dropped: BTreeMap::new(),
            queue: VecDeque::new(),
            running: 0,
            bytes: 0,
            streams: BTreeMap::new(),
            ending: 0,
            sweep: None,
        }
    }

    /// Whether what comes from it counts.
    pub(super) fn is_live(&self) -> bool {
        self.is_joined && !self.is_held && !self.is_lost
    }

    /// Whether it takes new seats.
    pub(super) fn is_taking(&self) -> bool {
        self.is_live() && !self.is_draining
    }

    pub(super) fn is_full(&self) -> bool {
        self.seats.len() >= self.bounds.seats_max as usize
    }

    /// Whether another turn may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.running < self.bounds.turns_max as usize && self.bytes < self.bounds.bytes_max && !self.is_crowded(0)
    }

    /// Whether it has as many turns, those that wait for room included, as it may; `queued` of these do not count.
    pub(super) fn is_crowded(&self, queued: usize) -> bool {
        self.turns.len() + queued >= self.bounds.turns_max as usize * OPEN_FACTOR
    }

    /// The version of `kind` that it offers.
    pub(super) fn offered<'l>(&'l self, kind: &'l str) -> impl Iterator<Item = (u32, &'l Offer)> {
        self.offers.iter().filter(move |(_, offer)| &*offer.kind == kind).map(|(index, offer)| (*index, offer))
    }

    /// Whether it is less full than `other`, each by its weight.
    pub(super) fn is_less_full(&self, other: &Self) -> bool {
        let share = |seats: usize, weight: u32| seats as u128 * u128::from(weight);
        share(self.seats.len(), other.bounds.weight) < share(other.seats.len(), self.bounds.weight)
    }
}
