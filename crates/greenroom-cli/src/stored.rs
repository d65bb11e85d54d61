//! `greenroom stored`: what actors have stored, by way of a node's door: decoded, with who wrote it, and changed as it was seen.
//!
//! `greenroom state` works on a store itself, beside all nodes.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::{Condition, Door, NodeAddress, encoded};
use crate::inspect;
use crate::migrate::split;
use crate::status::{columns, plain, text};

/// What to do with what is stored.
#[derive(Args)]
pub(crate) struct StoredCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List actors' states by their names
    List(List),
    /// Show one: its value, version and writer
    Show(One),
    /// Write one as JSON, as its kind's type writes it
    Put(Put),
    /// Remove one
    Delete(Delete),
    /// Let an actor end wherever it is active; the next call activates it again
    Deactivate(Deactivate),
}

#[derive(Args)]
struct List {
    /// What the names begin with, as account/self/
    #[arg(default_value = "")]
    prefix: String,
    /// The store of this name, as the node's `stores` has it
    #[arg(long)]
    store: Option<String>,
    /// So many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Begin behind what the page before said at its end
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// A state of one actor.
#[derive(Args)]
struct Of {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    /// The field that is a state of its own; without it the actor as a whole
    #[arg(long, default_value = "self")]
    field: String,
}

#[derive(Args)]
struct One {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Put {
    #[command(flatten)]
    of: Of,
    /// The value
    #[arg(value_name = "JSON")]
    value: String,
    /// Replace this version, which `show` tells
    #[arg(long, value_name = "VERSION", required_unless_present = "create")]
    expect: Option<String>,
    /// Write only if nothing is there
    #[arg(long, conflicts_with = "expect")]
    create: bool,
    /// Let the actor end first, if it is active
    #[arg(long)]
    deactivate: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Delete {
    #[command(flatten)]
    of: Of,
    /// Remove this version, which `show` tells
    #[arg(long, value_name = "VERSION")]
    expect: String,
    /// Let the actor end first, if it is active
    #[arg(long)]
    deactivate: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Deactivate {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    #[command(flatten)]
    node: NodeAddress,
}

/// Does it.
pub(crate) fn run(command: &StoredCommand) -> Result<(), String> {
    match &command.action {
        Action::List(list) => list.run(),
        Action::Show(One { of, node }) => {
            let answer = node.door(TIMEOUT)?.get(&of.path(false)?)?;
            if answer.status != 200 {
                return Err(described(answer.status, &answer.body));
            }
            print!("{}", answer.body);
            Ok(())
        }
        Action::Put(put) => {
            let condition = put.expect.as_deref().map_or(Condition::Missing, Condition::Version);
            changed(&put.node.door(TIMEOUT)?, &put.of.path(put.deactivate)?, &condition, Some(&put.value))
        }
        Action::Delete(delete) => {
            let condition = Condition::Version(&delete.expect);
            changed(&delete.node.door(TIMEOUT)?, &delete.of.path(delete.deactivate)?, &condition, None)
        }
        Action::Deactivate(Deactivate { actor, node }) => {
            let (kind, key) = split(actor)?;
            let door = node.door(TIMEOUT)?;
            let (before, _) = inspect::look(&door, kind, key)?;
            let answer = door.post(&["-", "actors", kind, key, "deactivate"], "")?;
            if answer.status != 202 {
                return Err(described(answer.status, &answer.body));
            }
            let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            match said["was_on"].as_str() {
                Some(node) => {
                    until_ended(&door, (kind, key), &before["epoch"])?;
                    println!("{actor} has ended on node {node}");
                }
                None => println!("{actor} is not active"),
            }
            Ok(())
        }
    }
}

/// Waits until the activation of this epoch is over; another one may have begun since, by a call.
fn until_ended(door: &Door, (kind, key): (&str, &str), epoch: &Value) -> Result<(), String> {
    let until = Instant::now() + END_TIMEOUT;
    loop {
        let (now, _) = inspect::look(door, kind, key)?;
        if !inspect::is_found(&now) || now["epoch"] != *epoch {
            return Ok(());
        }
        if Instant::now() >= until {
            let seconds = END_TIMEOUT.as_secs();
            return Err(format!("{kind}/{key} has not ended within {seconds} s; see `greenroom inspect {kind}/{key}`"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn changed(door: &Door, path: &str, condition: &Condition<'_>, value: Option<&str>) -> Result<(), String> {
    let answer = door.change(path, condition, value)?;
    if answer.status != 200 {
        // The door speaks of its own parameter.
        return Err(described(answer.status, &answer.body).replace("say `?deactivate=true`", "give `--deactivate`"));
    }
    let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    println!("{}", said["version"].as_str().unwrap_or("removed"));
    Ok(())
}

impl Of {
    fn path(&self, deactivate: bool) -> Result<String, String> {
        let (kind, key) = split(&self.actor)?;
        let path = [kind, &self.field, key].map(encoded).join("/");
        Ok(format!("/-/state/{path}{}", if deactivate { "?deactivate=true" } else { "" }))
    }
}

impl List {
    fn run(&self) -> Result<(), String> {
        let asked = [("store", &self.store), ("after", &self.after)];
        let asked = asked.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", encoded(value.as_ref()?))));
        let path =
            format!("/-/state?prefix={}&limit={}{}", encoded(&self.prefix), self.limit, asked.collect::<String>());
        let said = self.node.door(TIMEOUT)?.get_json(&path)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
            return Ok(());
        }
        print!("{}", columns(&table(&said)));
        if let Some(next) = said["next"].as_str() {
            println!("go on with --after '{}'", next.escape_debug());
        }
        Ok(())
    }
}

fn table(said: &Value) -> Vec<[String; 4]> {
    let head = ["ACTOR", "FIELD", "BYTES", "VERSION"].map(str::to_owned);
    let rows = said["keys"].as_array().into_iter().flatten();
    let rows =
        rows.map(|one| [plain(&one["actor"]), plain(&one["field"]), one["bytes"].to_string(), text(&one["version"])]);
    std::iter::once(head).chain(rows).collect()
}

/// For the actor to end, too.
/// Longer than a turn and its hook usually take.
const END_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(15);
