//! Turns that are dropped unfinished, and messages that come to nothing.

use super::mail::{AnyMail, Form};
use super::raw::RawCall;
use super::submit::refuse_reply;
use super::{Shard, Slot};
use crate::actor::error::Refusal;
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
pub(super) fn turn_down(id: &ActorId, mail: &mut dyn AnyMail, refusal: Refusal) {
    // Nobody waits for the tick of a timer.
    if let Form::Typed(method) | Form::Wire(method) = mail.form()
        && let Some(reply) = mail.reply()
    {
        let awaited = reply.awaited();
        reply.take().finish(refused(refusal.clone()));
        if !awaited {
            post(id, mail.interface().name(method), &refusal);
        }
    }
    mail.clear();
}

/// Takes in, on the shard whose turn this is, that a one-way message came to nothing.
pub(super) fn post(id: &ActorId, method: &str, refusal: &Refusal) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            shard.port.node.dead_letters().post(id, method, refusal);
        }
    });
}
