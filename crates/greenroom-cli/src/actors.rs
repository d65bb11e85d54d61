//! `greenroom actors`: the actors of a cluster that are active, page by page.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::door::{NodeAddress, encoded};
use crate::status::{columns, plain, silent, text};

/// Which actors, and how to tell.
#[derive(Args)]
pub(crate) struct ActorsCommand {
    /// Those of this kind; of all without it
    kind: Option<String>,
    /// Those on the node of this name
    #[arg(long, value_name = "NAME")]
    on: Option<String>,
    /// Those whose keys begin so
    #[arg(long)]
    prefix: Option<String>,
    /// Which first: those with most messages waiting, those with most turns, the oldest, those that have rested for longest, or by name
    #[arg(long, value_enum, default_value_t = Order::Mailbox)]
    order: Order,
    /// So many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Begin behind what the page before said at its end
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Mailbox,
    Heat,
    Age,
    Idle,
    Key,
}

/// Asks a node, and prints a page of the active actors of its cluster.
pub(crate) fn run(command: &ActorsCommand) -> Result<(), String> {
    let said = command.node.door(TIMEOUT)?.get_json(&path(command))?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    print!("{}{}{}", columns(&table(&said)), rest(&said), silent(&said));
    Ok(())
}

fn path(command: &ActorsCommand) -> String {
    let order = command.order.to_possible_value().map(|order| order.get_name().to_owned());
    let limit = Some(command.limit.to_string());
    let asked = [
        ("kind", &command.kind),
        ("node", &command.on),
        ("prefix", &command.prefix),
        ("order", &order),
        ("limit", &limit),
        ("after", &command.after),
    ];
    let asked = asked.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value.as_ref()?))));
    format!("/-/actors?{}", asked.collect::<Vec<_>>().join("&"))
}

fn table(said: &Value) -> Vec<[String; 7]> {
    let head = ["ACTOR", "NODE", "STATE", "MAILBOX", "TURNS/S", "AGE", "IDLE"].map(str::to_owned);
    let time = |seconds: &Value| {
        let seconds = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.map_or_else(|| "-".to_owned(), |time| format!("{time:.1?}"))
    };
    let rows = said["actors"].as_array().into_iter().flatten().map(|actor| {
        let node = format!("{}, thread {}", text(&actor["node"]), actor["shard"]);
        let [state, mailbox] = [text(&actor["state"]), actor["mailbox"].to_string()];
        [
            plain(&actor["actor"]),
            node,
            state,
            mailbox,
            turns(&actor["turns"]),
            time(&actor["age"]),
            time(&actor["idle"]),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

/// Turns a second, where a thread counts them: it counts those that have many.
fn turns(turns: &Value) -> String {
    match turns.as_f64() {
        Some(turns) if turns > 0.0 => format!("{turns:.1}"),
        _ => "few".to_owned(),
    }
}

/// How many there are, and how to go on.
fn rest(said: &Value) -> String {
    let shown = said["actors"].as_array().map_or(0, Vec::len);
    let mut rest = format!("{shown} of {} that are active\n", said["matched"]);
    for one in said["unseen"].as_array().into_iter().flatten() {
        rest.push_str(&format!("not looked through in time: {}, thread {}\n", text(&one["node"]), one["shard"]));
    }
    if let Some(next) = said["next"].as_str() {
        rest.push_str(&format!("go on with --after '{}'\n", next.escape_debug()));
    }
    rest
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_says_how_many_there_are_and_how_to_go_on() {
        let actor = json!({ "actor": "room/a\n", "node": "b", "shard": 1, "state": "ready", "mailbox": 7, "turns": 12.34, "age": 2.5, "idle": 0.002 });
        let said = json!({ "actors": [actor], "matched": 61_240, "next": "7.room/a", "unseen": [{ "node": "c", "shard": 0 }] });
        assert_eq!(
            table(&said)[1],
            ["room/a\\n", "b, thread 1", "ready", "7", "12.3", "2.5s", "2.0ms"].map(str::to_owned)
        );
        let rest = rest(&said);
        assert_eq!(
            rest,
            "1 of 61240 that are active\nnot looked through in time: c, thread 0\ngo on with --after '7.room/a'\n"
        );
    }
}
