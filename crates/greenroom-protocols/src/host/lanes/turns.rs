//! Turns: which are sent, and what becomes of them.

use super::super::place::{At, Run, Stage};
use super::super::{
    Activation, Cookie, Fate, Fault, LaneAction, STREAMS_MAX, SessionId, Stream, TurnNumber, WAITING_MAX,
};
use super::Lanes;

impl Lanes {
    pub(super) fn begin(&mut self, cookie: Cookie, run: Run, out: &mut Vec<LaneAction>) {
        let activation = run.activation;
        let place = self.places.get_mut(&activation).expect("a turn is of an activation that is wanted");
        let is_leaving = place.leave.is_some();
        let is_crowded = place.waiting.len() >= WAITING_MAX;
        let known = self.turns.insert(cookie, run);
        assert!(known.is_none(), "a turn is begun twice: {cookie:?}");
        if is_leaving || is_crowded {
            return self.fail(cookie, if is_leaving { Fate::Unseated } else { Fate::Overloaded }, out);
        }
        place.waiting.push_back(cookie);
        if place.stage == Stage::Idle {
            return self.look_for_seat(activation, out);
        }
        self.boundary(activation, out);
    }

    /// Sends what waits at an activation whose seat is ready, or lets it wait for room.
    pub(super) fn send_waiting(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        while let Some(place) = self.places.get_mut(&activation)
            && let Stage::Ready(At { session, .. }) = place.stage
            && let Some(cookie) = place.waiting.pop_front()
        {
            place.sent.insert(cookie);
            let is_patient = place.is_patient;
            let lane = self.lanes.get_mut(&session).expect("its session is known");
            if lane.queue.is_empty() && lane.has_room() {
                self.send(session, cookie, out);
            } else if !is_patient && lane.is_crowded(lane.queue.len()) {
                self.fail(cookie, Fate::Overloaded, out);
            } else {
                lane.queue.push_back(cookie);
            }
        }
    }

    fn send(&mut self, session: SessionId, cookie: Cookie, out: &mut Vec<LaneAction>) {
        let run = self.turns.get_mut(&cookie).expect("it is known");
        let place = self.places.get(&run.activation).expect("a turn is of an activation");
        let lane = self.lanes.get_mut(&session).expect("its session is known");
        let Stage::Ready(at) = place.stage else { unreachable!("a turn is sent to a seat that is not ready") };
        assert!(lane.is_live() && at.session == session, "a turn is sent to a lane that is not live");
        let Some(next) = lane.last_turn.checked_add(1) else {
            return self.break_lane(session, Some(Fault::Numbers), out);
        };
        lane.last_turn = next;
        let turn = TurnNumber(next);
        lane.turns.insert(turn, cookie);
        lane.running += 1;
        lane.bytes += run.len;
        run.sent = Some((session, turn));
        out.push(LaneAction::Send { session, seat: at.seat, turn, cookie });
    }

    /// Sends what waits for room.
    pub(super) fn pump(&mut self, session: SessionId, out: &mut Vec<LaneAction>) {
        while let Some(lane) = self.lanes.get_mut(&session)
            && lane.is_live()
            && lane.has_room()
            && let Some(cookie) = lane.queue.pop_front()
        {
            self.send(session, cookie, out);
        }
    }

    pub(super) fn ended(
        &mut self,
        session: SessionId,
        turn: TurnNumber,
        stream: Option<Stream>,
        out: &mut Vec<LaneAction>,
    ) {
        let Some(lane) = self.lanes.get_mut(&session) else { return };
        if !lane.is_live() {
            // Without the rule that only what is live counts, what a lost host says is taken.
            return out.extend(lane.turns.remove(&turn).map(|cookie| LaneAction::End { cookie }));
        }
        let Some(cookie) = lane.turns.remove(&turn) else {
            if lane.dropped.remove(&turn).is_none() {
                self.break_lane(session, Some(Fault::Turn), out);
            }
            return;
        };
        let run = self.turns.remove(&cookie).expect("a turn on a lane is known");
        if run.requests == 0 {
            lane.running -= 1;
            lane.bytes -= run.len;
        }
        let place = self.places.get_mut(&run.activation).expect("a turn is of an activation");
        place.sent.remove(&cookie);
        out.push(LaneAction::End { cookie });
        if let Some(stream) = stream {
            let seat = place.at().expect("a turn has run in a seat").seat;
            let is_new = lane.streams.len() < STREAMS_MAX && lane.streams.insert(stream, seat).is_none();
            if !is_new {
                return self.break_lane(session, Some(Fault::Stream), out);
            }
        }
        self.boundary(run.activation, out);
        self.pump(session, out);
    }

