//! `greenroom overview`: a cluster at a glance, with what it did in the last minutes.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::status::{columns, silent, text};

/// Whom to ask, and about how long.
#[derive(Args)]
pub(crate) struct OverviewCommand {
    /// About the last so many seconds, at most 3600
    #[arg(long, default_value_t = 300)]
    seconds: u32,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks one node, and prints what it says of its cluster.
pub(crate) fn run(command: &OverviewCommand) -> Result<(), String> {
    let said = command.node.door(TIMEOUT)?.get_json(&format!("/-/overview?seconds={}", command.seconds))?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
    } else {
        print!("{}", told(&said));
    }
    Ok(())
}

fn told(said: &Value) -> String {
    let totals = &said["totals"];
    let seconds = totals["seconds"].as_f64().unwrap_or_default();
    let rate = |count: &Value| count.as_f64().filter(|_| seconds > 0.0).map(|count| count / seconds);
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let (calls, failed) = (totals["calls"].as_f64(), totals["failed"].as_f64());
    let failed = calls.zip(failed).filter(|(calls, _)| *calls > 0.0).map(|(calls, failed)| failed / calls);
    let mut lines = format!(
        "system   {}, by node {}\nlast     {seconds} s\ncalls/s  {}{}\nfailed   {}\noutside  p50 {}, p99 {}\nactors   {}\nremote   {}\n",
        text(&said["system"]),
        text(&said["here"]),
        rate(&totals["calls"]).map_or("-".to_owned(), |rate| format!("{rate:.1}")),
        line(&said["series"]["calls"]),
        share(failed),
        time(&totals["outside"]["p50"]),
        time(&totals["outside"]["p99"]),
        totals["activations"],
        share(totals["remote_share"].as_f64()),
    );
    for cluster in said["clusters"].as_array().into_iter().flatten() {
        let head = ["NODE", "STATUS", "UP", "MEMORY", "LEASE", "ACTORS", "BUSIEST", "KINDS"].map(str::to_owned);
        let nodes = cluster["nodes"].as_array().into_iter().flatten().map(row);
        lines.push_str(&format!("\ncluster {}\n", text(&cluster["name"])));
        lines.push_str(&columns(&std::iter::once(head).chain(nodes).collect::<Vec<_>>()));
    }
    lines.push_str(&silent(said));
    lines
}

fn row(node: &Value) -> [String; 8] {
    let shards = || node["shards"].as_array().into_iter().flatten();
    let whole = |value: &Value, unit: &str| value.as_f64().map_or("-".to_owned(), |value| format!("{value:.0}{unit}"));
    let mebibytes = |value: &Value| value.as_u64().map(|bytes| (bytes >> 20).to_string());
    let memory = match (mebibytes(&node["resident"]), mebibytes(&node["limit"])) {
        (Some(has), Some(may)) => format!("{has} of {may} MiB"),
        (Some(has), None) => format!("{has} MiB"),
        _ => "-".to_owned(),
    };
    let actors: u64 = shards().filter_map(|shard| shard["activations"].as_u64()).sum();
    let busiest = shards().filter_map(|shard| shard["busy"].as_f64()).reduce(f64::max);
    let kinds = node["kinds"].as_object().into_iter().flatten();
    let kinds: Vec<String> = kinds.map(|(kind, active)| format!("{active} {kind}")).collect();
    [
        text(&node["name"]),
        text(&node["status"]),
        whole(&node["uptime"], " s"),
        memory,
        whole(&node["lease_left"], " s"),
        if node["answers"] == true { actors.to_string() } else { "-".to_owned() },
        busiest.map_or("-".to_owned(), |busy| format!("{:.0} %", busy * 100.0)),
        if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") },
    ]
}

fn time(seconds: &Value) -> String {
    let time = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.map_or("-".to_owned(), |time| format!("{time:.1?}"))
}

/// The last points of a list as a line of blocks, the highest being the list's highest.
fn line(points: &Value) -> String {
    let points: Vec<Option<f64>> = points.as_array().into_iter().flatten().map(Value::as_f64).collect();
    let points = &points[points.len().saturating_sub(LINE_LEN)..];
    let highest = points.iter().flatten().copied().fold(0.0, f64::max);
    if highest == 0.0 {
        return String::new();
    }
    let block = |point: &Option<f64>| {
        point.map_or(' ', |point| BLOCKS[((point / highest * 7.0).round() as usize).min(BLOCKS.len() - 1)])
    };
    format!("  {}", points.iter().map(block).collect::<String>())
}

const TIMEOUT: Duration = Duration::from_secs(5);
const LINE_LEN: usize = 60;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_told_with_who_is_silent() {
        let node = json!({
            "name": "a", "status": "active", "answers": true, "uptime": 61.2, "kinds": { "room": 3 }, "resident": 3 << 20, "limit": null,
            "shards": [{ "busy": 0.25, "activations": 2 }, { "busy": 0.5, "activations": 1 }], "lease_left": 8.6,
        });
        let said = json!({
            "system": "main", "here": "a", "clusters": [{ "name": "main", "nodes": [node, { "name": "b", "status": "active" }] }],
            "totals": {
                "seconds": 10, "calls": 200, "failed": 1, "outside": { "p50": 0.001, "p99": null }, "activations": 3, "remote_share": 0.125,
            },
            "series": { "calls": [10.0, null, 20.0, 0.0] }, "silent": [{ "node": "b", "why": "it gave no answer" }],
        });
        let told = told(&said);
        for part in [
            "calls/s  20.0  ▅ █▁",
            "failed   0.5 %",
            "p50 1.0ms, p99 -",
            "remote   12.5 %",
            "silent: b: it gave no answer",
        ] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        let row = told.lines().find(|line| line.starts_with("a ")).unwrap();
        let row: Vec<_> = row.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect();
        assert_eq!(row, ["a", "active", "61 s", "3 MiB", "9 s", "3", "50 %", "3 room"], "{told}");
    }
}
