//! `greenroom migrate`: an actor goes to another node.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use crate::call::described;
use crate::door::{Door, NodeAddress};
use crate::inspect::{is_found, look};
use crate::status::text;

/// Which actor is to go where.
#[derive(Args)]
pub(crate) struct MigrateCommand {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    /// The name of the node that it is to go to
    #[arg(long, value_name = "NODE")]
    to: String,
    /// Seconds to wait until it is there; 0 to ask only
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
    /// Say what came of it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks for it, and waits until the actor is there. It goes at its next turn boundary, if it is active.
pub(crate) fn run(command: &MigrateCommand) -> Result<(), String> {
    let MigrateCommand { actor, to, wait, json, node } = command;
    let (kind, key) = split(actor)?;
    let door = node.door(TIMEOUT)?;
    // Whether the actor can be asked for at all is told by the answer to the wish.
    let from = if *wait == 0 { None } else { place(&door, kind, key).ok().flatten() };
    let answer = door.post(&["-", "migrate", kind, key, to], "{}")?;
    if answer.status != 202 {
        return Err(described(answer.status, &answer.body));
    }
    let until = Instant::now() + Duration::from_secs(*wait);
    let mut at = from.clone();
    while from.is_some() && at.as_ref() != Some(to) && Instant::now() < until {
        std::thread::sleep(POLL);
        at = place(&door, kind, key)?.or(at);
    }
    if *json {
        println!("{}", json!({ "actor": actor, "to": to, "from": from, "node": at, "moved": at.as_ref() == Some(to) }));
    }
    let said = match (&from, &at) {
        _ if *wait == 0 => format!("{actor} goes to {to} at its next turn boundary, if it is active"),
        (None, _) => format!("{actor} is not active, so there was nothing to move: the next call activates it"),
        (Some(from), Some(at)) if at == to && from == to => format!("{actor} is on {to} already"),
        (Some(from), Some(at)) if at == to => format!("{actor} has gone from {from} to {to}"),
        (Some(from), _) => {
            return Err(format!(
                "{actor} is not on {to} after {wait} s, and was last seen on {}: a turn that runs must end first (`greenroom \
                 inspect {actor}`), or {to} did not take it, as its log says",
                at.as_ref().unwrap_or(from)
            ));
        }
    };
    if !json {
        println!("{said}");
    }
    Ok(())
}

/// The node that the actor is on, if one says that it has it.
fn place(door: &Door, kind: &str, key: &str) -> Result<Option<String>, String> {
    let (answer, _) = look(door, kind, key)?;
    Ok(is_found(&answer).then(|| text(&answer["node"])))
}

/// The kind and the key of an actor, as a person writes it.
pub(crate) fn split(actor: &str) -> Result<(&str, &str), String> {
    actor
        .split_once('/')
        .filter(|(kind, key)| !kind.is_empty() && !key.is_empty())
        .ok_or_else(|| format!("{actor:?} is no actor; write KIND/KEY, as in chat_room/lobby"))
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks at where it is.
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_have_slashes_and_an_actor_has_both_names() {
        assert_eq!(split("file/a/b"), Ok(("file", "a/b")));
        assert!(["file", "file/", "/a"].into_iter().all(|actor| split(actor).is_err()));
    }
}
