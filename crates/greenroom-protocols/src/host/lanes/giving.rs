//! Giving seats, and taking them back.

use crate::mix::mix;
use crate::versions;

use super::super::lane::Lane;
use super::super::place::{At, Place, Stage};
use super::super::{Activation, Fate, Fault, LEAVING_MAX, LaneAction, Seat, SessionId};
use super::Lanes;

impl Lanes {
    /// Gives a homeless activation a seat, or gives it up if all that could have one for it are full; else it waits.
    pub(super) fn seek(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        self.seat(activation, out);
        let is_given_up = |place: &Place| matches!(place.stage, Stage::Waiting { .. }) && !place.is_patient;
        if self.places.get(&activation).is_some_and(is_given_up) && self.is_full_for(activation) {
            self.forget(activation, LaneAction::NoHost { activation, is_full: true }, Fate::Overloaded, out);
        }
    }

    /// Whether somebody would have a seat for a homeless activation, and has none left.
    fn is_full_for(&self, activation: Activation) -> bool {
        let Some(place) = self.places.get(&activation) else { return false };
        let serves = |lane: &Lane| {
            lane.offered(&place.kind)
                .any(|(_, offer)| offer.versions.serves(place.wanted) && offer.versions.version >= place.version)
        };
        self.lanes.values().any(|lane| lane.is_taking() && lane.is_full() && serves(lane))
    }

    /// Gives a homeless activation a seat, if a session has one for it.
    pub(super) fn seat(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let Some((session, offer, version)) = self.choose(activation) else { return };
        let (place, lane) = (self.places.get_mut(&activation), self.lanes.get_mut(&session));
        let (Some(place), Some(lane)) = (place, lane) else { return };
        let Stage::Waiting { until } = place.stage else { return };
        let next = if self.settings.checks.rising {
            lane.last_seat.checked_add(1)
        } else {
            (1..).find(|seat| !lane.seats.contains_key(&Seat(*seat)))
        };
        let Some(next) = next else { return self.break_lane(session, Some(Fault::Numbers), out) };
        lane.last_seat = next;
        let seat = Seat(next);
        let taken = lane.seats.insert(seat, activation);
        assert!(taken.is_none(), "a seat is given twice: {seat:?} of {session:?}");
        assert!(
            version >= place.version || !self.settings.checks.versions,
            "an activation goes back to an older version"
        );
        place.version = version;
        place.is_outdated = false;
        place.stage = Stage::Making(At { session, seat });
        self.homeless.remove(&(until, activation));
        out.push(LaneAction::Activate { session, seat, activation, offer });
    }

    /// The session that an activation gets a seat of, with the offer's index and version: of the newest version that serves
    /// its callers, and the less full of two drawn.
    fn choose(&mut self, activation: Activation) -> Option<(SessionId, u32, u16)> {
        let place = self.places.get(&activation)?;
        let floor = if self.settings.checks.versions { place.version } else { 0 };
        let mut newest = floor;
        let mut found: Vec<(SessionId, u32)> = Vec::new();
        for (session, lane) in self.lanes.iter().filter(|(_, lane)| lane.is_taking()) {
            for (index, offer) in lane.offered(&place.kind).filter(|(_, offer)| offer.versions.serves(place.wanted)) {
                let version = offer.versions.version;
                if version > newest && self.settings.checks.versions {
                    found.clear();
                }
                if version >= newest || !self.settings.checks.versions {
                    newest = version;
                    found.push((*session, index));
                }
            }
        }
        found.retain(|(session, _)| !self.lanes[session].is_full());
        let count = found.len() as u64;
        let (first, second) = match count {
            0 => return None,
            1 | 2 => (0, count - 1),
            _ => {
                self.draw = mix(self.draw);
                let first = self.draw % count;
                (first, (first + 1 + self.draw / count % (count - 1)) % count)
            }
        };
        let (first, second) = (found[first as usize], found[second as usize]);
        let less_full = |other: SessionId, than: SessionId| self.lanes[&other].is_less_full(&self.lanes[&than]);
        let (session, index) = if less_full(second.0, first.0) { second } else { first };
        let version = self.lanes[&session].offers[&index].versions.version;
        Some((session, index, version))
    }

