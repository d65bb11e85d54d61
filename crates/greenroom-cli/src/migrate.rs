//! `greenroom migrate`: an actor goes to another node.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::call::described;
use crate::door::NodeAddress;

/// Which actor is to go where.
#[derive(Args)]
pub(crate) struct MigrateCommand {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    /// The name of the node that it is to go to
    #[arg(long, value_name = "NODE")]
    to: String,
    /// Say it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks for it. The actor goes at its next turn boundary, if it is active.
pub(crate) fn run(command: &MigrateCommand) -> Result<(), String> {
    let MigrateCommand { actor, to, json, node } = command;
    let (kind, key) = split(actor)?;
    let answer = node.door(TIMEOUT)?.post(&["-", "migrate", kind, key, to], "{}")?;
    if answer.status != 202 {
        return Err(described(answer.status, &answer.body));
    }
    match json {
        true => println!("{}", json!({ "actor": actor, "to": to })),
        false => println!("{actor} goes to {to} at its next turn boundary, if it is active"),
    }
    Ok(())
}

/// The kind and the key of an actor, as a person writes it.
pub(crate) fn split(actor: &str) -> Result<(&str, &str), String> {
    actor
        .split_once('/')
        .filter(|(kind, key)| !kind.is_empty() && !key.is_empty())
        .ok_or_else(|| format!("{actor:?} is no actor; write KIND/KEY, as in chat_room/lobby"))
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_have_slashes_and_an_actor_has_both_names() {
        assert_eq!(split("file/a/b"), Ok(("file", "a/b")));
        assert!(["file", "file/", "/a"].into_iter().all(|actor| split(actor).is_err()));
    }
}
