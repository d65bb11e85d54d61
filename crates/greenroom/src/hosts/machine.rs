//! Turns of reliable actors in hosts: which messages a state machine wants, and what a turn's commit takes of its end.

use greenroom_describe::{Handling, Method};
use greenroom_wire::Status;

use super::kind::Foreign;
use super::lane::Made;
use super::turn::Of;
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::reliable::hosted::{HostedTurn, Journaled};

/// Why a message does not begin a turn in the state that its actor is in. The turn knows what becomes of the message.
pub(super) fn unwanted(hosted: &HostedTurn, cx: &Cx, foreign: &Foreign, method: u16) -> Option<Refusal> {
    let kind = cx.port.node.kinds().foreign(cx.id.kind)?;
    let said = kind.said();
    let start = said.description.options.start.as_deref()?;
    let name = said.methods.get(usize::from(method))?.name;
    let state = foreign.journaled.as_ref().and_then(Journaled::state);
    let state = state.as_deref().unwrap_or(start);
    let described = said.description.methods.iter().find(|described| described.name == name)?;
    let id = &cx.id;
    let message = match handling(described, state) {
        Some(Handling::Run) => return None,
        Some(Handling::Defer) => {
            hosted.defer();
            format!("{name:?} waits until {id} is in another state")
        }
        Some(Handling::Ignore) => {
            let message = format!("{id} ignores {name:?} in the state {state:?}");
            hosted.ignore(message.clone());
            message
        }
        None => {
            let message = format!("{id} does not know {name:?} in the state {state:?}");
            hosted.not_handled(message.clone());
            message
        }
    };
    Some(Refusal::Invalid { field: String::new(), message })
}

/// What the description says of a method in a state. One of which it says nothing at all runs in all of them.
fn handling(described: &Method, state: &str) -> Option<Handling> {
    let Some(states) = &described.states else { return Some(Handling::Run) };
    states.get(state).or_else(|| states.get("*")).copied()
}

/// Gives what a turn has made of its actor to the turn's commit. A turn that did not come to its end has made nothing.
pub(super) fn commit(hosted: &HostedTurn, cx: &Cx, of: &mut Of<'_>, (status, made): (Status, Made)) {
    let Of::Exclusive(foreign) = of else {
        if made.jump.is_some() || made.is_halt || !made.changes.is_empty() {
            hosted.fail(format!("{} changes in a read, which changes nothing", cx.id));
        }
        return;
    };
    if !matches!(status, Status::Ok | Status::ActorError) {
        return hosted.begin();
    }
    let Some(journaled) = &mut foreign.journaled else { return };
    let Made { mut changes, jump, is_halt } = made;
    if let Some(state) = jump.as_deref().filter(|state| !is_known(cx, state)) {
        return hosted.fail(format!("{} has no state {state:?}, to which a turn jumps", cx.id));
    }
    let before = if is_halt { journaled.entries() } else { Vec::new() };
    match journaled.take(&mut changes, jump.as_deref()) {
        Err(why) => hosted.fail(why),
        Ok(()) if is_halt => hosted.halt(before),
        Ok(()) => hosted.change(changes, jump.as_deref()),
    }
}

/// Whether the kind's description names the state.
fn is_known(cx: &Cx, state: &str) -> bool {
    let Some(kind) = cx.port.node.kinds().foreign(cx.id.kind) else { return false };
    let description = &kind.said().description;
    let mut named =
        description.methods.iter().filter_map(|method| method.states.as_ref()).flat_map(|states| states.keys());
    description.options.start.as_deref() == Some(state) || named.any(|name| name == state)
}
