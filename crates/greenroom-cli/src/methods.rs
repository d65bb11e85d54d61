//! `greenroom methods`: how often the methods of a cluster's actors are called, how long they take, and how they fail.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::nodes::ask;
use crate::status::{columns, text};

/// Which kind, and how to tell.
#[derive(Args)]
pub(crate) struct MethodsCommand {
    /// The kind; without one, all of them
    kind: Option<String>,
    /// Print what the nodes say as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks all nodes, and prints the methods, those with most turns first.
pub(crate) fn run(command: &MethodsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let path = match &command.kind {
        Some(kind) => format!("/-/methods?kind={}", crate::door::encoded(kind)),
        None => "/-/methods".to_owned(),
    };
    let (said, silent) = ask(&door, |door| door.get_json(&path))?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    silent.iter().for_each(|why| println!("not asked: {why}"));
    print!("{}", columns(&table(&said)));
    Ok(())
}

/// What all nodes know of one method.
#[derive(Default)]
struct Method {
    turns: u64,
    failed: BTreeMap<String, u64>,
    run: Times,
    mailbox: Times,
}

/// How many have taken how long, in microseconds at most.
#[derive(Default)]
struct Times(BTreeMap<u64, u64>);

impl Times {
    fn add(&mut self, said: &Value) {
        for bucket in said["buckets"].as_array().into_iter().flatten() {
            let (end, count) = (bucket[0].as_f64().unwrap_or_default(), bucket[1].as_u64().unwrap_or_default());
            *self.0.entry((end * 1e3) as u64).or_default() += count;
        }
    }

    fn quantile(&self, share: f64) -> String {
        let wanted = (self.0.values().sum::<u64>() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let end = self.0.iter().find_map(|(end, count)| {
            seen += count;
            (seen >= wanted).then_some(*end)
        });
        end.map_or_else(|| "-".to_owned(), |nanos| format!("{:.3?}", Duration::from_nanos(nanos)))
    }
}

fn table(said: &[Value]) -> Vec<[String; 8]> {
    let mut methods: BTreeMap<(String, String), Method> = BTreeMap::new();
    for one in said.iter().flat_map(|node| node["methods"].as_array().into_iter().flatten()) {
        let method = methods.entry((text(&one["kind"]), text(&one["method"]))).or_default();
        method.turns += one["turns"].as_u64().unwrap_or_default();
        for (class, count) in one["failed"].as_object().into_iter().flatten() {
            *method.failed.entry(class.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
        method.run.add(&one["run"]);
        method.mailbox.add(&one["mailbox"]);
    }
    let mut methods: Vec<_> = methods.into_iter().collect();
    methods.sort_by_key(|(_, method)| std::cmp::Reverse(method.turns));
    let head = ["KIND", "METHOD", "TURNS", "FAILED", "P50", "P99", "MAX", "MAILBOX P99"].map(str::to_owned);
    let rows = methods.into_iter().map(|((kind, name), method)| {
        let run = [0.5, 0.99, 1.0].map(|share| method.run.quantile(share));
        let [p50, p99, max] = run;
        [kind, name, method.turns.to_string(), failures(&method.failed), p50, p99, max, method.mailbox.quantile(0.99)]
    });
    std::iter::once(head).chain(rows).collect()
}

fn failures(failed: &BTreeMap<String, u64>) -> String {
    let some: Vec<_> =
        failed.iter().filter(|(_, count)| **count > 0).map(|(class, count)| format!("{count} {class}")).collect();
    if some.is_empty() { "-".to_owned() } else { some.join(", ") }
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nodes_say_of_a_method_is_added_before_it_is_divided() {
        let node = |turns: u64, end: f64| {
            json!({ "methods": [{
                "kind": "room", "method": "post", "turns": turns, "failed": { "error": 1, "late": 0 },
                "run": { "buckets": [[end, turns]] }, "mailbox": { "buckets": [[1024.0, turns]] },
            }] })
        };
        let rows = table(&[node(99, 10.0), node(1, 5120.0)]);
        assert_eq!(rows[1][..4], ["room", "post", "100", "2 error"].map(str::to_owned));
        assert_eq!(rows[1][4..], ["10.000µs", "10.000µs", "5.120ms", "1.024ms"].map(str::to_owned));
    }
}
