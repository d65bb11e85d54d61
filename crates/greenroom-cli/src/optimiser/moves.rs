//! The actors that were moved.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::{Of, TIMEOUT, tell_silent};
use crate::door::Door;
use crate::events::clock;
use crate::nodes::ask;
use crate::status::{columns, padded, text};

/// Prints what the nodes' optimisers have moved last.
pub(super) fn list(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (said, silent) = asked(&door)?;
    tell_silent(&silent);
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    let all = said.iter().filter_map(Value::as_array).flatten().collect();
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(in_order(all, of.top, now()));
    print!("{}", columns(&rows));
    Ok(())
}

/// Prints the last moves, and then those to come.
pub(super) fn follow(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (mut known, mut widths) = (Known::default(), HEADINGS.map(str::len));
    let mut out = std::io::stdout();
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let (mut said, mut silent) = asked(&door)?;
    let (mut limit, mut told) = (of.top, Vec::new());
    loop {
        if silent != told {
            tell_silent(&silent);
            told = silent;
        }
        let news = said.iter().flat_map(|moved| known.news(moved)).collect();
        rows.extend(in_order(news, limit, now()));
        for row in rows.drain(..) {
            let fields = row.iter().zip(&mut widths).map(|(field, width)| {
                *width = (*width).max(field.width());
                padded(field, *width)
            });
            let line = fields.collect::<Vec<_>>().join("  ");
            if writeln!(out, "{}", line.trim_end()).is_err() {
                return Ok(());
            }
        }
        if out.flush().is_err() {
            return Ok(());
        }
        limit = usize::MAX;
        std::thread::sleep(FOLLOW_EVERY);
        // A node that does not answer now may do so a second later.
        (said, silent) = asked(&door).unwrap_or_else(|error| (Vec::new(), vec![error]));
    }
}

/// What each node has moved that answers; and who did not, and why.
fn asked(door: &Door) -> Result<(Vec<Value>, Vec<String>), String> {
    ask(door, |door| door.get_json("/-/optimiser/moves"))
}

/// Lines for the last of these, the last one last; at `now`, in Unix milliseconds.
fn in_order(mut moved: Vec<&Value>, top: usize, now: u64) -> impl Iterator<Item = [String; 6]> {
    let ago = |moved: &Value| moved["ago_s"].as_f64().unwrap_or(f64::MAX);
    moved.sort_by(|a, b| ago(b).total_cmp(&ago(a)));
    let first = moved.len().saturating_sub(top);
    moved.into_iter().skip(first).map(move |moved| row(moved, now))
}

/// Unix milliseconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The number of the last move of each node that was printed.
#[derive(Default)]
struct Known(BTreeMap<String, u64>);

impl Known {
    /// The moves of one node that were not printed yet.
    fn news<'a>(&mut self, moved: &'a Value) -> &'a [Value] {
        let moved = moved.as_array().map(Vec::as_slice).unwrap_or_default();
        let number = |moved: &Value| moved["number"].as_u64().unwrap_or_default();
        let Some(last) = moved.last() else { return &[] };
        let known = self.0.entry(text(&last["from"])).or_default();
        let before = std::mem::replace(known, number(last));
        // A node that has started anew counts anew.
        let printed = if before > number(last) { 0 } else { before };
        &moved[moved.partition_point(|moved| number(moved) <= printed)..]
    }
}

fn row(moved: &Value, now: u64) -> [String; 6] {
    let number = |name: &str| moved[name].as_f64().unwrap_or_default();
    let [actor, why] = ["actor", "why"].map(|name| text(&moved[name]));
    let [from, to] = [("from", 0), ("to", 1)].map(|(name, end)| match &moved["shards"][end] {
        Value::Null => text(&moved[name]),
        shard => format!("{}, shard {shard}", text(&moved[name])),
    });
    let at = |ago: f64| clock(now.saturating_sub((ago * 1000.0) as u64));
    [
        moved["ago_s"].as_f64().map_or_else(|| "-".to_owned(), at),
        actor,
        from,
        to,
        format!("{:.1}", number("gain") / 60.0),
        why,
    ]
}

const FOLLOW_EVERY: Duration = Duration::from_secs(1);
const HEADINGS: [&str; 6] = ["TIME (UTC)", "ACTOR", "FROM", "TO", "NEARER MESSAGES/S", "WHY"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_follows_moves_sees_each_of_them_once() {
        let moves = |from: &str, numbers: std::ops::Range<u64>| -> Value {
            numbers.map(|number| json!({ "number": number, "from": from })).collect()
        };
        let mut known = Known::default();
        let mut news = |moved: &Value| {
            let news = known.news(moved);
            news.iter().map(|moved| moved["number"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(news(&moves("a", 1..6)), [1, 2, 3, 4, 5]);
        assert_eq!(news(&moves("a", 2..8)), [6, 7]);
        assert_eq!(news(&moves("b", 1..3)), [1, 2], "each node has numbers of its own");
        assert_eq!(news(&moves("a", 2..8)), [0; 0]);
        assert_eq!(news(&moves("a", 1..2)), [1], "a node that has started anew");
        assert_eq!(news(&json!([])), [0; 0]);
    }

    #[test]
    fn moves_of_all_nodes_are_in_the_order_of_time_and_the_last_are_told() {
        let moved = |actor: &str, ago_s: f64| json!({ "actor": actor, "from": "a", "to": "b", "ago_s": ago_s });
        let all = [moved("p/1", 9.0), moved("p/3", 1.5), moved("p/2", 4.0), json!({ "actor": "p/0" })];
        let told: Vec<_> =
            in_order(all.iter().collect(), 3, 3_600_000).map(|[time, actor, ..]| (time, actor)).collect();
        let expected = [("00:59:51.000", "p/1"), ("00:59:56.000", "p/2"), ("00:59:58.500", "p/3")];
        assert_eq!(told, expected.map(|(time, actor)| (time.to_owned(), actor.to_owned())));
    }

    #[test]
    fn a_move_between_shards_says_which_ones() {
        let moved = |shards: Value| row(&json!({ "from": "a", "to": "b", "shards": shards }), 0)[2..4].join(" to ");
        assert_eq!((moved(json!([0, 1])), moved(Value::Null)), ("a, shard 0 to b, shard 1".into(), "a to b".into()));
    }
}
