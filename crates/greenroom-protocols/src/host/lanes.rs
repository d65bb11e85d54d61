//! The lanes of all sessions to one shard, and the seats and turns of its activations.

mod giving;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use crate::time::Timestamp;

use super::lane::Lane;
use super::place::{At, Place, Run, Stage};
use super::{Activation, Cookie, Fate, Fault, LaneAction, LaneEvent, Seat, SessionId, Settings, TurnNumber, Word};

/// A shard's machine: which of its activations sit where, and which turns run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lanes {
    settings: Settings,
    now: Timestamp,
    lanes: BTreeMap<SessionId, Lane>,
    places: BTreeMap<Activation, Place>,
    turns: BTreeMap<Cookie, Run>,
    /// Activations without a seat, by when they are given up.
    homeless: BTreeSet<(Timestamp, Activation)>,
    /// Draws two of many lanes.
    draw: u64,
}

/// The turn that a request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// It runs on the lane that the request came on.
    Live(Cookie),
    /// It does not, or not any more: the request is refused, and nothing of it was done.
    Gone,
}

impl Lanes {
    /// A shard without hosts; `draw` is by chance.
    pub fn new(settings: Settings, draw: u64) -> Self {
        let (lanes, places, turns) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { settings, now: Timestamp::default(), lanes, places, turns, homeless: BTreeSet::new(), draw }
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order.
    ///
    /// # Panics
    /// If the driver breaks its word: an activation is wanted twice, a turn begun twice or of no activation, a lane joined that may
    /// not be. Nothing that a host says panics.
    pub fn handle(&mut self, now: Timestamp, event: LaneEvent, out: &mut Vec<LaneAction>) {
        self.now = self.now.max(now);
        match event {
            LaneEvent::Word(word) => self.hear(word, out),
            LaneEvent::Joined { session } => {
                assert!(self.may_join(session), "a lane is joined that may not be: {session:?}");
                let lane = self.lanes.get_mut(&session).expect("it may be joined");
                lane.is_joined = true;
                self.look_around(out);
            }
            LaneEvent::Broke { session } => self.break_lane(session, None, out),
            LaneEvent::Want { activation, kind, wanted, is_patient } => {
                let place = Place::new(kind, wanted, is_patient);
                let until = place.patience(self.now + self.settings.grace);
                let known = self.places.insert(activation, Place { stage: Stage::Waiting { until }, ..place });
                assert!(known.is_none(), "an activation is wanted twice: {activation:?}");
                self.homeless.insert((until, activation));
                self.seek(activation, out);
            }
            LaneEvent::Activated { session, seat, is_ready } => self.activated(session, seat, is_ready, out),
            LaneEvent::Released { session, seat } => self.released(session, seat, out),
            LaneEvent::Begin { activation, cookie, runs_again, len } => {
                self.begin(cookie, Run { activation, runs_again, len, sent: None, requests: 0 }, out);
            }
            LaneEvent::Cancel { cookie } => self.cancel(cookie, out),
            LaneEvent::Ended { session, turn, stream } => self.ended(session, turn, stream, out),
            LaneEvent::Waits { cookie } => self.waits(cookie, out),
            LaneEvent::GoesOn { cookie } => self.goes_on(cookie),
            LaneEvent::StreamEnded { session, stream } => {
                self.lanes.get_mut(&session).map(|lane| lane.streams.remove(&stream));
            }
            LaneEvent::Leave { activation, is_abandon } => self.leave(activation, is_abandon, out),
            LaneEvent::Carry { activation } => self.carry(activation, out),
            LaneEvent::Tick => self.give_up(out),
        }
        self.check();
    }

    /// When `handle` next wants a `Tick`; `None` while no activation waits for a host.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.homeless.first().map(|(until, _)| *until).filter(|until| *until != Timestamp::NEVER)
    }

    /// Whether a session may join its lane to this shard now: it is open, and all seats of an earlier lane have been dropped.
    pub fn may_join(&self, session: SessionId) -> bool {
        self.lanes.get(&session).is_some_and(|lane| !lane.is_joined && !lane.is_held && !lane.is_lost)
    }