    /// Somebody has come or offers more: seats what waits, and leaves what is outdated.
    pub(super) fn look_around(&mut self, out: &mut Vec<LaneAction>) {
        self.seat_homeless(out);
        if self.settings.checks.versions {
            self.outdate();
        }
        let sessions: Vec<_> = self.lanes.keys().copied().collect();
        for session in sessions {
            self.sweep(session, out);
        }
        self.give_up(out);
    }

    /// Gives seats to what waits for one, as far as there are any.
    fn seat_homeless(&mut self, out: &mut Vec<LaneAction>) {
        let homeless: Vec<_> = self.homeless.iter().map(|(_, activation)| *activation).collect();
        for activation in homeless {
            self.seat(activation, out);
        }
    }

    /// Marks what sits at an older version than it could.
    fn outdate(&mut self) {
        for place in self.places.values_mut() {
            let (Stage::Making(at) | Stage::Ready(at)) = place.stage else { continue };
            let offers = self.lanes.values().filter(|lane| lane.is_taking());
            let offers = offers.flat_map(|lane| lane.offered(&place.kind)).map(|(_, offer)| ((), offer.versions));
            let newer = offers.filter(|(_, offer)| offer.serves(place.wanted) && offer.version > place.version);
            if !place.is_outdated && !versions::newest(newer, place.wanted).is_empty() {
                place.is_outdated = true;
                let lane = self.lanes.get_mut(&at.session).expect("its session is known");
                lane.sweep = Some(lane.sweep.map_or(at.seat, |sweep| sweep.min(at.seat)));
            }
        }
    }

    /// Leaves seats that are to be left and run nothing, a few at a time.
    pub(super) fn sweep(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        while let Some(lane) = self.lanes.get_mut(&session)
            && lane.ending < LEAVING_MAX
            && let Some(sweep) = lane.sweep
        {
            let next = lane.seats.range(sweep..).next().map(|(seat, activation)| (*seat, *activation));
            lane.sweep = next.map(|(seat, _)| Seat(seat.0 + 1));
            let Some((_, activation)) = next else { return };
            self.boundary(activation, out);
        }
    }

    /// No turn of the activation may be sent now: leaves its seat, if it is to be left and runs nothing; else sends what waits.
    pub(super) fn boundary(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.get_mut(&activation) else { return };
        let Stage::Ready(at) = place.stage else { return };
        let lane = self.lanes.get_mut(&at.session).expect("its session is known");
        let is_moving = lane.is_draining || place.is_outdated || place.is_carrying;
        if place.leave.is_none() && !is_moving {
            return self.send_waiting(activation, out);
        }
        let is_abandon = place.leave == Some(true);
        if !place.sent.is_empty() && !is_abandon {
            return;
        }
        let sent: Vec<_> = place.sent.iter().copied().collect();
        place.stage = Stage::Ending(at);
        lane.ending += 1;
        let is_carry = place.leave.is_none();
        for cookie in sent {
            self.abandon(cookie, at, out);
        }
        let At { session, seat } = at;
        out.push(LaneAction::Deactivate { session, seat, activation, is_carry, is_abandon });
        self.pump(session, out);
    }

