//! Connections with which hosts join their user lanes.

use std::task::Waker;

use greenroom_protocols::host::{LaneEvent, SessionId};
use greenroom_wire::host::Closing;

use super::lane::Wire;
use super::seats::State;

impl State {
    /// Takes in a connection that a host joins its lane with: who is to be woken.
    ///
    /// It may come before the word that the host has dropped the seats of its last lane, which goes another way: then it waits for that.
    pub(super) fn join(&mut self, session: u64, wire: Wire) -> Vec<Waker> {
        let number = SessionId(session);
        let (may_join, is_held) = (self.machine.may_join(number), self.machine.is_held(number));
        let refused = match self.lanes.get_mut(&session) {
            Some(lane) if may_join => {
                wire.flag().clone().raise();
                lane.wire = Some(wire);
                return self.handle(LaneEvent::Joined { session: number });
            }
            Some(lane) if is_held => lane.early.replace(wire),
            Some(_) | None => Some(wire),
        };
        if let Some(mut wire) = refused {
            wire.say_goodbye(Closing::BadFrame, "the shard's lane is joined already, or its session is over");
            let _ = wire.flush();
        }
        Vec::new()
    }

    /// The host has dropped the seats of its last lane: takes in what it has joined with meanwhile.
    pub(super) fn join_early(&mut self, session: u64) -> Vec<Waker> {
        let early = self.lanes.get_mut(&session).and_then(|lane| lane.early.take());
        early.map_or_else(Vec::new, |wire| self.join(session, wire))
    }
}
