//! `greenroom status`: a cluster at a glance.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::door::{Door, NodeAddress};

/// Whom to ask, and how often.
#[derive(Args)]
pub(crate) struct StatusCommand {
    #[command(flatten)]
    node: NodeAddress,
    /// Keep looking, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Show what the nodes' features have measured, too
    #[arg(long)]
    figures: bool,
}

/// Prints the cluster's nodes, kinds, activations and rates.
pub(crate) fn run(command: &StatusCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let mut before = Sample::take(&door)?;
    let mut pause = FIRST_LOOK;
    loop {
        std::thread::sleep(pause);
        let now = Sample::take(&door)?;
        if command.watch {
            // Home, and clear what is below.
            print!("\x1b[H\x1b[J");
        }
        print!("{}", table(&before, &now));
        if command.figures {
            print!("\n{}", figures(&now));
        }
        if !command.watch {
            return Ok(());
        }
        before = now;
        pause = WATCH_EVERY;
    }
}

/// What the nodes said at one time.
struct Sample {
    taken: Instant,
    asked: Value,
    /// Each member's own word, if it has a door that answers.
    nodes: Vec<Option<Value>>,
}

impl Sample {
    fn take(door: &Door) -> Result<Sample, String> {
        let asked = door.get_json("/-/status")?;
        let nodes = members(&asked)
            .iter()
            .map(|member| {
                if member["id"] == asked["node"]["id"] {
                    return Some(asked.clone());
                }
                let http = member["http"].as_str().filter(|_| !is_gone(member))?;
                door.at(http).ok()?.get_json("/-/status").ok()
            })
            .collect();
        Ok(Sample { taken: Instant::now(), asked, nodes })
    }

    /// What the node with this id said of itself.
    fn node(&self, id: &Value) -> Option<&Value> {
        self.nodes.iter().flatten().find(|status| status["node"]["id"] == *id)
    }
}

/// The nodes that gave no answer when another one asked on behalf of `said`, a line each.
pub(crate) fn silent(said: &Value) -> String {
    let silent = said["silent"].as_array().into_iter().flatten();
    let lines = silent.map(|one| format!("silent: {}: {}\n", plain(&one["node"]), plain(&one["why"])));
    let left_out = said["left_out"].as_u64().filter(|count| *count > 0);
    lines.chain(left_out.map(|count| format!("{count} more nodes were not asked\n"))).collect()
}