    /// A seat that nobody sits in any more.
    pub(super) fn free(&mut self, at: At, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&at.session) else { return };
        let was_full = lane.is_full();
        lane.seats.remove(&at.seat);
        lane.dropped.retain(|_, seat| *seat != at.seat);
        end_streams(at.session, lane, Some(at.seat), self.settings.checks.streams, out);
        self.drained(at.session, out);
        if was_full {
            self.seat_homeless(out);
        }
    }

    /// Says, once, that a draining session has no seat left here.
    pub(super) fn drained(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        let empty = |lane: &&mut Lane| lane.is_draining && !lane.is_drained && lane.seats.is_empty();
        if let Some(lane) = self.lanes.get_mut(&session).filter(empty) {
            lane.is_drained = true;
            out.push(LaneAction::Drained { session });
        }
    }

    /// The activation's seat is free: it gets another if something waits for that, unless it wants none.
    pub(super) fn reseat(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.get_mut(&activation) else { return };
        if place.leave.is_some() {
            return self.forget(activation, LaneAction::Left { activation }, Fate::Unseated, out);
        }
        if place.is_given_up() {
            return self.forget(activation, LaneAction::NotMade { activation }, Fate::Unseated, out);
        }
        if std::mem::take(&mut place.is_carrying) {
            out.push(LaneAction::Carried { activation });
        }
        if place.waiting.is_empty() && !place.is_wanted {
            place.stage = Stage::Idle;
            return;
        }
        self.look_for_seat(activation, out);
    }

    /// The activation waits for a seat from now on.
    pub(super) fn look_for_seat(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let end = self.now + self.settings.grace;
        let Some(place) = self.places.get_mut(&activation) else { return };
        let until = place.patience(end);
        place.stage = Stage::Waiting { until };
        self.homeless.insert((until, activation));
        self.seek(activation, out);
    }

    /// Nothing counts any more that the host of these seats says; it may still act.
    pub(super) fn lose_seats(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        let seats: Vec<_> = lane.seats.iter().map(|(seat, activation)| (*seat, *activation)).collect();
        lane.ending = 0;
        lane.sweep = None;
        lane.queue.clear();
        end_streams(session, lane, None, self.settings.checks.streams, out);
        for (seat, activation) in seats {
            let place = self.places.get_mut(&activation).expect("a seat is of an activation");
            if matches!(place.stage, Stage::Held(_)) {
                continue;
            }
            place.was_lost_making = matches!(place.stage, Stage::Making(_));
            place.lost_making += u32::from(place.was_lost_making);
            place.stage = Stage::Held(At { session, seat });
            out.push(LaneAction::Unseated { activation });
            self.lose_turns(activation, out);
        }
        if let Some(lane) = self.lanes.get_mut(&session) {
            lane.dropped.clear();
            (lane.running, lane.bytes) = (0, 0);
            if self.settings.checks.live {
                lane.turns.clear();
            }
        }
        if !self.settings.checks.held {
            self.give_away(session, out);
        }
    }

    /// The host of these seats has died: reliable activations that it was making are not made, as the partition of each counts the
    /// death before it wants the activation again.
    pub(super) fn count_deaths(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        let places = &self.places;
        let is_counted = |activation: &Activation| {
            places
                .get(activation)
                .is_some_and(|place| place.is_patient && place.was_lost_making && place.leave.is_none())
        };
        for (_, activation) in lane.seats.extract_if(.., |_, activation| is_counted(activation)).collect::<Vec<_>>() {
            self.forget(activation, LaneAction::NotMade { activation }, Fate::Unseated, out);
        }
    }

    /// The host of these seats acts no more.
    pub(super) fn give_away(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        for activation in std::mem::take(&mut lane.seats).into_values() {
            self.reseat(activation, out);
        }
        self.drained(session, out);
    }

    /// Gives up what has waited for a host for too long.
    pub(super) fn give_up(&mut self, out: &mut Vec<LaneAction>) {
        while let Some(&(until, activation)) = self.homeless.first()
            && until <= self.now
        {
            self.forget(activation, LaneAction::NoHost { activation, is_full: false }, Fate::NoHost, out);
        }
    }

    /// The activation is known no more.
    pub(super) fn forget(&mut self, activation: Activation, gone: LaneAction, fate: Fate, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.remove(&activation) else { return };
        if let Stage::Waiting { until } = place.stage {
            self.homeless.remove(&(until, activation));
        }
        assert!(place.sent.is_empty(), "a turn runs of an activation that has left");
        for cookie in place.waiting {
            self.turns.remove(&cookie);
            out.push(LaneAction::Fail { cookie, fate });
        }
        out.push(gone);
    }
}

/// Ends the streams of a seat, or of all.
fn end_streams(session: SessionId, lane: &mut Lane, seat: Option<Seat>, ends: bool, out: &mut Vec<LaneAction>) {
    let lost: Vec<_> = lane.streams.iter().filter(|(_, of)| seat.is_none_or(|seat| seat == **of)).collect();
    let lost: Vec<_> = lost.into_iter().map(|(stream, _)| *stream).collect();
    for stream in lost {
        lane.streams.remove(&stream);
        if ends {
            out.push(LaneAction::StreamLost { session, stream });
        }
    }
}
