//! `greenroom stage`: where a cluster's actors are, which of them are hot, who talks with whom, and who has moved.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::status::{columns, plain, silent, text};

/// Whom to ask, and about how many.
#[derive(Args)]
pub(crate) struct StageCommand {
    /// How many of the hottest actors to tell of, and of the edges between them; at most 2000
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks one node, and prints what it says of its cluster.
pub(crate) fn run(command: &StageCommand) -> Result<(), String> {
    let said = command.node.door(TIMEOUT)?.get_json(&format!("/-/stage?top={}", command.top))?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
    } else {
        print!("{}", told(&said, command.top));
    }
    Ok(())
}

fn told(said: &Value, top: usize) -> String {
    let mut lines = columns(&table(["NODE", "THREAD", "BUSY", "ACTORS"], list(&said["nodes"]).iter().flat_map(seats)));
    let kinds = list(&said["kinds"]).iter().take(top).map(|pair| {
        [
            format!("{} -> {}", plain(&pair["from"]), plain(&pair["to"])),
            rate(&pair["rate"]),
            share(&pair["remote_share"]),
        ]
    });
    lines.push_str(&part(
        &columns(&table(["WHO ASKS WHOM", "CALLS/S", "BETWEEN NODES"], kinds)),
        &said["kinds_left_out"],
    ));
    let hot = list(&said["hot"]);
    let rows = hot.iter().map(|hot| {
        [plain(&hot["actor"]), text(&hot["node"]), hot["shard"].to_string(), rate(&hot["turns"]), rate(&hot["failed"])]
    });
    lines.push_str(&part(
        &columns(&table(["HOT ACTOR", "NODE", "THREAD", "TURNS/S", "FAILED/S"], rows)),
        &said["hot_left_out"],
    ));
    let name = |end: &Value| {
        end.as_u64().and_then(|at| hot.get(at as usize)).map_or("-".to_owned(), |hot| plain(&hot["actor"]))
    };
    let edges = list(&said["edges"]).iter().take(top).map(|edge| {
        let apart = ["one thread", "one node", "two nodes"].get(edge[3].as_u64().unwrap_or(u64::MAX) as usize);
        [format!("{} - {}", name(&edge[0]), name(&edge[1])), rate(&edge[2]), (*apart.unwrap_or(&"-")).to_owned()]
    });
    lines.push_str(&part(&columns(&table(["WHO TALKS", "MESSAGES/S", "ON"], edges)), &said["edges_left_out"]));
    let moves = list(&said["moves"]).iter().take(top).map(|one| {
        let at = Duration::from_millis(
            said["at"].as_u64().unwrap_or_default().saturating_sub(one["at"].as_u64().unwrap_or_default()),
        );
        [
            format!("{:.1} s", at.as_secs_f64()),
            plain(&one["actor"]),
            place(one, "from", 0),
            place(one, "to", 1),
            plain(&one["why"]),
        ]
    });
    let moved: u64 = list(&said["moved"]["counts"]).iter().filter_map(Value::as_u64).sum();
    lines.push_str(&format!("\n{moved} moves in the last hour\n"));
    lines.push_str(&columns(&table(["AGE", "ACTOR", "FROM", "TO", "WHY"], moves)));
    lines.push_str(&unsampled(said));
    lines.push_str(&silent(said));
    lines
}

/// A row for each thread of a node.
fn seats(node: &Value) -> Vec<[String; 4]> {
    let row = |(shard, seats): (usize, &Value)| {
        let counts = seats["counts"].as_object().into_iter().flatten();
        let counts: Vec<String> = counts.map(|(kind, count)| format!("{count} {kind}")).collect();
        let stuck = if seats["answers"] == false { " (a turn keeps it)" } else { "" };
        let counts = if counts.is_empty() { "-".to_owned() } else { counts.join(", ") };
        [text(&node["node"]), format!("{shard}{stuck}"), share(&seats["busy"]), counts]
    };
    list(&node["shards"]).iter().enumerate().map(row).collect()
}

/// Where an actor was or is that has moved: a node, or one of its threads.
fn place(moved: &Value, end: &str, at: usize) -> String {
    match moved["shards"][at].as_u64() {
        Some(shard) => format!("{} thread {shard}", plain(&moved[end])),
        None => plain(&moved[end]),
    }
}

/// Which nodes do not know who talks with whom.
fn unsampled(said: &Value) -> String {
    let samples = |node: &&Value| list(&node["shards"]).iter().all(|seats| seats["samples"] == false);
    let nodes = list(&said["nodes"]).iter().filter(samples);
    let lines = nodes.map(|node| {
        format!(
            "{} samples no messages: its optimiser is off, or has nowhere to move an actor to\n",
            text(&node["node"])
        )
    });
    lines.collect()
}

fn part(table: &str, left_out: &Value) -> String {
    let left_out = left_out.as_u64().filter(|count| *count > 0).map(|count| format!("and {count} more\n"));
    format!("\n{table}{}", left_out.unwrap_or_default())
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Vec<[String; N]> {
    std::iter::once(head.map(str::to_owned)).chain(rows).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn rate(value: &Value) -> String {
    value.as_f64().map_or("-".to_owned(), |rate| format!("{rate:.1}"))
}

fn share(value: &Value) -> String {
    value.as_f64().map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stage_is_told_with_what_is_left_out_and_who_knows_nothing() {
        let said = json!({
            "at": 10_000,
            "nodes": [
                { "node": "a", "shards": [{ "busy": 0.25, "counts": { "room": 3, "user": 2 }, "answers": true, "samples": true }] },
                { "node": "b", "shards": [{ "busy": 1.0, "counts": {}, "answers": false, "samples": false }] },
            ],
            "hot": [
                { "actor": "room/\u{1b}[2J", "node": "a", "shard": 0, "turns": 12.5, "failed": 0.0 },
                { "actor": "user/ada", "node": "a", "shard": 0, "turns": 3.0, "failed": 1.0 },
            ],
            "hot_left_out": 7,
            "edges": [[0, 1, 20.5, 0]],
            "kinds": [{ "from": "user", "to": "room", "rate": 10.0, "remote_share": 0.125 }],
            "moves": [{ "at": 7_500, "actor": "user/ada", "from": "a", "to": "a", "shards": [1, 0], "why": "it was asked for" }],
            "moved": { "counts": [0, 2, 1] },
            "silent": [{ "node": "c", "why": "it gave no answer" }],
        });
        let told = told(&said, 20);
        let rows: Vec<Vec<&str>> = told
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        for row in [
            &["a", "0", "25 %", "3 room, 2 user"][..],
            &["b", "0 (a turn keeps it)", "100 %", "-"],
            &["user -> room", "10.0", "12 %"],
            &["room/\\u{1b}[2J", "a", "0", "12.5", "0.0"],
            &["and 7 more"],
            &["room/\\u{1b}[2J - user/ada", "20.5", "one thread"],
            &["3 moves in the last hour"],
            &["2.5 s", "user/ada", "a thread 1", "a thread 0", "it was asked for"],
            &["silent: c: it gave no answer"],
        ] {
            assert!(rows.iter().any(|told| told == row), "{row:?} is not in {told}");
        }
        assert!(told.contains("b samples no messages") && !told.contains("a samples no messages"), "{told}");
    }
}