pub(crate) fn members(status: &Value) -> &[Value] {
    status["cluster"]["members"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a member has left or is dead, and never answers again.
pub(crate) fn is_gone(member: &Value) -> bool {
    ["left", "dead"].iter().any(|gone| member["status"] == *gone)
}

fn table(before: &Sample, now: &Sample) -> String {
    let seconds = now.taken.duration_since(before.taken).as_secs_f64().max(0.001);
    let head = ["NODE", "ID", "STATUS", "HTTP", "ACTIVATIONS", "SPAWNED", "TURNS/S", "HTTP/S", "MEMORY", "UP"];
    let mut rows = vec![head.map(str::to_owned)];
    for member in members(&now.asked) {
        let own = now.node(&member["id"]);
        let rate = |count: fn(&Value) -> u64| match (before.node(&member["id"]), own) {
            (Some(before), Some(now)) => format!("{:.0}", count(now).saturating_sub(count(before)) as f64 / seconds),
            _ => "-".to_owned(),
        };
        rows.push([
            text(&member["name"]),
            format!("n{}", member["id"]),
            text(&member["status"]),
            text(&member["http"]),
            own.map_or(&member["activations"], |own| &own["activations"]).to_string(),
            own.and_then(|own| own["spawned"].as_u64()).map_or("-".into(), |spawned| spawned.to_string()),
            rate(|status| status["turns"].as_u64().unwrap_or_default()),
            rate(answers),
            own.and_then(|own| own["resident_bytes"].as_u64()).map_or("-".into(), |b| format!("{} MiB", b >> 20)),
            own.and_then(|own| own["node"]["uptime_seconds"].as_f64()).map_or("-".into(), |up| format!("{up:.0} s")),
        ]);
    }
    let kinds: BTreeSet<&str> = members(&now.asked)
        .iter()
        .filter(|member| member["status"] == "active")
        .flat_map(|member| member["kinds"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let cluster = text(&now.asked["cluster"]["name"]);
    let versions = versions(members(&now.asked));
    let (store, hosts) = (table_store(now), hosts(now));
    format!("cluster {cluster}\nkinds   {kinds}\n{versions}{store}\n{}{hosts}", columns(&rows))
}

/// The hosts of kinds in other languages; nothing where there are none.
fn hosts(now: &Sample) -> String {
    let mut rows = vec![["NODE", "HOST", "KINDS", "SEATS", "UP"].map(str::to_owned)];
    for status in now.nodes.iter().flatten() {
        for host in status["hosts"].as_array().into_iter().flatten() {
            let kinds = host["kinds"].as_object().into_iter().flatten();
            let kinds: Vec<String> = kinds.map(|(kind, version)| format!("{kind} v{version}")).collect();
            let name = text(&host["name"]);
            let name = if host["draining"] == true { format!("{name} (drains)") } else { name };
            let (seats, up) = (host["seats"].to_string(), format!("{} s", host["age_seconds"]));
            rows.push([text(&status["node"]["name"]), name, kinds.join(", "), seats, up]);
        }
    }
    if rows.len() == 1 { String::new() } else { format!("\n{}", columns(&rows)) }
}

/// What the features of each node have measured, by the names of their metrics.
fn figures(now: &Sample) -> String {
    let mut rows = vec![["NODE", "FIGURE", "VALUE"].map(str::to_owned)];
    for status in now.nodes.iter().flatten() {
        for (name, value) in status["figures"].as_object().into_iter().flatten() {
            rows.push([text(&status["node"]["name"]), name.clone(), value.as_f64().unwrap_or_default().to_string()]);
        }
    }
    columns(&rows)
}

/// Who hosts which version of the kinds that have more than the first.
fn versions(members: &[Value]) -> String {
    let mut kinds: BTreeMap<&str, BTreeMap<u64, Vec<String>>> = BTreeMap::new();
    for member in members.iter().filter(|member| !is_gone(member) && member["status"] != "joining") {
        for (kind, interface) in member["interfaces"].as_object().into_iter().flatten() {
            let version = interface["version"].as_u64().unwrap_or(1);
            kinds.entry(kind).or_default().entry(version).or_default().push(text(&member["name"]));
        }
    }
    kinds.retain(|_, versions| versions.keys().any(|version| *version != 1));
    let line = |(kind, versions): (&str, BTreeMap<u64, Vec<String>>)| {
        let versions: Vec<_> =
            versions.into_iter().map(|(version, nodes)| format!("{version} on {}", nodes.join(", "))).collect();
        format!("versions {kind}: {}\n", versions.join("; "))
    };
    kinds.into_iter().map(line).collect()
}

/// How the membership table's store answers, and which nodes it fails.
fn table_store(now: &Sample) -> String {
    let since = |table: &Value| match table["seconds_since_answer"].as_f64() {
        Some(seconds) => format!("last answered {seconds:.1} s ago"),
        None => "never answered".to_owned(),
    };
    let asked = &now.asked["table"];
    let mut lines = format!("table   {}, {}\n", text(&asked["store"]), since(asked));
    for status in now.nodes.iter().flatten() {
        if let (Some(why), table) = (status["table"]["failing"].as_str(), &status["table"]) {
            let (node, failures) = (text(&status["node"]["name"]), &table["failures"]);
            lines.push_str(&format!("        FAILS {node} ({failures} times so far, {}): {why}\n", since(table)));
        }
    }
    lines
}

fn answers(status: &Value) -> u64 {
    status["http"]["answers"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

/// What a program or another node says, which may hold line ends and what moves a terminal's cursor.
pub(crate) fn plain(said: &Value) -> String {
    text(said).escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// Returns `text` with spaces behind it, so that it takes `width` columns of a terminal: some characters take two, some none.
pub(crate) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// The rows below each other.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|at| rows.iter().map(|row| row[at].width()).max().unwrap_or_default());
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| padded(cell, width)).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// Time over which the first rates are taken.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const WATCH_EVERY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_stand_below_each_other_whatever_characters_are_in_them() {
        let row = |key: &str| [key.to_owned(), "|".to_owned()];
        let shown = columns(&[row("日本語"), row("abcdef"), row("e\u{301}e\u{301}")]);
        let places: Vec<usize> = shown.lines().map(|line| line.split('|').next().unwrap_or_default().width()).collect();
        assert_eq!(places, [8, 8, 8], "{shown}");
    }

    fn member(name: &str, version: u64) -> Value {
        let interfaces =
            json!({ "till": { "version": version, "compatible": 1 }, "user": { "version": 1, "compatible": 1 } });
        json!({ "name": name, "status": "active", "interfaces": interfaces })
    }

    #[test]
    fn versions_are_shown_where_there_are_any() {
        let shown = versions(&[member("a", 2), member("b", 1), member("c", 2)]);
        assert_eq!(shown, "versions till: 1 on b; 2 on a, c\n");
        assert_eq!(versions(&[member("a", 1)]), "");
    }
}
