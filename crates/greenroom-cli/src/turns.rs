//! `greenroom turns`: the turns of a cluster that failed last, or the slowest of the last minute.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::door::{NodeAddress, encoded};
use crate::status::{columns, plain, silent, text};

/// Which turns, and how to tell.
#[derive(Args)]
pub(crate) struct TurnsCommand {
    /// Those that failed, or the slowest
    #[arg(value_enum, default_value_t = Outcome::Failed)]
    outcome: Outcome,
    /// Those of a kind
    #[arg(long)]
    kind: Option<String>,
    /// Those of a method
    #[arg(long)]
    method: Option<String>,
    /// Those of the last seconds
    #[arg(long)]
    seconds: Option<u32>,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Outcome {
    Failed,
    Slow,
}

/// Asks a node, and prints the turns of its cluster: the last ones that failed first, or the slowest.
pub(crate) fn run(command: &TurnsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let said = door.get_json(&path(command))?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    print!("{}{}", columns(&table(&said, now)), silent(&said));
    Ok(())
}

fn path(command: &TurnsCommand) -> String {
    let outcome = if command.outcome == Outcome::Slow { "slow" } else { "failed" };
    let mut path = format!("/-/turns?outcome={outcome}");
    for (name, wanted) in [("kind", &command.kind), ("method", &command.method)] {
        if let Some(wanted) = wanted {
            path.push_str(&format!("&{name}={}", encoded(wanted)));
        }
    }
    if let Some(seconds) = command.seconds {
        path.push_str(&format!("&seconds={seconds}"));
    }
    path
}

fn table(said: &Value, now: Duration) -> Vec<[String; 7]> {
    let head = ["AGE", "TURN", "OUTCOME", "RAN", "NODE", "CALLER", "ERROR"].map(str::to_owned);
    let rows = said["turns"].as_array().into_iter().flatten().map(|turn| {
        let at = Duration::from_millis(turn["at"].as_u64().unwrap_or_default());
        let age = format!("{:.1} s", now.saturating_sub(at).as_secs_f64());
        let ran = turn["ran"].as_f64().and_then(|ran| Duration::try_from_secs_f64(ran).ok());
        let ran = ran.map_or_else(|| "-".to_owned(), |ran| format!("{ran:.1?}"));
        let name = format!("{}.{}", plain(&turn["actor"]), plain(&turn["method"]));
        [age, name, text(&turn["outcome"]), ran, text(&turn["node"]), plain(&turn["caller"]), plain(&turn["error"])]
    });
    std::iter::once(head).chain(rows).collect()
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_told_with_what_it_failed_with() {
        let turn = json!({
            "at": 3_000, "actor": "room/a", "method": "post", "caller": "user/\u{1b}[2J", "queued": null, "ran": 0.002, "outcome": "error",
            "error": "\"too\n\u{1b}[2Jlong\"", "trace": null, "node": "b",
        });
        let rows = table(&json!({ "turns": [turn] }), Duration::from_secs(4));
        assert_eq!(rows[1][..5], ["1.0 s", "room/a.post", "error", "2.0ms", "b"].map(str::to_owned));
        assert_eq!(
            rows[1][5..],
            ["user/\\u{1b}[2J", "\"too\\n\\u{1b}[2Jlong\""].map(str::to_owned),
            "nothing of it moves the cursor"
        );
    }
}
