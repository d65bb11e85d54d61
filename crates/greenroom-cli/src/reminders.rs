//! `greenroom reminders`: what is on the calendar of a cluster's actors.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::NodeAddress;

/// What to do with reminders.
#[derive(Args)]
pub(crate) struct RemindersCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show all reminders, at most a thousand, or those of one actor
    List {
        /// The actor, as KIND/KEY
        #[arg(value_name = "KIND/KEY")]
        actor: Option<String>,
        /// Show them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Cancel a reminder: no turn of it begins once this is answered
    Cancel {
        /// The actor, as KIND/KEY
        #[arg(value_name = "KIND/KEY")]
        actor: String,
        /// The reminder's name
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Let a reminder tick that is parked because its turns took down their processes, at once if it is due
    Retry {
        /// The actor, as KIND/KEY
        #[arg(value_name = "KIND/KEY")]
        actor: String,
        /// The reminder's name
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        node: NodeAddress,
    },
}

/// Runs the command.
pub(crate) fn run(command: &RemindersCommand) -> Result<(), String> {
    match &command.action {
        Action::List { actor, json, node } => list(actor.as_deref(), *json, node),
        Action::Cancel { actor, name, node } => cancel(actor, name, node),
        Action::Retry { actor, name, node } => retry(actor, name, node),
    }
}

fn list(actor: Option<&str>, json: bool, node: &NodeAddress) -> Result<(), String> {
    let mut path = vec!["-", "reminders"];
    if let Some(actor) = actor {
        let (kind, key) = split(actor)?;
        path.extend([kind, key]);
    }
    let answer = node.door(TIMEOUT)?.get_at(&path)?;
    if answer.status != 200 {
        return Err(described(answer.status, &answer.body));
    }
    let answer: Value = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
    let reminders = answer["reminders"].as_array().map_or(&[][..], Vec::as_slice);
    if json {
        println!("{}", answer["reminders"]);
        return Ok(());
    }
    for reminder in reminders {
        let text = |field: &str| reminder[field].as_str().unwrap_or_default().to_owned();
        let due = reminder["due_unix_seconds"].as_f64().unwrap_or_default();
        let parked = match reminder["parked"].as_bool() {
            Some(true) => format!("\tparked after {} deaths", reminder["deaths"]),
            _ => String::new(),
        };
        let (actor, name, method, schedule) = (text("actor"), text("name"), text("method"), text("schedule"));
        println!("{actor}\t{name}\t{method}\t{schedule}\tdue {due:.0}{parked}");
    }
    if reminders.is_empty() {
        println!("no reminders");
    }
    Ok(())
}

fn cancel(actor: &str, name: &str, node: &NodeAddress) -> Result<(), String> {
    let (kind, key) = split(actor)?;
    let answer = node.door(TIMEOUT)?.delete(&["-", "reminders", kind, key, name])?;
    said((answer.status, &answer.body), (actor, name), "cancelled")
}

fn retry(actor: &str, name: &str, node: &NodeAddress) -> Result<(), String> {
    let (kind, key) = split(actor)?;
    let answer = node.door(TIMEOUT)?.post(&["-", "reminders", kind, key, name, "retry"], "")?;
    said((answer.status, &answer.body), (actor, name), "it ticks again")
}

/// Prints the outcome of a change to one reminder.
fn said((status, body): (u16, &str), (actor, name): (&str, &str), done: &str) -> Result<(), String> {
    if status != 200 {
        return Err(described(status, body));
    }
    let answer: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    match answer["existed"].as_bool() {
        Some(true) => println!("{done}"),
        _ => println!("{actor} has no reminder called {name:?}"),
    }
    Ok(())
}

fn split(actor: &str) -> Result<(&str, &str), String> {
    actor.split_once('/').ok_or_else(|| format!("{actor:?} is no actor; write KIND/KEY"))
}

const TIMEOUT: Duration = Duration::from_secs(10);