    pub(super) fn cancel(&mut self, cookie: Cookie, out: &mut Vec<LaneAction>) {
        match self.turns.get(&cookie).map(|run| run.sent) {
            Some(Some((session, turn))) => out.push(LaneAction::CancelTurn { session, turn }),
            Some(None) => {
                let activation = self.turns[&cookie].activation;
                self.fail(cookie, Fate::Cancelled, out);
                self.boundary(activation, out);
            }
            None => {}
        }
    }

    pub(super) fn waits(&mut self, cookie: Cookie, out: &mut Vec<LaneAction>) {
        let Some(run) = self.turns.get_mut(&cookie).filter(|run| run.sent.is_some() && self.settings.checks.waits)
        else {
            return;
        };
        run.requests += 1;
        let (requests, len, sent) = (run.requests, run.len, run.sent);
        if let (1, Some((session, _))) = (requests, sent)
            && let Some(lane) = self.lanes.get_mut(&session)
        {
            lane.running -= 1;
            lane.bytes -= len;
            self.pump(session, out);
        }
    }

    pub(super) fn goes_on(&mut self, cookie: Cookie) {
        let Some(run) = self.turns.get_mut(&cookie).filter(|run| run.requests > 0) else { return };
        run.requests -= 1;
        if run.requests == 0
            && let Some((session, _)) = run.sent
            && let Some(lane) = self.lanes.get_mut(&session)
        {
            lane.running += 1;
            lane.bytes += run.len;
        }
    }

    /// Drops a turn of a seat that is left at once: its end does not count.
    pub(super) fn abandon(&mut self, cookie: Cookie, at: At, out: &mut Vec<LaneAction>) {
        if let Some((session, turn)) = self.turns.get(&cookie).and_then(|run| run.sent)
            && let Some(lane) = self.lanes.get_mut(&session)
        {
            lane.dropped.insert(turn, at.seat);
            self.fail(cookie, Fate::Abandoned, out);
        } else {
            self.fail(cookie, Fate::Unseated, out);
        }
    }

    /// The host of an activation is lost: what was sent may have run, what was not waits for another.
    pub(super) fn lose_turns(&mut self, activation: Activation, out: &mut Vec<LaneAction>) {
        let Some(place) = self.places.get_mut(&activation) else { return };
        let sent: Vec<_> = std::mem::take(&mut place.sent).into_iter().collect();
        for cookie in sent.into_iter().rev() {
            let run = self.turns.get_mut(&cookie).expect("a turn of an activation is known");
            if run.sent.is_none() {
                if self.settings.checks.unsent {
                    place.waiting.push_front(cookie);
                } else {
                    self.turns.remove(&cookie);
                    out.push(LaneAction::Fail { cookie, fate: Fate::Unknown });
                }
                continue;
            }
            let again = run.runs_again || !self.settings.checks.again;
            self.turns.remove(&cookie);
            out.push(LaneAction::Fail { cookie, fate: if again { Fate::Again } else { Fate::Unknown } });
        }
    }

    /// The turn comes to nothing, wherever it is.
    pub(super) fn fail(&mut self, cookie: Cookie, fate: Fate, out: &mut Vec<LaneAction>) {
        let Some(run) = self.turns.remove(&cookie) else { return };
        if let Some(place) = self.places.get_mut(&run.activation) {
            place.sent.remove(&cookie);
            place.waiting.retain(|waiting| *waiting != cookie);
            let session = run.sent.map(|(session, _)| session).or_else(|| place.at().map(|at| at.session));
            if let Some(lane) = session.and_then(|session| self.lanes.get_mut(&session)) {
                lane.queue.retain(|queued| *queued != cookie);
                if let Some((_, turn)) = run.sent {
                    lane.turns.remove(&turn);
                    if run.requests == 0 {
                        lane.running -= 1;
                        lane.bytes -= run.len;
                    }
                }
            }
        }
        out.push(LaneAction::Fail { cookie, fate });
    }
}