    /// Whether a session's lane may be joined again once its host has dropped the seats that it had on the last one.
    pub fn is_held(&self, session: SessionId) -> bool {
        self.lanes.get(&session).is_some_and(|lane| lane.is_held && !lane.is_lost)
    }

    /// Returns true if no seat of a broken lane of `session` is held any more, as the host has said that it has dropped them. A host that
    /// says so is alive.
    pub fn has_dropped(&self, session: SessionId) -> bool {
        self.lanes.get(&session).is_some_and(|lane| !lane.is_held && !lane.is_lost)
    }

    /// The turn that a request on the lane of `session` names (L18): principal, chain, context and limit are that turn's.
    pub fn turn(&self, session: SessionId, turn: TurnNumber) -> Named {
        let own = self.lanes.get(&session).filter(|lane| lane.is_live());
        let found = own.and_then(|lane| lane.turns.get(&turn));
        let others = self.lanes.values().find_map(|lane| lane.turns.get(&turn));
        let found = found.or_else(|| others.filter(|_| !self.settings.checks.own_turns));
        found.map_or(Named::Gone, |cookie| Named::Live(*cookie))
    }

    /// The activation in a seat of a live lane.
    pub fn activation(&self, session: SessionId, seat: Seat) -> Option<Activation> {
        self.lanes.get(&session).filter(|lane| lane.is_live()).and_then(|lane| lane.seats.get(&seat)).copied()
    }

    /// Whether an activation of `kind` that came here would get a seat at once.
    pub fn has_seat_for(&self, kind: &str) -> bool {
        self.lanes.values().any(|lane| lane.is_taking() && !lane.is_full() && lane.offered(kind).next().is_some())
    }

    /// Where an activation sits, if its seat is not held.
    pub fn seat_of(&self, activation: Activation) -> Option<(SessionId, Seat)> {
        match self.places.get(&activation)?.stage {
            Stage::Making(at) | Stage::Ready(at) | Stage::Ending(at) => Some((at.session, at.seat)),
            Stage::Idle | Stage::Waiting { .. } | Stage::Held(_) => None,
        }
    }

    /// Seats and turns of a session, for status pages: seats, turns that run, turns that are open or wait for room.
    pub fn load(&self, session: SessionId) -> (usize, usize, usize) {
        self.lanes
            .get(&session)
            .map_or((0, 0, 0), |lane| (lane.seats.len(), lane.running, lane.turns.len() + lane.queue.len()))
    }

    fn hear(&mut self, word: Word, out: &mut Vec<LaneAction>) {
        match word {
            Word::Open { session, bounds } => {
                let known = self.lanes.insert(session, Lane::new(bounds));
                assert!(known.is_none(), "a session opens twice: {session:?}");
            }
            Word::Offers { session, index, offer } => {
                if let Some(lane) = self.lanes.get_mut(&session) {
                    lane.offers.insert(index, offer);
                    self.look_around(out);
                }
            }
            Word::Draining { session } => {
                if let Some(lane) = self.lanes.get_mut(&session) {
                    lane.is_draining = true;
                    lane.sweep = Some(Seat(0));
                    self.sweep(session, out);
                    self.drained(session, out);
                }
            }
            Word::Lost { session } => {
                if let Some(lane) = self.lanes.get_mut(&session) {
                    lane.is_lost = true;
                    out.push(LaneAction::CloseLane { session, fault: None });
                }
                self.lose_seats(session, out);
            }
            Word::Over { session } => {
                if let Some(lane) = self.lanes.get_mut(&session) {
                    lane.is_lost = true;
                }
                self.lose_seats(session, out);
                self.count_deaths(session, out);
                self.give_away(session, out);
                self.lanes.remove(&session);
            }
            Word::Dropped { session, .. } => {
                let is_held = self.lanes.get_mut(&session).is_some_and(|lane| std::mem::take(&mut lane.is_held));
                if is_held {
                    self.give_away(session, out);
                }
            }
        }
    }

