//! What a shard has of hosts: their lanes, and the seats of its activations there.
//!
//! An activation whose seat is lost is *held* until its host may not act any more; then it is given another seat.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use bytes::BytesMut;
use greenroom_wire::Status;
use greenroom_wire::host::{Closing, Fields, FromNode, Leave};
use greenroom_world::{Stream, Timestamp};

use super::Hosts;
use super::lane::{End, Lane, Running, Wire};
use super::seats::{Drawn, Place, Seat, Sitter, State, hold, key, leave, refused, remember, seat};
use super::session::{FromShard, Session};
use super::turn::{Began, NewTurn, Next};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::Kind;
use crate::shard::parts::ShardPart;
use crate::shard::{Shard, Slot};

/// A shard's part of hosts.
#[derive(Default)]
pub(crate) struct OnShard {
    pub(super) state: RefCell<State>,
    /// When somebody has waited long enough for a host.
    due: Cell<Option<Timestamp>>,
}

impl OnShard {
    pub(super) fn of(shard: &Shard) -> &Self {
        shard.part()
    }

    /// The seat of an activation, which gets one if it has none.
    ///
    /// # Errors
    /// [`Refusal::NoHost`]: no host came in time. Or the host could not make it.
    pub(super) fn poll_seat(
        &self,
        shard: &Shard,
        sitter: &Sitter<'_>,
        fields: Fields<'_>,
        waker: &Waker,
    ) -> Poll<Result<Seat, Refusal>> {
        let now = shard.now();
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let place = places.entry(key(sitter.slot)).or_insert(Place::Waiting { since: now, wakers: Vec::new() });
        let since = match place {
            Place::Ready(seat) => return Poll::Ready(Ok(*seat)),
            Place::Making { wakers, .. } | Place::Held { wakers } => {
                remember(wakers, waker);
                return Poll::Pending;
            }
            Place::Leaving { .. } => return Poll::Ready(Err(Refusal::Moved)),
            Place::Failed(refusal) => {
                let refusal = refusal.clone();
                places.remove(&key(sitter.slot));
                return Poll::Ready(Err(refusal));
            }
            Place::Waiting { since, .. } => *since,
        };
        let _ = (lanes, places);
        let drawn = state.draw(sitter.id.kind, shard.port().node.world().random());
        let State { lanes, places } = &mut *state;
        match drawn {
            Drawn::Session(session) => {
                let at = lanes.get_mut(&session).and_then(|lane| seat(lane, sitter, fields));
                let Some(at) = at else {
                    let message = "what is kept of it is too large for a host's frame".to_owned();
                    places.remove(&key(sitter.slot));
                    return Poll::Ready(Err(Refusal::Activation { message }));
                };
                let before = places.insert(key(sitter.slot), Place::Making { at, wakers: vec![waker.clone()] });
                drop(state);
                if let Some(Place::Waiting { wakers, .. }) = before {
                    wakers.into_iter().for_each(Waker::wake);
                }
                Poll::Pending
            }
            Drawn::Full(bound) => {
                places.remove(&key(sitter.slot));
                let queue = format!("the seats of the hosts of {:?}", sitter.id.kind.name());
                Poll::Ready(Err(Refusal::Overloaded { queue, bound }))
            }
            Drawn::Nobody => {
                let until = shard.port().node.part::<Hosts>().waits_until(sitter.id.kind, since);
                if until <= now {
                    places.remove(&key(sitter.slot));
                    return Poll::Ready(Err(Refusal::NoHost { kind: sitter.id.kind.name().to_owned() }));
                }
                if let Some(Place::Waiting { wakers, .. }) = places.get_mut(&key(sitter.slot)) {
                    remember(wakers, waker);
                }
                self.due.set(Some(self.due.get().map_or(until, |due| due.min(until))));
                Poll::Pending
            }
        }
    }

