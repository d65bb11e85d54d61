//! Reliable actors as state machines (RSM §2.1): which state an actor is in, and what becomes of messages that it does not
//! want.

use std::sync::Arc;

use super::kept::Memory;
use super::takings::{Fate, takings};
use crate::actor::cx::Cx;
use crate::actor::error::{CallError, Refusal};
use crate::actor::interface::Portable;
use crate::actor::reply::ReplyTo;

impl Cx {
    /// Lets a reliable state machine be in `state` from the next turn on: the state is written with the turn's commit, and
    /// messages that were deferred are looked at again. The last word of a turn counts.
    ///
    /// A state that the actor's `#[actor(..)]` block does not name, and a jump in a read, fail the turn. Outside of turns
    /// of reliable actors it does nothing.
    pub fn jump(&self, state: &str) {
        let Some(takings) = takings() else { return };
        let states = self.states();
        if states.contains(&state) {
            return takings.jump(state.into());
        }
        takings.fail(match states {
            [] => format!(
                "{} is no state machine: write `#[actor(reliable, start = {state:?})]` above its block",
                self.id
            ),
            _ => format!("{} has no state {state:?}, to which a turn jumps; its states are {}", self.id, list(states)),
        });
    }

    /// The state that a reliable state machine is in; in a turn that [jumps](Self::jump), the one that it jumps to. `None` for
    /// other actors.
    pub fn machine_state(&self) -> Option<Arc<str>> {
        (!self.states().is_empty())
            .then(|| takings().and_then(|takings| takings.jumps_to()).unwrap_or_else(|| state(self)))
    }

    fn states(&self) -> &'static [&'static str] {
        Memory::of(self).map_or(&[], Memory::states)
    }
}

/// The state in which the current turn has begun.
#[doc(hidden)]
pub fn state(cx: &Cx) -> Arc<str> {
    Memory::of(cx).and_then(Memory::state).unwrap_or_default()
}

/// Whether this program knows the state.
#[doc(hidden)]
pub fn is_known(cx: &Cx, state: &str) -> bool {
    cx.states().contains(&state)
}

/// Lets the message wait in the actor's own queue until the actor is in another state.
#[doc(hidden)]
pub fn defer<T: Portable, E: Portable>(cx: &Cx, reply: ReplyTo<T, E>, method: &str) {
    end(Fate::Deferred);
    refuse(reply, format!("{method:?} waits until {} is in another state", cx.id));
}

/// Lets the message be done with, and have no effects.
#[doc(hidden)]
pub fn ignore<T: Portable, E: Portable>(cx: &Cx, reply: ReplyTo<T, E>, method: &str) {
    let message = format!("{} ignores {method:?} in the state {:?}", cx.id, &*state(cx));
    end(Fate::Ignored(message.clone()));
    refuse(reply, message);
}

/// A message that the actor's state does not know; or the state is one that this program does not know.
#[doc(hidden)]
pub fn unhandled<T: Portable, E: Portable>(cx: &Cx, reply: ReplyTo<T, E>, method: &str) {
    let state = &*state(cx);
    let (id, states) = (&cx.id, cx.states());
    if states.contains(&state) {
        let message = format!(
            "{id} does not know {method:?} in the state {state:?}; write `#[on({method}, state = {state:?})]`, or \
             `defer = {state:?}` or `ignore = {state:?}` at another handler of it"
        );
        end(Fate::Unhandled(message.clone()));
        return refuse(reply, message);
    }
    let message = format!(
        "{id} is in the state {state:?}, which this program does not know: it knows {}; run a program that does, or let this one \
         handle that state. Messages wait until then",
        list(states)
    );
    tracing::error!("{message}");
    end(Fate::Stuck(message.clone()));
    refuse(reply, message);
}

fn end(fate: Fate) {
    if let Some(takings) = takings() {
        takings.end_as(fate);
    }
}

fn refuse<T: Portable, E: Portable>(reply: ReplyTo<T, E>, message: String) {
    reply.answer(Err(CallError::Refused(Refusal::Invalid { field: String::new(), message })));
}

fn list(states: &[&str]) -> String {
    states.iter().map(|state| format!("{state:?}")).collect::<Vec<_>>().join(", ")
}

/// The name that the state has among an actor's fields: no field can be called so.
pub(super) const STATE: &str = "@state";