    /// The lane is no more: its seats are held until the host has dropped them.
    fn break_lane(&mut self, session: SessionId, fault: Option<Fault>, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&session).filter(|lane| lane.is_joined && !lane.is_lost) else { return };
        lane.is_joined = false;
        lane.is_held = true;
        if fault.is_some() {
            out.push(LaneAction::CloseLane { session, fault });
        }
        out.push(LaneAction::LaneBroken { session });
        self.lose_seats(session, out);
    }

    fn activated(&mut self, session: SessionId, seat: Seat, is_ready: bool, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get(&session).filter(|lane| lane.is_live()) else { return };
        let at = At { session, seat };
        let activation = lane.seats.get(&seat).copied();
        let place = activation.and_then(|activation| Some((activation, self.places.get_mut(&activation)?)));
        let Some((activation, place)) = place.filter(|(_, place)| place.stage == Stage::Making(at)) else {
            return self.break_lane(session, Some(Fault::Seat), out);
        };
        if is_ready {
            place.stage = Stage::Ready(at);
            place.lost_making = 0;
            place.is_wanted = false;
            out.push(LaneAction::Ready { activation });
            self.boundary(activation, out);
        } else {
            let is_left = place.leave.is_some();
            self.free(at, out);
            let gone = if is_left { LaneAction::Left { activation } } else { LaneAction::NotMade { activation } };
            self.forget(activation, gone, Fate::Unseated, out);
        }
    }

    fn released(&mut self, session: SessionId, seat: Seat, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&session).filter(|lane| lane.is_live()) else { return };
        let at = At { session, seat };
        let activation = lane.seats.get(&seat).copied();
        let stage = activation.and_then(|activation| Some(self.places.get(&activation)?.stage));
        let Some(activation) = activation.filter(|_| stage == Some(Stage::Ending(at))) else {
            return self.break_lane(session, Some(Fault::Seat), out);
        };
        lane.ending -= 1;
        self.free(at, out);
        self.reseat(activation, out);
        self.sweep(session, out);
    }

    fn leave(&mut self, activation: Activation, is_abandon: bool, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.get_mut(&activation) else { return };
        place.leave = Some(is_abandon || place.leave == Some(true));
        let waiting: Vec<_> = place.waiting.drain(..).collect();
        let is_homeless = place.at().is_none();
        for cookie in waiting {
            self.fail(cookie, Fate::Unseated, out);
        }
        if is_homeless {
            self.forget(activation, LaneAction::Left { activation }, Fate::Unseated, out);
        } else {
            self.boundary(activation, out);
        }
    }

    fn carry(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.get_mut(&activation) else { return };
        place.is_carrying = place.at().is_some();
        match place.is_carrying {
            true => self.boundary(activation, out),
            false => out.push(LaneAction::Carried { activation }),
        }
    }

    /// What no event may leave behind. Of many activations all would be looked at for each event, which a debug build of a node
    /// with hosts could not bear; few show whatever rule is broken.
    fn check(&self) {
        if cfg!(debug_assertions) && self.places.len() <= CHECKED_MAX {
            for (activation, place) in &self.places {
                let homeless = match place.stage {
                    Stage::Idle => place.waiting.is_empty(),
                    Stage::Waiting { until } => self.homeless.contains(&(until, *activation)),
                    _ => false,
                };
                let seated = place.at().is_some_and(|at| {
                    self.lanes.get(&at.session).is_some_and(|lane| lane.seats.get(&at.seat) == Some(activation))
                });
                assert!(homeless != seated, "an activation waits for a seat, or has one: {activation:?}");
            }
            for lane in self.lanes.values() {
                let all = lane.seats.values().all(|activation| self.places.contains_key(activation));
                assert!(all, "a seat is of no activation");
                assert!(lane.running <= lane.turns.len(), "more turns run than were sent");
            }
        }
    }
}

/// Activations that are looked at after each event, in debug builds.
const CHECKED_MAX: usize = 64;
