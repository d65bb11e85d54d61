//! Who sits and runs where: the machine of a shard's hosts, and what its words mean for frames and turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::host::{
    Activation, Cookie, Fate, LaneAction, LaneEvent, Lanes, Named, Seat, SessionId, Settings, TurnNumber,
};
use greenroom_wire::Status;
use greenroom_wire::host::{Activate, Closing, FromNode, Leave};
use greenroom_world::Timestamp;

use super::ask::Asked;
use super::lane::{End, Lane, Running, Sent};
use super::packing::Packing;
use super::session::{FromShard, Told};
use super::state::Given;
use super::turn::LostHost;
use crate::actor::error::{CallError, Failure, HOST_LOST_ACTIVATING, Never, Refusal};
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::actor::reply;
use crate::shard::Slot;
use crate::shard::chain::Link;

/// What a shard has of hosts.
pub(super) struct State {
    pub(super) machine: Lanes,
    pub(super) now: Timestamp,
    pub(super) shard: u16,
    pub(super) lanes: BTreeMap<u64, Lane>,
    /// Activations that the machine knows, or that could not be made.
    pub(super) places: BTreeMap<Activation, Place>,
    pub(super) turns: BTreeMap<Cookie, Running>,
    last_cookie: u64,
    /// What the machine has said last: kept for its room.
    said: Vec<LaneAction>,
}

/// An activation whose turns hosts run.
pub(super) struct Place {
    pub(super) id: ActorId,
    pub(super) epoch: u64,
    pub(super) sits: Sits,
    /// Whether a host has made it, also if it has lost that seat since.
    pub(super) was_made: bool,
    /// The newest version of its kind that a host was to make it of.
    version: u16,
    /// What is stored of it, while it is to be made or a turn of its waits to be sent.
    pub(super) given: Option<Given>,
    /// What it has brought from its last seat, here or at another node.
    pub(super) carried: Option<Bytes>,
    pub(super) packing: Packing,
    /// Why it leaves its seat for good.
    pub(super) why: Leave,
    /// Why it could not be made.
    refusal: Option<Refusal>,
    /// What the hook of the seat asks in which it is being made, which is no turn.
    pub(super) asked: VecDeque<Asked>,
    /// The turn that waits while the hook of its seat runs.
    pub(super) hook: Link,
    pub(super) wakers: Vec<Waker>,
}

/// Where an activation is among the hosts.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sits {
    /// It has no seat, or none that is ready.
    Nowhere,
    Ready,
    /// It leaves its seat for good, or to be made anew.
    Leaving,
    /// It could not be made: nothing is known of it any more.
    Failed(Refusal),
}

/// Whose seat is asked for.
pub(super) struct Sitter<'a> {
    pub(super) slot: Slot,
    pub(super) id: &'a ActorId,
    pub(super) epoch: u64,
    /// What it has brought from another node.
    pub(super) carried: Option<&'a Bytes>,
}

