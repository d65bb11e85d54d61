//! `greenroom methods`: how often the methods of a cluster's actors are called, how long they take, and how they fail.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::status::{columns, silent, text};

/// Which kind, and how to tell.
#[derive(Args)]
pub(crate) struct MethodsCommand {
    /// The kind; without one, all of them
    kind: Option<String>,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks a node, and prints what all nodes of its cluster know of the methods, those with most turns first.
pub(crate) fn run(command: &MethodsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let path = match &command.kind {
        Some(kind) => format!("/-/methods?kind={}", crate::door::encoded(kind)),
        None => "/-/methods".to_owned(),
    };
    let said = door.get_json(&path)?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    print!("{}{}", columns(&table(&said)), silent(&said));
    Ok(())
}

fn table(said: &Value) -> Vec<[String; 8]> {
    let mut methods: Vec<&Value> = said["methods"].as_array().into_iter().flatten().collect();
    methods.sort_by_key(|method| std::cmp::Reverse(method["turns"].as_u64()));
    let head = ["KIND", "METHOD", "TURNS", "FAILED", "P50", "P99", "MAX", "MAILBOX P99"].map(str::to_owned);
    let rows = methods.into_iter().map(|method| {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|share| time(&method["run"][share]));
        let (kind, name, turns) = (text(&method["kind"]), text(&method["method"]), method["turns"].to_string());
        [kind, name, turns, failures(&method["failed"]), p50, p99, max, time(&method["mailbox"]["p99"])]
    });
    std::iter::once(head).chain(rows).collect()
}

fn time(seconds: &Value) -> String {
    let time = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.3?}"))
}

fn failures(failed: &Value) -> String {
    let counts = failed.as_object().into_iter().flatten().filter(|(_, count)| count.as_u64() > Some(0));
    let some: Vec<_> = counts.map(|(class, count)| format!("{count} {class}")).collect();
    if some.is_empty() { "-".to_owned() } else { some.join(", ") }
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn methods_with_most_turns_come_first() {
        let method = |name: &str, turns: u64| {
            json!({
                "kind": "room", "method": name, "turns": turns, "failed": { "error": 2, "late": 0 },
                "run": { "p50": 0.00001, "p99": 0.00512, "max": null }, "mailbox": { "p99": 0.001024 },
            })
        };
        let rows = table(&json!({ "methods": [method("read", 1), method("post", 100)] }));
        assert_eq!(rows[1][..4], ["room", "post", "100", "2 error"].map(str::to_owned));
        assert_eq!(rows[1][4..], ["10.000µs", "5.120ms", "-", "1.024ms"].map(str::to_owned));
        assert_eq!(rows[2][1], "read");
    }
}
