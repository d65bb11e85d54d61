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
    /// The actors that the optimisers have moved, each node's last one last
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
    /// Lines at most
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
    let asked = of.top.min(TOP_MAX);
    let path = format!("/-/optimiser?top={asked}");
    let (said, silent) = ask(&door, |door| door.get_json(&path))?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    let off: Vec<String> =
        said.iter().filter(|advice| advice["mode"] == "off").map(|advice| text(&advice["node"])).collect();
    if !off.is_empty() {
        println!("the optimiser is off on {}; `--optimiser on` or `--optimiser advise` turns it on\n", off.join(", "));
    }
    silent.iter().for_each(|why| println!("not asked: {why}"));
    print!("{}", table(&said, of.top));
    Ok(())
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
        let state = if answer["paused"] == true {
            "moves no actors until it is told to go on, or starts anew"
        } else {
            "goes on"
        };
        println!("{} {state}", text(&answer["node"]));
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(format!("not told: {}", silent.join("; "))),
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
