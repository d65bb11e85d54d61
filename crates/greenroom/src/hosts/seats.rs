//! The seats of a shard's activations in hosts.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::task::Waker;

use greenroom_wire::Status;
use greenroom_wire::host::{Activate, Fields, FromNode, Leave};
use greenroom_world::Timestamp;

use super::lane::Lane;
use crate::actor::error::{CallError, Failure, Never, Refusal};
use crate::actor::interface::Why;
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply;
use crate::shard::Slot;

#[derive(Default)]
pub(super) struct State {
    pub(super) lanes: BTreeMap<u64, Lane>,
    pub(super) places: BTreeMap<(u32, u32), Place>,
}

/// Where an activation is among the hosts.
pub(super) enum Place {
    /// Nowhere: it waits for a host.
    Waiting {
        since: Timestamp,
        wakers: Vec<Waker>,
    },
    /// Its host makes it.
    Making {
        at: Seat,
        wakers: Vec<Waker>,
    },
    Ready(Seat),
    /// Its host may still act, and does not answer.
    Held {
        wakers: Vec<Waker>,
    },
    /// Its host has been told to leave it.
    Leaving {
        at: Seat,
        waker: Option<Waker>,
    },
    /// It could not be made.
    Failed(Refusal),
}

/// A seat in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seat {
    pub(super) session: u64,
    pub(super) number: u64,
}

/// Whose seat is asked for.
pub(super) struct Sitter<'a> {
    pub(super) slot: Slot,
    pub(super) id: &'a ActorId,
    pub(super) epoch: u64,
}

/// What is found for somebody who wants a seat.
pub(super) enum Drawn {
    Session(u64),
    /// There are hosts, and none has room.
    Full(u64),
    Nobody,
}

impl State {
    /// Forgets a session that is over, once no turn of it is asked for any more.
    pub(super) fn clear_gone(&mut self, session: u64) {
        if self.lanes.get(&session).is_some_and(|lane| lane.is_gone && lane.turns.is_empty()) {
            self.lanes.remove(&session);
        }
    }

    /// An open lane of the newest version of `kind`: the less full one of two.
    pub(super) fn draw(&self, kind: Kind, random: u64) -> Drawn {
        let offers = |lane: &&Lane| if lane.is_open() { lane.session.offers(kind) } else { None };
        let Some(newest) = self.lanes.values().filter_map(|lane| offers(&lane)).map(|offer| offer.version).max() else {
            return Drawn::Nobody;
        };
        let newest = |lane: &&Lane| offers(lane).is_some_and(|offer| offer.version == newest);
        let free: Vec<&Lane> = self.lanes.values().filter(newest).filter(|lane| lane.session.has_room()).collect();
        if free.is_empty() {
            let bounds = self.lanes.values().filter(newest).map(|lane| u64::from(lane.session.seats_max));
            return Drawn::Full(bounds.sum());
        }
        let pick = |draw: u64| free[(draw % free.len() as u64) as usize];
        let (one, other) = (pick(random), pick(random >> 32));
        let drawn = if one.session.fullness() <= other.session.fullness() { one } else { other };
        Drawn::Session(drawn.session.number)
    }
}

pub(super) fn hold(place: &mut Place) {
    let wakers = match place {
        Place::Making { wakers, .. } | Place::Held { wakers } => std::mem::take(wakers),
        Place::Leaving { waker, .. } => waker.take().into_iter().collect(),
        Place::Ready(_) => Vec::new(),
        Place::Waiting { .. } | Place::Failed(_) => return,
    };
    *place = Place::Held { wakers };
}

/// Takes a seat on a lane; `None` if its frame cannot be written.
pub(super) fn seat(lane: &mut Lane, sitter: &Sitter<'_>, fields: Fields<'_>) -> Option<Seat> {
    let (offer, _) = lane.session.offer(sitter.id.kind)?;
    let number = lane.last_seat + 1;
    let (epoch, key) = (sitter.epoch, &*sitter.id.key);
    let written =
        lane.put(&FromNode::Activate(Activate { seat: number, offer, epoch, state: None, carried: None, key, fields }));
    if !written {
        return None;
    }
    lane.last_seat = number;
    lane.seats.insert(number, Some(sitter.slot));
    lane.session.seats.fetch_add(1, Ordering::Relaxed);
    Some(Seat { session: lane.session.number, number })
}

/// Why a host could not make an actor.
pub(super) fn refused(status: Status, payload: &[u8]) -> Refusal {
    if status != Status::ActorError
        && let Failure::Refused(refusal) = reply::failure(payload)
    {
        return refusal;
    }
    let message = match status {
        Status::ActorError => "its host says that it failed".to_owned(),
        _ => CallError::<Never>::from(reply::failure(payload)).to_string(),
    };
    Refusal::Activation { message }
}

pub(super) fn leave(why: Why) -> Leave {
    match why {
        Why::Idle => Leave::Idle,
        Why::Stopping => Leave::Stopping,
        Why::Asked => Leave::Asked,
        Why::Migrating => Leave::Migrating,
        Why::Superseded => Leave::Superseded,
        Why::Duplicate | Why::Leaving => Leave::Duplicate,
        Why::Upgraded => Leave::Upgraded,
        Why::Unsaved => Leave::Unsaved,
        Why::Stopped | Why::Killed => Leave::Stopped,
        _ => Leave::Failed,
    }
}

pub(super) fn remember(wakers: &mut Vec<Waker>, waker: &Waker) {
    if !wakers.iter().any(|known| known.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}

pub(super) fn key(slot: Slot) -> (u32, u32) {
    (slot.index, slot.generation)
}