impl Place {
    pub(super) fn new(sitter: &Sitter<'_>, given: Given, hook: Link) -> Self {
        Self {
            id: sitter.id.clone(),
            epoch: sitter.epoch,
            sits: Sits::Nowhere,
            was_made: false,
            version: 0,
            given: Some(given),
            carried: sitter.carried.cloned(),
            packing: Packing::Stays,
            why: Leave::Failed,
            refusal: None,
            asked: VecDeque::new(),
            hook,
            wakers: Vec::new(),
        }
    }
}

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            machine: Lanes::new(settings, 0),
            now: Timestamp::default(),
            shard: 0,
            lanes: BTreeMap::new(),
            places: BTreeMap::new(),
            turns: BTreeMap::new(),
            last_cookie: 0,
            said: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.machine.deadline()
    }

    /// The turn that a frame on a session's lane names, if it is live.
    pub(super) fn turn(&self, session: u64, turn: u64) -> Option<Cookie> {
        match self.machine.turn(SessionId(session), TurnNumber(turn)) {
            Named::Live(cookie) => Some(cookie),
            Named::Gone => None,
        }
    }

    /// The activation in a seat of a session's lane.
    pub(super) fn place(&mut self, session: u64, seat: u64) -> Option<&mut Place> {
        let activation = self.machine.activation(SessionId(session), Seat(seat))?;
        self.places.get_mut(&activation)
    }

    /// Returns the callers that wait for a call that the hook of a seat makes: the actor in it, and those that wait for that.
    pub(super) fn callers_of_hook(&self, session: u64, seat: u64) -> Link {
        let Some(activation) = self.machine.activation(SessionId(session), Seat(seat)) else { return Link::None };
        let Some(place) = self.places.get(&activation) else { return Link::None };
        let waits = |running: &&Running| running.activation == activation && running.end.is_none();
        match place.sits {
            Sits::Nowhere => self.turns.values().find(waits).map_or(&place.hook, |running| &running.link).clone(),
            Sits::Leaving => place.hook.clone(),
            // No hook runs: what else a host does for an actor keeps none of its turns.
            Sits::Ready | Sits::Failed(_) => Link::None,
        }
    }

    /// Takes in what is asked in the hook of a seat whose actor is being made: by a turn that waits for that, else by who has it made. Who is
    /// to be woken.
    ///
    /// # Errors
    /// What was asked: the seat is none that is being made.
    pub(super) fn asked_in_hook(&mut self, seat: u64, asked: Asked) -> Result<Vec<Waker>, Asked> {
        let Some(activation) = self.machine.activation(SessionId(asked.origin.session), Seat(seat)) else {
            return Err(asked);
        };
        let Some(place) = self.places.get_mut(&activation).filter(|place| place.sits == Sits::Nowhere) else {
            return Err(asked);
        };
        let waits = |running: &&mut Running| running.activation == activation && running.end.is_none();
        match self.turns.values_mut().find(waits) {
            Some(running) => {
                running.asked.push_back(asked);
                Ok(running.waker.take().into_iter().collect())
            }
            None => {
                place.asked.push_back(asked);
                Ok(std::mem::take(&mut place.wakers))
            }
        }
    }

    /// Takes in a turn that is to begin.
    pub(super) fn begin(&mut self, running: Running) -> (Cookie, LaneEvent) {
        self.last_cookie += 1;
        let cookie = Cookie(self.last_cookie);
        let (activation, runs_again) = (running.activation, running.runs_again());
        let event = LaneEvent::Begin { activation, cookie, runs_again, len: running.len() };
        self.turns.insert(cookie, running);
        (cookie, event)
    }

    /// Tells the machine, and does what it says. Who is to be woken once nothing of this is borrowed any more.
    pub(super) fn handle(&mut self, event: LaneEvent) -> Vec<Waker> {
        let mut woken = Vec::new();
        let mut follows = Vec::new();
        let mut is_seating = !matches!(
            event,
            LaneEvent::Begin { .. }
                | LaneEvent::Ended { .. }
                | LaneEvent::Waits { .. }
                | LaneEvent::GoesOn { .. }
                | LaneEvent::Cancel { .. }
        );
        let mut next = Some(event);
        while let Some(event) = next {
            let mut said = std::mem::take(&mut self.said);
            self.machine.handle(self.now, event, &mut said);
            for action in said.drain(..) {
                is_seating |= matches!(action, LaneAction::Activate { .. });
                follows.extend(self.carry_out(action, &mut woken));
            }
            self.said = said;
            next = follows.pop();
        }
        if is_seating {
            self.count_seats();
        }
        woken
    }

    /// Does what the machine wants; what it is to be told of that.
    fn carry_out(&mut self, action: LaneAction, woken: &mut Vec<Waker>) -> Option<LaneEvent> {
        match action {
            LaneAction::Activate { session, seat, activation, offer } => {
                return self.activate(session, seat, activation, offer);
            }
            LaneAction::Ready { activation } => {
                if let Some(place) = self.places.get_mut(&activation) {
                    (place.sits, place.was_made, place.carried) = (Sits::Ready, true, None);
                    woken.append(&mut place.wakers);
                }
            }
            LaneAction::NotMade { activation } => {
                let refusal = self.places.get_mut(&activation).and_then(|place| place.refusal.take());
                let unmade = || Refusal::Activation { message: HOST_LOST_ACTIVATING.to_owned() };
                self.fail_place(activation, refusal.unwrap_or_else(unmade), woken);
            }
            LaneAction::NoHost { activation, is_full } => {
                let refusal = self.no_seat(activation, is_full);
                self.fail_place(activation, refusal, woken);
            }
            LaneAction::Unseated { activation } => {
                if let Some(place) = self.places.get_mut(&activation) {
                    place.loses_what_it_held(|| "its host was lost as it left".to_owned());
                    if place.sits == Sits::Ready {
                        place.sits = Sits::Nowhere;
                    }
                }
            }
            LaneAction::Send { session, seat, turn, cookie } => return self.send(session, seat, turn, cookie, woken),
            LaneAction::CancelTurn { session, turn } => self.put(session, &FromNode::CancelTurn { turn: turn.0 }),
            LaneAction::End { cookie } => {
                woken.extend(self.turns.get_mut(&cookie).and_then(|running| running.waker.take()));
            }
            LaneAction::Fail { cookie, fate } => {
                if let Some(end) = self.turns.get(&cookie).map(|running| self.came_to(running, fate))
                    && let Some(running) = self.turns.get_mut(&cookie)
                {
                    running.end.get_or_insert(end);
                    woken.extend(running.waker.take());
                }
            }
            LaneAction::Deactivate { session, seat, activation, is_carry, is_abandon } => {
                let why = self.places.get_mut(&activation).map_or(Leave::Upgraded, |place| place.leaves(is_carry));
                if let Some(lane) = self.lanes.get_mut(&session.0) {
                    lane.streams.end_of(seat.0);
                }
                self.put(session, &FromNode::Deactivate { seat: seat.0, why, is_carry, is_abandon });
            }
            LaneAction::Carried { activation } => {
                if let Some(place) = self.places.get_mut(&activation) {
                    place.has_packed();
                    woken.append(&mut place.wakers);
                }
            }
            LaneAction::Left { activation } => {
                woken.extend(self.places.remove(&activation).into_iter().flat_map(|place| place.wakers));
            }
            // Streams are kept with their lane, and end with their seat there.
            LaneAction::StreamLost { .. } => {}
            LaneAction::LaneBroken { session } => self.say(session, FromShard::LaneLost(self.shard)),
            LaneAction::Drained { session } => self.say(session, FromShard::Drained(self.shard)),
            LaneAction::CloseLane { session, fault } => {
                match fault {
                    Some(fault) => self.close(session.0, Closing::BadFrame, &fault.to_string()),
                    None => self.close(session.0, Closing::Done, "its session is over, as its control lane has said"),
                };
            }
        }
        None
    }

    fn put(&mut self, session: SessionId, frame: &FromNode<'_>) {
        if let Some(lane) = self.lanes.get_mut(&session.0) {
            lane.put(frame);
        }
    }

    fn say(&self, session: SessionId, what: FromShard) {
        if let Some(lane) = self.lanes.get(&session.0) {
            lane.session.tell(Told::Shard(what));
        }
    }

    fn activate(&mut self, session: SessionId, seat: Seat, activation: Activation, offer: u32) -> Option<LaneEvent> {
        let (place, lane) = (self.places.get_mut(&activation)?, self.lanes.get_mut(&session.0)?);
        let version =
            lane.session.offers.get(offer as usize).and_then(|taken| taken.get()).map(|taken| taken.offer.version);
        place.version = place.version.max(version.unwrap_or_default());
        let none = Given::default();
        // It is kept: the next host is given the same, if this one is lost before it has made the actor.
        let given = place.given.as_ref().unwrap_or(&none);
        let reads = lane.session.reads;
        let read = reads.written_fields(given.fields.fields()).and_then(|fields| {
            Ok((fields, place.carried.as_deref().map(|carried| reads.written(carried)).transpose()?))
        });
        let (fields, carried) = match read {
            Ok(read) => read,
            Err(error) => {
                let message =
                    format!("what is kept of it cannot be told its host, which reads one codec only: {error}");
                place.refusal = Some(Refusal::Activation { message });
                return Some(LaneEvent::Activated { session, seat, is_ready: false });
            }
        };
        let frame = Activate {
            seat: seat.0,
            offer,
            epoch: place.epoch,
            state: given.state.as_deref(),
            carried: carried.as_deref(),
            key: &place.id.key,
            fields: fields.as_ref().unwrap_or(&given.fields).fields(),
        };
        if lane.put(&FromNode::Activate(frame)) {
            return None;
        }
        let message = "what is kept of it is too large for a host's frame".to_owned();
        place.refusal = Some(Refusal::Activation { message });
        Some(LaneEvent::Activated { session, seat, is_ready: false })
    }

    fn send(
        &mut self,
        session: SessionId,
        seat: Seat,
        turn: TurnNumber,
        cookie: Cookie,
        woken: &mut Vec<Waker>,
    ) -> Option<LaneEvent> {
        let (running, lane) = (self.turns.get_mut(&cookie), self.lanes.get_mut(&session.0));
        let (Some(running), Some(lane)) = (running, lane) else {
            return Some(LaneEvent::Ended { session, turn, stream: None });
        };
        let kind = self.places.get(&running.activation).map(|place| place.id.kind);
        let offer = kind.and_then(|kind| lane.session.offer(kind));
        let position = lane.position();
        let method = offer.and_then(|(_, taken)| taken.method(running.new.method));
        let left = (running.deadline != Timestamp::NEVER)
            .then(|| running.deadline.since(self.now).max(Duration::from_micros(1)));
        let end = match method {
            None => End::NoMethod,
            Some(method) => match lane.session.reads.written(&running.new.payload) {
                Ok(payload)
                    if lane.put(&FromNode::Turn(running.new.frame((turn.0, seat.0, method), left, &payload))) =>
                {
                    running.sent = Some(Sent { session: session.0, seat: seat.0, position });
                    return None;
                }
                Ok(_) => {
                    let message = "the arguments are too large for a host's frame".to_owned();
                    End::Refused(Refusal::Unsendable { message })
                }
                Err(error) => End::Refused(reply::invalid(&error)),
            },
        };
        running.end = Some(end);
        woken.extend(running.waker.take());
        Some(LaneEvent::Ended { session, turn, stream: None })
    }

    /// What a turn is told that came to nothing.
    fn came_to(&self, running: &Running, fate: Fate) -> End {
        let is_begun = running.sent.as_ref().is_some_and(|sent| {
            self.lanes.get(&sent.session).is_none_or(|lane| lane.is_open() || sent.position < lane.written)
        });
        let session = running.sent.as_ref().and_then(|sent| self.lanes.get(&sent.session));
        let host = LostHost { is_begun, session: session.map(|lane| lane.session.clone()) };
        match fate {
            Fate::Again => End::Lost { is_again: true, host },
            // What was not written yet has not begun.
            Fate::Unknown => End::Lost { is_again: !is_begun, host },
            Fate::Abandoned | Fate::Cancelled => End::Lost { is_again: false, host },
            Fate::NoHost => End::Refused(self.no_seat(running.activation, false)),
            Fate::Unseated => {
                let refusal = self.places.get(&running.activation).and_then(|place| place.refusal.clone());
                End::Refused(refusal.unwrap_or(Refusal::Moved))
            }
            Fate::Overloaded => End::Refused(match self.machine.seat_of(running.activation) {
                None => self.no_seat(running.activation, true),
                Some((session, _)) => {
                    let name = self.lanes.get(&session.0).map_or("", |lane| &lane.session.name);
                    let bound = self.lanes.get(&session.0).map_or(0, |lane| lane.session.turns_open_max());
                    Refusal::Overloaded { queue: format!("the open turns of host {name:?}"), bound }
                }
            }),
        }
    }

    fn no_seat(&self, activation: Activation, is_full: bool) -> Refusal {
        let place = self.places.get(&activation);
        let kind = place.map(|place| place.id.kind);
        let name = kind.map_or("", |kind| kind.name());
        if !is_full {
            let offered = self.lanes.values().filter_map(|lane| Some(lane.session.offer(kind?)?.1.offer.version)).max();
            let (had, there) = (place.map_or(0, |place| place.version), offered.unwrap_or_default());
            // Another version may be too old or too new for it; of the same one a host has just come.
            let (had, there) = if had > there { (had, there) } else { (0, 0) };
            return Refusal::NoHost { kind: name.to_owned(), had, there };
        }
        let hosts = self.lanes.values().filter(|lane| kind.is_some_and(|kind| lane.session.offer(kind).is_some()));
        let bound = hosts.map(|lane| u64::from(lane.session.bounds().seats_max)).sum();
        let queue = format!("the seats of the hosts of {name:?}");
        Refusal::Overloaded { queue, bound }
    }

    fn fail_place(&mut self, activation: Activation, refusal: Refusal, woken: &mut Vec<Waker>) {
        if let Some(place) = self.places.get_mut(&activation) {
            place.sits = Sits::Failed(refusal);
            woken.append(&mut place.wakers);
        }
    }

    /// Closes a lane's connection, if it has one.
    pub(super) fn close(&mut self, session: u64, code: Closing, reason: &str) -> bool {
        let Some(lane) = self.lanes.get_mut(&session) else { return false };
        let Some(mut wire) = lane.close() else { return false };
        let (host, shard) = (&lane.session.name, self.shard);
        match code {
            _ if lane.session.is_lost() => {}
            Closing::Done => tracing::info!(host, session, shard, reason, "a host's lane has ended"),
            _ => tracing::warn!(host, session, shard, reason, "a host's lane has ended"),
        }
        wire.say_goodbye(code, reason);
        let _ = wire.flush();
        true
    }

    /// The host has answered an Activate.
    pub(super) fn activated(&mut self, session: u64, seat: u64, status: Status, payload: &[u8]) -> Vec<Waker> {
        let is_ready = status == Status::Ok;
        if !is_ready && let Some(place) = self.place(session, seat) {
            place.refusal = Some(refused(status, payload));
        }
        self.handle(LaneEvent::Activated { session: SessionId(session), seat: Seat(seat), is_ready })
    }

    /// The host has dropped a seat.
    pub(super) fn released(&mut self, session: u64, seat: u64, status: Status, payload: &[u8]) -> Vec<Waker> {
        match self.place(session, seat) {
            Some(place) if status != Status::Ok => place.loses_what_it_held(|| why(status, payload)),
            Some(place) if !payload.is_empty() => place.carried = Some(Bytes::copy_from_slice(payload)),
            _ => {}
        }
        self.handle(LaneEvent::Released { session: SessionId(session), seat: Seat(seat) })
    }

    /// Keeps the sessions' counts of their seats.
    fn count_seats(&mut self) {
        for (session, lane) in &mut self.lanes {
            let (seats, ..) = self.machine.load(SessionId(*session));
            let before = std::mem::replace(&mut lane.counted, seats as u32);
            let seats = &lane.session.seats;
            match lane.counted.checked_sub(before) {
                Some(more) => _ = seats.fetch_add(more, Ordering::Relaxed),
                None => _ = seats.fetch_sub(before - lane.counted, Ordering::Relaxed),
            }
        }
    }

    /// Ends a turn that has not begun.
    pub(super) fn fail(&mut self, cookie: Cookie, refusal: Refusal) {
        if let Some(running) = self.turns.get_mut(&cookie) {
            running.end = Some(End::Refused(refusal));
        }
    }

    /// Hears of a session that has opened.
    pub(super) fn open(&mut self, session: &Arc<super::session::Session>) {
        self.lanes.entry(session.number).or_insert_with(|| Lane::new(session.clone()));
    }
}

/// Why a host could not make an actor.
fn refused(status: Status, payload: &[u8]) -> Refusal {
    if status != Status::ActorError
        && let Failure::Refused(refusal) = reply::failure(payload)
    {
        return refusal;
    }
    Refusal::Activation { message: why(status, payload) }
}

/// What a host says of what it could not do.
fn why(status: Status, payload: &[u8]) -> String {
    match status {
        Status::ActorError => "its host says that it failed".to_owned(),
        _ => CallError::<Never>::from(reply::failure(payload)).to_string(),
    }
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

pub(super) fn key(slot: Slot) -> Activation {
    Activation(u64::from(slot.index) << 32 | u64::from(slot.generation))
}
