//! What a shard has of hosts: their lanes, and the seats and turns of its activations there.
//!
//! The machine of [`State`] says who sits where and which turns run; what comes here is told it, and who waits is woken.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::BytesMut;
use greenroom_protocols::host::{Cookie, LaneEvent, SessionId, Settings, Word};
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::ANY;
use greenroom_wire::Status;
use greenroom_wire::host::{Closing, Leave};
use greenroom_world::{Stream, Timestamp};

use super::lane::{End, Running, Wire};
use super::seats::{Place, Sits, Sitter, State, key, leave, remember};
use super::session::Session;
use super::state::Given;
use super::topics::Followed;
use super::turn::{LostHost, NewTurn, Next};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::shard::parts::ShardPart;
use crate::shard::{Shard, Slot};

/// A shard's part of hosts.
pub(crate) struct OnShard {
    pub(super) state: RefCell<State>,
    pub(super) followed: RefCell<Followed>,
}

impl OnShard {
    pub(super) fn new(settings: Settings) -> Self {
        Self { state: RefCell::new(State::new(settings)), followed: RefCell::default() }
    }

    pub(super) fn of(shard: &Shard) -> &Self {
        shard.part()
    }

    /// Tells the machine what has happened.
    pub(super) fn tell(&self, shard: &Shard, event: LaneEvent) {
        self.act(shard, |state| state.handle(event));
    }

