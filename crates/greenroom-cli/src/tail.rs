//! `greenroom tail`: turns as they end.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::call::described;
use crate::door::{NodeAddress, encoded};
use crate::status::{plain, silent, text};

/// Which turns, and how to tell.
#[derive(Args)]
pub(crate) struct TailCommand {
    /// Those of a kind, or of one actor
    #[arg(value_name = "KIND[/KEY]")]
    whose: Option<String>,
    /// Those of a method
    #[arg(long)]
    method: Option<String>,
    /// Those that went so
    #[arg(long, value_enum)]
    outcome: Option<Outcome>,
    /// Those that ran for so long, as 10ms
    #[arg(long, value_name = "TIME")]
    over: Option<String>,
    /// Those of these nodes, by their names with commas between
    #[arg(long, value_name = "NAMES")]
    nodes: Option<String>,
    /// End after so many
    #[arg(long, value_name = "TURNS")]
    count: Option<u64>,
    /// Print them as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Clone, Copy, ValueEnum)]
enum Outcome {
    Ok,
    Failed,
    Error,
    Broken,
    Refused,
    Late,
}

/// Asks a node for the turns of its cluster as they end, and prints them until it is told to stop.
pub(crate) fn run(command: &TailCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let mut lines = BufReader::new(door.listen(&path(command))?).lines();
    let mut left = command.count.unwrap_or(u64::MAX);
    let mut name = String::new();
    let mut out = std::io::stdout().lock();
    while left > 0 {
        let Some(line) = lines.next() else { return Err("the node ended the stream of turns".to_owned()) };
        let line = line.map_err(|error| format!("the connection broke: {error}"))?;
        let Some((field, value)) = line.split_once(": ") else { continue };
        if field == "event" {
            value.clone_into(&mut name);
        }
        if field != "data" {
            continue;
        }
        let said: Value = serde_json::from_str(value).unwrap_or_default();
        match &*name {
            "turn" => {
                left -= 1;
                let line = if command.json { said.to_string() } else { row(&said) };
                let written = writeln!(out, "{line}").and_then(|()| out.flush());
                written.map_err(|error| format!("nobody reads: {error}"))?;
            }
            "missed" => eprintln!("greenroom: {} more were not shown", said["count"]),
            "following" => eprint!("{}{}", followed(&said), silent(&said)),
            _ => return Err(described(200, value)),
        }
    }
    Ok(())
}

fn path(command: &TailCommand) -> String {
    let outcome = command.outcome.and_then(|outcome| outcome.to_possible_value());
    let outcome = outcome.map(|outcome| outcome.get_name().to_owned());
    let whose = command.whose.as_deref();
    let (kind, key) = whose.map_or((None, None), |whose| match whose.split_once('/') {
        Some((kind, key)) => (Some(kind), Some(key)),
        None => (Some(whose), None),
    });
    let asked = [
        ("kind", kind),
        ("key", key),
        ("method", command.method.as_deref()),
        ("outcome", outcome.as_deref()),
        ("over", command.over.as_deref()),
        ("nodes", command.nodes.as_deref()),
    ];
    let asked = asked.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))));
    format!("/-/tail?{}", asked.collect::<Vec<_>>().join("&"))
}

/// Whose turns are told.
fn followed(said: &Value) -> String {
    let nodes: Vec<String> = said["nodes"].as_array().into_iter().flatten().map(plain).collect();
    format!("greenroom: turns of {} as they end, at most 200 a second\n", nodes.join(", "))
}

fn row(turn: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Duration::from_millis(turn["at"].as_u64().unwrap_or_default());
    let ago = format!("{:.1} s ago", now.saturating_sub(at).as_secs_f64());
    let ran = turn["ran"].as_f64().and_then(|ran| Duration::try_from_secs_f64(ran).ok());
    let ran = ran.map_or_else(|| "-".to_owned(), |ran| format!("{ran:.1?}"));
    let name = format!("{}.{}", plain(&turn["actor"]), plain(&turn["method"]));
    let mut row = format!("{ago:>10}  {}  {ran:>8}  {:7}  {name}", text(&turn["node"]), text(&turn["outcome"]));
    for (what, value) in [("by", &turn["caller"]), ("with", &turn["error"])] {
        if !value.is_null() {
            row.push_str(&format!("  {what} {}", plain(value)));
        }
    }
    row
}

/// For the door's first word; then it takes what it takes.
const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_one_line_whatever_it_says() {
        let turn = json!({
            "at": 3_000, "actor": "room/a\nb", "method": "post", "caller": "user/\u{1b}[2J", "queued": null, "ran": 0.002,
            "outcome": "error", "error": "too\nlong", "trace": null, "node": "b",
        });
        let row = row(&turn);
        assert!(row.ends_with("b     2.0ms  error    room/a\\nb.post  by user/\\u{1b}[2J  with too\\nlong"), "{row}");
    }
}
