//! `greenroom findings`: what the nodes of a cluster find wrong, and what to do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::status::{columns, plain, silent, text};

/// Whom to ask, and how to tell.
#[derive(Args)]
pub(crate) struct FindingsCommand {
    /// Exit with code 1 if something is bad, or a node gives no answer
    #[arg(long)]
    check: bool,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks a node, and prints what its cluster's nodes find.
pub(crate) fn run(command: &FindingsCommand) -> Result<(), String> {
    let said = command.node.door(TIMEOUT)?.get_json("/-/findings")?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        print!("{}{}", report(list(&said, "findings"), now), silent(&said));
    }
    if command.check { verdict(&said) } else { Ok(()) }
}

/// # Errors
/// Something is bad, or a node gave no answer.
fn verdict(said: &Value) -> Result<(), String> {
    let bad = list(said, "findings").iter().filter(|finding| finding["level"] == "bad").count();
    match (bad, list(said, "silent").len()) {
        (0, 0) => Ok(()),
        (bad, silent) => Err(format!("{bad} findings are bad, and {silent} nodes gave no answer")),
    }
}

fn list<'a>(said: &'a Value, name: &str) -> &'a [Value] {
    said[name].as_array().map_or(&[], Vec::as_slice)
}

fn report(found: &[Value], now: Duration) -> String {
    if found.is_empty() {
        return "nothing is wrong, as far as the nodes know\n".to_owned();
    }
    let head = ["LEVEL", "SINCE", "NODE", "FINDING", "WHAT"].map(str::to_owned);
    let rows = found.iter().flat_map(|finding| {
        let since = Duration::from_millis(finding["since"].as_u64().unwrap_or_default());
        let age = format!("{} s", now.saturating_sub(since).as_secs());
        let what = format!("{}: {}", plain(&finding["title"]), plain(&finding["text"]));
        let first = [text(&finding["level"]), age, text(&finding["node"]), text(&finding["check"]), what];
        let remedy = ["", "do", "", "", text(&finding["remedy"]).as_str()].map(str::to_owned);
        [first, remedy]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(level: &str, silent: &[&str]) -> Value {
        let finding = json!({
            "id": "member-silent node c", "check": "member-silent", "level": level, "since": 3_000, "title": "c is\u{1b}[2J dead",
            "text": "its lease ran out", "remedy": "Start it again.", "node": "a",
        });
        json!({ "findings": [finding], "silent": silent, "left_out": 0 })
    }

    #[test]
    fn a_finding_is_told_with_its_remedy_and_moves_no_cursor() {
        let report = report(list(&said("bad", &[]), "findings"), Duration::from_secs(10));
        let lines: Vec<&str> = report.lines().collect();
        assert!(lines[1].starts_with("bad    7 s"), "{report}");
        assert!(lines[1].ends_with("c is\\u{1b}[2J dead: its lease ran out"), "{report}");
        assert!(lines[2].ends_with("Start it again."), "{report}");
    }

    #[test]
    fn a_probe_fails_for_what_is_bad_and_for_who_gives_no_answer() {
        assert!(verdict(&said("warn", &[])).is_ok());
        assert!(verdict(&said("bad", &[])).is_err() && verdict(&said("warn", &["b"])).is_err());
    }
}
