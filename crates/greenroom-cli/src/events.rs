//! `greenroom events`: what happened at the nodes of a cluster, and what happens.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::door::{Door, NodeAddress, encoded};
use crate::status::{columns, plain, silent, text};

/// Which events, and how to tell.
#[derive(Args)]
pub(crate) struct EventsCommand {
    /// Go on, and print what happens
    #[arg(long, short)]
    follow: bool,
    /// Those that matter so much, or more
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Those about a node, cluster, kind, method or actor of this name
    #[arg(long)]
    subject: Option<String>,
    /// Those that are called so: `moved` tells each move of the optimiser, which are one event a minute otherwise
    #[arg(long)]
    event: Option<String>,
    /// Those of the last seconds
    #[arg(long)]
    seconds: Option<u32>,
    /// So many, the last ones; at most 1000
    #[arg(long, default_value_t = 100)]
    limit: u16,
    /// Print them as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Hint,
    Good,
    Warn,
    Bad,
}

/// Asks a node, and prints what happened at those of its cluster, the last at the end.
pub(crate) fn run(command: &EventsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = command.seconds.map(|seconds| now.saturating_sub(Duration::from_secs(seconds.into())));
    let mut told = Told::default();
    eprint!("{}", print(command, &door, since, &mut told)?);
    if !command.follow {
        return Ok(());
    }
    loop {
        sleep(FOLLOW_EVERY);
        // Clocks of nodes are not the same, and what was told once is not told again.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = now.saturating_sub(FOLLOW_BACK).max(since.unwrap_or_default());
        print(command, &door, Some(since), &mut told)?;
    }
}

/// Prints those events since then that were not told yet; what is to be said of the nodes that gave no answer.
fn print(command: &EventsCommand, door: &Door, since: Option<Duration>, told: &mut Told) -> Result<String, String> {
    let mut said = door.get_json(&path(command, since))?;
    let left_out = said["left_out"].take();
    said["left_out"] = said["nodes_left_out"].take();
    let events = told.news(&said);
    if command.json {
        events.iter().for_each(|event| println!("{event}"));
        return Ok(silent(&said));
    }
    print!("{}", columns(&told.head().into_iter().chain(events.iter().map(row)).collect::<Vec<_>>()));
    if let Some(left_out) = left_out.as_u64().filter(|count| *count > 0 && told.rounds == 1) {
        println!("{left_out} earlier ones are left out: --limit, --level and --seconds choose");
    }
    Ok(silent(&said))
}

fn path(command: &EventsCommand, since: Option<Duration>) -> String {
    let mut path = format!("/-/events?limit={}", command.limit);
    if let Some(since) = since {
        path.push_str(&format!("&since={}", since.as_millis()));
    }
    let level = command.level.and_then(|level| level.to_possible_value());
    if let Some(level) = &level {
        path.push_str(&format!("&level={}", level.get_name()));
    }
    if let Some(subject) = &command.subject {
        path.push_str(&format!("&subject={}", encoded(subject)));
    }
    if let Some(event) = &command.event {
        path.push_str(&format!("&event={}", encoded(event)));
    }
    path
}

/// What was told already.
#[derive(Default)]
struct Told {
    rounds: u32,
    events: BTreeSet<(u64, String, u64)>,
}

impl Told {
    /// Those that were not told yet, in their order.
    fn news(&mut self, said: &Value) -> Vec<Value> {
        self.rounds += 1;
        let all = said["events"].as_array().into_iter().flatten();
        let name = |event: &Value| {
            let number = |name: &str| event[name].as_u64().unwrap_or_default();
            (number("at"), text(&event["node"]), number("number"))
        };
        let mut news: Vec<(_, &Value)> = all.map(|event| (name(event), event)).collect();
        news.retain(|(name, _)| self.events.insert(name.clone()));
        news.sort_by(|(one, _), (other, _)| one.cmp(other));
        let events = news.into_iter().map(|(_, event)| event.clone()).collect();
        while self.events.len() > TOLD_MAX {
            self.events.pop_first();
        }
        events
    }

    fn head(&self) -> Option<[String; 6]> {
        (self.rounds == 1).then(|| ["TIME (UTC)", "LEVEL", "NODE", "EVENT", "BY", "WHAT"].map(str::to_owned))
    }
}

fn row(event: &Value) -> [String; 6] {
    let at = event["at"].as_u64().unwrap_or_default();
    let by = plain(&event["by"]);
    [clock(at), text(&event["level"]), text(&event["node"]), text(&event["event"]), by, plain(&event["text"])]
}

/// The time of the day, of Unix milliseconds.
pub(crate) fn clock(at: u64) -> String {
    let (seconds, millis) = (at / 1000, at % 1000);
    let [hours, minutes, seconds] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

const TIMEOUT: Duration = Duration::from_secs(5);
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// So far back the nodes are asked again: their clocks may be apart.
const FOLLOW_BACK: Duration = Duration::from_secs(60);
/// Events whose names are remembered: more than 32 nodes keep.
const TOLD_MAX: usize = 32 * 4096;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(events: &[(&str, u64, u64, &str)]) -> Value {
        let event = |(node, number, at, text): &(&str, u64, u64, &str)| json!({ "number": number, "at": at, "level": "bad", "event": "died", "subject": {}, "text": text, "by": null, "node": node });
        json!({ "events": events.iter().map(event).collect::<Vec<_>>(), "left_out": 0, "silent": [] })
    }

    #[test]
    fn events_are_told_in_their_order_and_each_once() {
        let mut told = Told::default();
        let texts = |events: Vec<Value>| events.iter().map(|event| text(&event["text"])).collect::<Vec<_>>();
        let first = said(&[("a", 2, 9_000, "three"), ("b", 1, 4_000, "two"), ("a", 1, 3_000, "one")]);
        assert_eq!(texts(told.news(&first)), ["one", "two", "three"]);
        let next = said(&[("a", 2, 9_000, "three"), ("b", 2, 4_000, "four"), ("b", 1, 4_000, "two")]);
        assert_eq!(texts(told.news(&next)), ["four"]);
    }

    #[test]
    fn an_event_moves_no_cursor() {
        let said = said(&[("a", 1, 86_400_000 + 3_723_004, "room/\u{1b}[2J\nis \"dead\"")]);
        let row = row(&said["events"][0]);
        assert_eq!(row, ["01:02:03.004", "bad", "a", "died", "-", "room/\\u{1b}[2J\\nis \"dead\""].map(str::to_owned));
    }
}
