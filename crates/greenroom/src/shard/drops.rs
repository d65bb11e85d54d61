//! Turns that are dropped unfinished, and messages that come to nothing.

use super::envelope::Body;
use super::raw::RawCall;
use super::submit::refuse_reply;
use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::key::ActorId;
use crate::actor::reply::refused;

impl Shard {
    /// Drops the turns of an activation that wait. Who waits for them is told that they may have run.
    pub(crate) fn drop_turns(&self, slot: Slot) {
        let waiting = self.turns.borrow().of(slot);
        for turn in waiting {
            self.drop_turn(turn);
        }
    }

    /// Refuses a message that came as bytes; it is a dead letter if nobody waits for its end.
    pub(crate) fn turn_down(&self, id: &ActorId, call: RawCall<'_>, refusal: Refusal) {
        if !call.reply.is_awaited() {
            self.port.node.dead_letters().post(id, &call.route.method, &refusal);
        }
        refuse_reply(call.reply, refusal);
    }
}

/// Refuses a message; it is a dead letter if nobody waits for its end.
pub(super) fn turn_down<I: Interface>(id: &ActorId, body: Body<I::Message>, refusal: Refusal) {
    let (awaited, method) = match body {
        // Nobody waits for the tick of a timer.
        Body::Tick(_) => return,
        Body::Typed(mut message) => {
            let method = I::method(&message);
            let reply = I::reply(&mut message);
            let awaited = reply.awaited();
            reply.take().finish(refused(refusal.clone()));
            (awaited, method)
        }
        Body::Wire(call) => {
            let awaited = call.reply.is_awaited();
            refuse_reply(call.reply, refusal.clone());
            (awaited, call.method)
        }
        Body::Ended(_) => return,
    };
    if !awaited {
        post(id, I::METHODS.get(usize::from(method)).map_or("", |method| method.name), &refusal);
    }
}

/// Takes in, on the shard whose turn this is, that a one-way message came to nothing.
pub(super) fn post(id: &ActorId, method: &str, refusal: &Refusal) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.port.node.dead_letters().post(id, method, refusal);
        }
    });
}