    /// Leaves the seat, once no turn runs there; resolves when the host has.
    pub(super) fn poll_leave(&self, slot: Slot, why: Why, waker: &Waker) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let Some(place) = places.get_mut(&key(slot)) else { return Poll::Ready(()) };
        match place {
            Place::Ready(at) | Place::Making { at, .. } => {
                let at = *at;
                let Some(lane) = lanes.get_mut(&at.session) else { return Poll::Ready(()) };
                let (why, is_carry, is_abandon) = (leave(why), false, false);
                lane.put(&FromNode::Deactivate { seat: at.number, why, is_carry, is_abandon });
                *place = Place::Leaving { at, waker: Some(waker.clone()) };
                Poll::Pending
            }
            Place::Leaving { waker: known, .. } => {
                *known = Some(waker.clone());
                Poll::Pending
            }
            Place::Held { wakers } => {
                remember(wakers, waker);
                Poll::Pending
            }
            Place::Waiting { .. } | Place::Failed(_) => {
                places.remove(&key(slot));
                Poll::Ready(())
            }
        }
    }

    /// Takes an activation that is gone out of its seat, whatever runs there.
    pub(super) fn abandon(&self, slot: Slot, why: Leave) {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let Some(place) = places.remove(&key(slot)) else { return };
        let (at, told) = match place {
            Place::Ready(at) | Place::Making { at, .. } => (at, true),
            Place::Leaving { at, .. } => (at, false),
            Place::Waiting { .. } | Place::Held { .. } | Place::Failed(_) => return,
        };
        if let Some(lane) = lanes.get_mut(&at.session) {
            if told {
                lane.put(&FromNode::Deactivate { seat: at.number, why, is_carry: false, is_abandon: true });
            }
            if let Some(taken) = lane.seats.get_mut(&at.number) {
                *taken = None;
            }
        }
    }

    /// Begins a turn in a seat, if its lane has room.
    pub(super) fn poll_begin(
        &self,
        shard: &Shard,
        (slot, at): (Slot, Seat),
        new: &NewTurn<'_>,
        waker: &Waker,
    ) -> Poll<Began> {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let place = places.get_mut(&key(slot)).filter(|place| matches!(place, Place::Ready(known) if *known == at));
        let Some(place) = place else { return Poll::Ready(Began::Lost) };
        let lane = match lanes.get_mut(&at.session) {
            Some(lane) if lane.is_open() => lane,
            // Its end is known, and this shard has yet to hear of it: who asks again must not find the seat as it was.
            Some(_) => {
                hold(place);
                return Poll::Ready(Began::Lost);
            }
            None => {
                *place = Place::Waiting { since: shard.now(), wakers: Vec::new() };
                return Poll::Ready(Began::Lost);
            }
        };
        let Some(method) = lane.session.offer(new.kind).and_then(|(_, taken)| taken.method(new.method)) else {
            return Poll::Ready(Began::NoMethod);
        };
        if lane.turns.len() >= lane.session.turns_max * OPEN_TIMES {
            let queue = format!("the open turns of host {:?}", lane.session.name);
            let bound = (lane.session.turns_max * OPEN_TIMES) as u64;
            return Poll::Ready(Began::Refused(Refusal::Overloaded { queue, bound }));
        }
        if !lane.has_room() {
            lane.waiting.push_back(waker.clone());
            return Poll::Pending;
        }
        let (turn, position) = (lane.last_turn + 1, lane.position());
        if !lane.put(&FromNode::Turn(new.frame(turn, at.number, method))) {
            let message = "the arguments are too large for a host's frame".to_owned();
            return Poll::Ready(Began::Refused(Refusal::Unsendable { message }));
        }
        let len = lane.position() - position;
        lane.last_turn = turn;
        lane.running += 1;
        lane.sent += len;
        let running = Running {
            len,
            at: position,
            requests: 0,
            link: shard.link_here(),
            baggage: shard.baggage(),
            deadline: shard.current_deadline(),
            waker: Some(waker.clone()),
            asked: Default::default(),
            end: None,
        };
        lane.turns.insert(turn, running);
        Poll::Ready(Began::Turn(turn))
    }

    /// What a turn at a host does next.
    pub(super) fn poll_turn(&self, session: u64, turn: u64, waker: &Waker) -> Poll<Next> {
        let mut state = self.state.borrow_mut();
        let lost = || Poll::Ready(Next::Ended(End::Lost { begun: true }));
        let Some(lane) = state.lanes.get_mut(&session) else { return lost() };
        let Some(running) = lane.turns.get_mut(&turn) else { return lost() };
        if let Some(asked) = running.asked.pop_front() {
            return Poll::Ready(Next::Asked(asked));
        }
        if running.end.is_none() {
            running.waker = Some(waker.clone());
            return Poll::Pending;
        }
        let end = lane.take_turn(turn).and_then(|running| running.end);
        state.clear_gone(session);
        end.map_or_else(lost, |end| Poll::Ready(Next::Ended(end)))
    }

    /// Tells the host that a turn's caller has given up.
    pub(super) fn cancel(&self, session: u64, turn: u64) {
        if let Some(lane) = self.state.borrow_mut().lanes.get_mut(&session) {
            lane.put(&FromNode::CancelTurn { turn });
        }
    }

    /// Forgets a turn for which nobody waits any more.
    pub(super) fn drop_turn(&self, session: u64, turn: u64) {
        let mut state = self.state.borrow_mut();
        let dropped = state.lanes.get_mut(&session).and_then(|lane| lane.take_turn(turn));
        state.clear_gone(session);
        drop(state);
        drop(dropped);
    }

    /// The host says that it has made an actor, or that it could not.
    pub(super) fn activated(&self, session: u64, number: u64, status: Status, payload: &[u8]) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let Some(lane) = lanes.get_mut(&session) else { return Ok(()) };
        let Some(slot) = lane.seats.get(&number).copied() else {
            return Err(format!("Activated names seat {number}, which there is not"));
        };
        let failed = status != Status::Ok;
        if failed {
            lane.seats.remove(&number);
            lane.session.seats.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(slot) = slot else { return Ok(()) };
        let Some(place) = places.get_mut(&key(slot)) else { return Ok(()) };
        match place {
            Place::Making { at, wakers } if at.number == number && at.session == session => {
                let (at, wakers) = (*at, std::mem::take(wakers));
                *place = if failed { Place::Failed(refused(status, payload)) } else { Place::Ready(at) };
                drop(state);
                wakers.into_iter().for_each(Waker::wake);
                Ok(())
            }
            Place::Leaving { .. } => Ok(()),
            _ => Err(format!("Activated names seat {number}, which is made already")),
        }
    }

    /// The host has left a seat.
    pub(super) fn released(&self, shard: &Shard, session: u64, number: u64) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let Some(lane) = lanes.get_mut(&session) else { return Ok(()) };
        let Some(slot) = lane.seats.remove(&number) else {
            return Err(format!("Released names seat {number}, which there is not"));
        };
        lane.session.seats.fetch_sub(1, Ordering::Relaxed);
        if lane.seats.is_empty() && lane.session.draining.load(Ordering::Relaxed) {
            lane.session.tell(FromShard::Drained(shard.index()));
        }
        let Some(slot) = slot else { return Ok(()) };
        if let Some(Place::Leaving { waker, .. }) = places.get_mut(&key(slot)) {
            let waker = waker.take();
            places.remove(&key(slot));
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            return Ok(());
        }
        Err(format!("seat {number} was left though nobody had asked for that"))
    }

    /// Ends a lane: its seats are held until the host may not act any more.
    pub(super) fn lose(&self, shard: &Shard, session: u64, reason: &str) {
        let mut state = self.state.borrow_mut();
        let State { lanes, places } = &mut *state;
        let Some(lane) = lanes.get_mut(&session) else { return };
        let Some(mut wire) = lane.lose() else { return };
        let name = lane.session.name.clone();
        if !lane.session.is_lost() {
            tracing::warn!(host = name, session, shard = shard.index(), reason, "a host's lane has ended");
        }
        lane.session.tell(FromShard::LaneLost(shard.index()));
        for slot in lane.seats.values().flatten() {
            if let Some(place) = places.get_mut(&key(*slot)) {
                hold(place);
            }
        }
        drop(state);
        wire.say_goodbye(Closing::BadFrame, reason);
        let _ = wire.flush();
    }

    /// Gives the seats of a lane away whose host has dropped them, or may not act any more.
    pub(super) fn free(&self, shard: &Shard, session: u64, is_gone: bool) {
        self.lose(shard, session, "its session is over");
        let mut woken = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let State { lanes, places } = &mut *state;
            let Some(lane) = lanes.get_mut(&session) else { return };
            let seats = std::mem::take(&mut lane.seats);
            lane.session.seats.fetch_sub(seats.len() as u32, Ordering::Relaxed);
            for slot in seats.into_values().flatten() {
                if let Some(place) = places.get_mut(&key(slot)) {
                    let waits = Place::Waiting { since: shard.now(), wakers: Vec::new() };
                    match std::mem::replace(place, waits) {
                        Place::Held { wakers } => woken.extend(wakers),
                        Place::Leaving { waker, .. } => woken.extend(waker),
                        _ => {}
                    }
                }
            }
            lane.is_gone |= is_gone;
            state.clear_gone(session);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Takes in a lane that a host has joined.
    pub(super) fn join(&self, shard: &Shard, session: &Arc<Session>, stream: Box<dyn Stream>, joined: Joined) {
        let stream = match stream.rebind() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%error, host = session.name, "a host's lane could not be taken over"),
        };
        let woken = {
            let mut state = self.state.borrow_mut();
            let State { lanes, places } = &mut *state;
            if session.is_lost() {
                return;
            }
            let lane = lanes.entry(session.number).or_insert_with(|| Lane::new(session.clone()));
            if lane.wire.is_some() || !lane.seats.is_empty() {
                drop(state);
                let reason = "the shard's lane is joined already, or its seats are not dropped";
                let mut wire = Wire::new(stream, BytesMut::new(), joined.decoder, shard.here(), session.number);
                wire.say_goodbye(Closing::BadFrame, reason);
                let _ = wire.flush();
                return;
            }
            let wire = Wire::new(stream, joined.input, joined.decoder, shard.here(), session.number);
            wire.flag().clone().raise();
            lane.wire = Some(wire);
            // Who waits for a host may have found one.
            let waiting = places.values_mut().filter_map(|place| match place {
                Place::Waiting { wakers, .. } => Some(std::mem::take(wakers)),
                _ => None,
            });
            waiting.flatten().collect::<Vec<_>>()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Lets the activations end, at turn boundaries, that are in seats of `session` and of a kind for which `leaves` holds.
    pub(super) fn clear(&self, shard: &Shard, session: u64, leaves: impl Fn(Kind) -> bool, why: Why) {
        let slots: Vec<Slot> = {
            let state = self.state.borrow();
            let Some(lane) = state.lanes.get(&session) else { return };
            if lane.seats.is_empty() && lane.session.draining.load(Ordering::Relaxed) {
                lane.session.tell(FromShard::Drained(shard.index()));
            }
            lane.seats.values().flatten().copied().collect()
        };
        for slot in slots {
            if shard.activation(slot).is_some_and(|activation| leaves(activation.id().kind)) {
                shard.end_activation(slot, why);
            }
        }
    }

    pub(super) fn is_joined(&self, session: u64) -> bool {
        self.state.borrow().lanes.contains_key(&session)
    }
}

impl ShardPart for OnShard {
    fn look(&self, _: &Shard, now: Timestamp) -> Option<Timestamp> {
        let due = self.due.get()?;
        if due > now {
            return Some(due);
        }
        self.due.set(None);
        let mut state = self.state.borrow_mut();
        let waiting = state.places.values_mut().filter_map(|place| match place {
            Place::Waiting { wakers, .. } => Some(std::mem::take(wakers)),
            _ => None,
        });
        let woken: Vec<Waker> = waiting.flatten().collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        None
    }

    fn lost(&self, _: &Shard, slot: Slot) {
        self.abandon(slot, Leave::Failed);
    }

    fn ended(&self, _: &Shard, slot: Slot, why: Why) {
        self.abandon(slot, leave(why));
    }
}

/// What was read of a lane behind its Join.
pub(super) struct Joined {
    pub(super) input: BytesMut,
    pub(super) decoder: greenroom_wire::host::Decoder,
}

/// Turns that may be open on a lane, for each that may run.
const OPEN_TIMES: usize = 16;