    fn act(&self, shard: &Shard, act: impl FnOnce(&mut State) -> Vec<Waker>) {
        let woken = {
            let mut state = self.state.borrow_mut();
            (state.now, state.shard) = (shard.now(), shard.index());
            act(&mut state)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Has an activation made that is not known yet; `None` while it waits for something.
    fn want(&self, shard: &Shard, sitter: &Sitter<'_>, given: impl FnOnce() -> Given, waker: &Waker) -> Option<()> {
        let activation = key(sitter.slot);
        let is_new = {
            let mut state = self.state.borrow_mut();
            match state.places.get_mut(&activation) {
                // It is made anew once its host has left the seat.
                Some(place) if place.sits == Sits::Leaving => {
                    remember(&mut place.wakers, waker);
                    place.hook = shard.link_here();
                    return None;
                }
                Some(place) if place.sits == Sits::Nowhere => {
                    place.given = Some(given());
                    place.hook = shard.link_here();
                    false
                }
                Some(Place { sits: Sits::Ready, .. }) => false,
                Some(_) | None => {
                    let place = Place::new(sitter, given(), shard.link_here());
                    state.places.insert(activation, place);
                    true
                }
            }
        };
        if is_new {
            // What reliable actors are to do waits in a journal.
            let is_patient = shard.port().node.kinds().is_reliable(sitter.id.kind);
            let kind = sitter.id.kind.name().into();
            self.tell(shard, LaneEvent::Want { activation, kind, wanted: ANY, is_patient });
        }
        Some(())
    }

    /// Waits until a host has made an activation. Its host may leave or be lost at once: then its first turn gets it another seat.
    ///
    /// # Errors
    /// [`Refusal::NoHost`]: no host came in time. Or the host could not make it.
    pub(super) fn poll_seat(
        &self,
        shard: &Shard,
        sitter: &Sitter<'_>,
        given: impl FnOnce() -> Given,
        waker: &Waker,
    ) -> Poll<Result<(), Refusal>> {
        let activation = key(sitter.slot);
        let failed = |state: &mut State| match &state.places.get(&activation)?.sits {
            Sits::Failed(refusal) => {
                let refusal = refusal.clone();
                state.places.remove(&activation);
                Some(Poll::Ready(Err(refusal)))
            }
            _ => None,
        };
        if let Some(failed) = failed(&mut self.state.borrow_mut()) {
            return failed;
        }
        if self.want(shard, sitter, given, waker).is_none() {
            return Poll::Pending;
        }
        let mut state = self.state.borrow_mut();
        if let Some(failed) = failed(&mut state) {
            return failed;
        }
        match state.places.get_mut(&activation) {
            Some(Place { was_made: true, .. }) => Poll::Ready(Ok(())),
            Some(place) => {
                remember(&mut place.wakers, waker);
                Poll::Pending
            }
            None => Poll::Ready(Err(Refusal::Moved)),
        }
    }

    /// Leaves the seat, once no turn runs there; resolves when the host has.
    pub(super) fn poll_leave(&self, shard: &Shard, slot: Slot, why: Why, waker: &Waker) -> Poll<()> {
        let activation = key(slot);
        let is_told = {
            let mut state = self.state.borrow_mut();
            let Some(place) = state.places.get_mut(&activation) else { return Poll::Ready(()) };
            match place.sits {
                Sits::Failed(_) => {
                    state.places.remove(&activation);
                    return Poll::Ready(());
                }
                Sits::Leaving => true,
                Sits::Ready | Sits::Nowhere => {
                    (place.sits, place.why) = (Sits::Leaving, leave(why));
                    false
                }
            }
        };
        if !is_told {
            self.tell(shard, LaneEvent::Leave { activation, is_abandon: false });
        }
        match self.state.borrow_mut().places.get_mut(&activation) {
            Some(place) => {
                remember(&mut place.wakers, waker);
                place.hook = shard.link_here();
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Takes an activation that is gone, or is to be made anew, out of its seat, whatever runs there.
    pub(super) fn abandon(&self, shard: &Shard, slot: Slot, why: Leave) {
        let activation = key(slot);
        {
            let mut state = self.state.borrow_mut();
            let Some(place) = state.places.get_mut(&activation) else { return };
            if let Sits::Failed(_) = place.sits {
                state.places.remove(&activation);
                return;
            }
            if std::mem::replace(&mut place.sits, Sits::Leaving) != Sits::Leaving {
                place.why = why;
            }
        }
        self.tell(shard, LaneEvent::Leave { activation, is_abandon: true });
    }

    /// Begins a turn: it is sent when its activation's seat is ready and its lane has room.
    pub(super) fn poll_begin(
        &self,
        shard: &Shard,
        sitter: &Sitter<'_>,
        given: impl Fn() -> Given,
        new: &NewTurn,
        waker: &Waker,
    ) -> Poll<Cookie> {
        if self.want(shard, sitter, &given, waker).is_none() {
            return Poll::Pending;
        }
        let running = Running {
            activation: key(sitter.slot),
            actor: sitter.id.clone(),
            new: new.clone(),
            sent: None,
            link: shard.link_here(),
            baggage: shard.baggage(),
            deadline: shard.current_deadline(),
            waker: Some(waker.clone()),
            asked: Default::default(),
            end: None,
        };
        let refusal = match self.state.borrow().places.get(&running.activation).map(|place| &place.sits) {
            Some(Sits::Failed(refusal)) => Some(refusal.clone()),
            _ => None,
        };
        let mut begun = None;
        self.act(shard, |state| {
            let (cookie, event) = state.begin(running);
            begun = Some(cookie);
            if let Some(refusal) = refusal {
                // Nobody has a seat for it.
                state.fail(cookie, refusal);
                return Vec::new();
            }
            let woken = state.handle(event);
            // It may be sent to another seat than the one that the activation has now, which is then to be made.
            let waits = state.turns.get(&cookie).is_some_and(|running| running.sent.is_none());
            if let Some(place) = state.places.get_mut(&key(sitter.slot)) {
                place.given = waits.then(&given);
            }
            woken
        });
        begun.map_or(Poll::Pending, Poll::Ready)
    }

    /// What a turn does next, and in whose session it runs.
    pub(super) fn poll_turn(&self, cookie: Cookie, waker: &Waker) -> Poll<(u64, Next)> {
        let mut state = self.state.borrow_mut();
        let lost = (0, Next::Ended(End::Lost { is_again: false, host: LostHost::default() }));
        let Some(running) = state.turns.get_mut(&cookie) else { return Poll::Ready(lost) };
        let session = running.sent.as_ref().map_or(0, |sent| sent.session);
        if let Some(asked) = running.asked.pop_front() {
            return Poll::Ready((session, Next::Asked(asked)));
        }
        match running.end.take() {
            Some(end) => {
                state.turns.remove(&cookie);
                Poll::Ready((session, Next::Ended(end)))
            }
            None => {
                running.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Tells the host that a turn's caller has given up, if the host has it.
    pub(super) fn cancel(&self, shard: &Shard, cookie: Cookie) {
        let is_sent = self.state.borrow().turns.get(&cookie).is_some_and(|running| running.sent.is_some());
        if is_sent {
            self.tell(shard, LaneEvent::Cancel { cookie });
        }
    }

    /// Forgets a turn for which nobody waits any more.
    pub(super) fn drop_turn(&self, shard: &Shard, cookie: Cookie) {
        let dropped = {
            let mut state = self.state.borrow_mut();
            let dropped = state.turns.remove(&cookie);
            if let Some(Running { end: Some(End::Said { stream: Some(stream), .. }), sent: Some(sent), .. }) = &dropped
                && let Some(lane) = state.lanes.get_mut(&sent.session)
            {
                lane.give_up(stream.number);
            }
            dropped
        };
        self.tell(shard, LaneEvent::Cancel { cookie });
        drop(dropped);
    }

    /// The host says that it has made an actor, or that it could not.
    pub(super) fn activated(&self, shard: &Shard, session: u64, seat: u64, status: Status, payload: &[u8]) {
        self.act(shard, |state| state.activated(session, seat, status, payload));
    }

    /// The host has left a seat.
    pub(super) fn released(&self, shard: &Shard, session: u64, seat: u64, status: Status, payload: &[u8]) {
        self.act(shard, |state| state.released(session, seat, status, payload));
    }

    /// Ends a lane: its seats are held until the host may not act any more.
    pub(super) fn lose(&self, shard: &Shard, session: u64, code: Closing, reason: &str) {
        self.act(shard, |state| match state.close(session, code, reason) {
            true => state.handle(LaneEvent::Broke { session: SessionId(session) }),
            false => Vec::new(),
        });
    }

    /// True once the host of a session has dropped the seats of the lane to this shard that it has lost.
    pub(super) fn has_dropped(&self, number: u64) -> bool {
        self.state.borrow().machine.has_dropped(SessionId(number))
    }

    /// Hears what the control plane says of a session.
    pub(super) fn hear(&self, shard: &Shard, session: &Arc<Session>, word: Word) {
        self.act(shard, |state| {
            let (is_over, is_dropped) = (matches!(word, Word::Over { .. }), matches!(word, Word::Dropped { .. }));
            if let Word::Open { .. } = word {
                state.open(session);
            }
            let mut woken = state.handle(LaneEvent::Word(word));
            if is_dropped {
                woken.extend(state.join_early(session.number));
            }
            if is_over {
                state.lanes.remove(&session.number);
            }
            woken
        });
    }

    /// Takes in a lane that a host has joined.
    pub(super) fn join(&self, shard: &Shard, session: &Arc<Session>, stream: Box<dyn Stream>, joined: Joined) {
        let stream = match stream.rebind() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%error, host = session.name, "a host's lane could not be taken over"),
        };
        let wire = Wire::new(stream, joined.input, joined.decoder, shard.here(), session.number);
        self.act(shard, |state| state.join(session.number, wire));
    }
}

impl ShardPart for OnShard {
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        let due = self.state.borrow().deadline()?;
        if due > now {
            return Some(due);
        }
        self.tell(shard, LaneEvent::Tick);
        self.state.borrow().deadline()
    }

    fn admits(&self, shard: &Shard, id: &ActorId, _: NodeId, _: &[u8]) -> Result<(), String> {
        let kinds = shard.port().node.kinds();
        let has_seat = kinds.foreign(id.kind).is_none() || self.state.borrow().machine.has_seat_for(id.kind.name());
        has_seat.then_some(()).ok_or_else(|| "no host has a seat for it here".to_owned())
    }

    fn lost(&self, shard: &Shard, slot: Slot) {
        self.abandon(shard, slot, Leave::Failed);
    }

    fn ended(&self, shard: &Shard, slot: Slot, why: Why) {
        self.followed.borrow_mut().forget(slot);
        self.abandon(shard, slot, leave(why));
    }
}

/// What was read of a lane behind its Join.
pub(super) struct Joined {
    pub(super) input: BytesMut,
    pub(super) decoder: greenroom_wire::host::Decoder,
}
