//! `greenroom optimiser`: which actors talk with each other, and who would do better elsewhere.

mod explain;
mod moves;
mod report;
mod tables;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::NodeAddress;
use crate::nodes::ask;
use crate::status::text;

/// What to show.
#[derive(Args)]
pub(crate) struct OptimiserCommand {
    #[command(subcommand)]
    show: Show,
}

#[derive(Subcommand)]
enum Show {
    /// What each node knows of its hot actors, by kind, and how many would do better elsewhere
    Status(Of),
    /// The actors that would do better elsewhere, those that gain most first
    Wishes(Of),
    /// The pairs of actors that talk most
    Graph(Of),
    /// The actors that the optimisers have moved, the last one last
    Moves(Moves),
    /// Whom an actor talks with, and what follows from it
    Explain(Explain),
    /// Let no node move actors any more, until it is told to go on or starts anew
    Pause(NodeAddress),
    /// Let all nodes go on
    Resume(NodeAddress),
}

#[derive(Args)]
struct Of {
    /// Lines at most, or with --json of each thread or node
    #[arg(long, default_value_t = 50)]
    top: usize,
    /// Print what the nodes say as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Moves {
    /// Go on, and print each move as it happens, until it is interrupted
    #[arg(long, conflicts_with = "json")]
    follow: bool,
    #[command(flatten)]
    of: Of,
}

#[derive(Args)]
struct Explain {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    /// Print what its node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks all nodes, and prints what they say.
pub(crate) fn run(command: &OptimiserCommand) -> Result<(), String> {
    match &command.show {
        Show::Status(of) => show(of, report::kinds),
        Show::Wishes(of) => show(of, tables::wishes),
        Show::Graph(of) => show(of, tables::edges),
        Show::Moves(show) if show.follow => moves::follow(&show.of),
        Show::Moves(show) => moves::list(&show.of),
        Show::Explain(explain) => explain::run(explain),
        Show::Pause(node) => pause(node, "pause"),
        Show::Resume(node) => pause(node, "resume"),
    }
}

fn show(of: &Of, table: fn(&[Value], usize) -> String) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    // Both ends of a pair may tell of it.
    let asked = if of.json { of.top } else { of.top.saturating_mul(2) }.min(TOP_MAX);
    let path = format!("/-/optimiser?top={asked}");
    let (said, silent) = ask(&door, |door| door.get_json(&path))?;
    tell_silent(&silent);
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    print!("{}{}", report::resting(&said), table(&said, of.top));
    Ok(())
}

/// Says who was not asked, beside what the others say.
fn tell_silent(silent: &[String]) {
    silent.iter().for_each(|why| eprintln!("not asked: {why}"));
}

fn pause(node: &NodeAddress, what: &str) -> Result<(), String> {
    let door = node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| {
        let answer = door.post(&["-", "optimiser", what], "{}")?;
        match answer.status {
            200 => serde_json::from_str(&answer.body).map_err(|error| error.to_string()),
            status => Err(described(status, &answer.body)),
        }
    })?;
    for answer in &said {
        println!("{} {}", text(&answer["node"]), what_it_does(answer));
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(format!("not told: {}", silent.join("; "))),
    }
}

/// What a node's optimiser does that was paused, or told to go on.
fn what_it_does(answer: &Value) -> &'static str {
    match (answer["mode"].as_str(), &answer["paused"]) {
        (Some("off"), _) => "moves no actors anyway: its optimiser is off",
        (Some("advise"), _) => "moves no actors anyway: its mode is `advise`",
        (_, Value::Bool(true)) => "moves no actors until it is told to go on, or starts anew",
        _ => "goes on",
    }
}

/// What each shard of each node says, with the node's name.
fn shards(said: &[Value]) -> impl Iterator<Item = (String, &Value)> {
    said.iter().flat_map(|advice| {
        let shards = advice["shards"].as_array().into_iter().flatten();
        shards.map(|shard| (text(&advice["node"]), shard))
    })
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// Lines that a node is asked for at most, of each shard.
const TOP_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_moves_nobody_is_not_said_to_go_on() {
        let told = |mode: &str, paused: bool| what_it_does(&json!({ "node": "a", "mode": mode, "paused": paused }));
        assert_eq!(told("on", false), "goes on");
        assert!(told("on", true).contains("until it is told to go on"));
        assert!([true, false].iter().all(|paused| told("off", *paused).ends_with("is off")));
        assert!([true, false].iter().all(|paused| told("advise", *paused).contains("`advise`")));
    }
}
