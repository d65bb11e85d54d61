//! The actors that were moved.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::{Of, TIMEOUT};
use crate::nodes::ask;
use crate::status::{columns, text};

/// Prints what the nodes' optimisers have moved last.
pub(super) fn list(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| door.get_json("/-/optimiser/moves"))?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    silent.iter().for_each(|why| println!("not asked: {why}"));
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for node in &said {
        let moved = node.as_array().map(Vec::as_slice).unwrap_or_default();
        rows.extend(moved.iter().skip(moved.len().saturating_sub(of.top)).map(row));
    }
    print!("{}", columns(&rows));
    Ok(())
}

/// Prints the last moves, and then those to come.
pub(super) fn follow(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (mut known, mut widths) = (Known::default(), HEADINGS.map(str::len));
    let mut out = std::io::stdout();
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let mut limit = of.top;
    loop {
        // A node that does not answer now may do so a second later.
        let said = ask(&door, |door| door.get_json("/-/optimiser/moves")).map(|(said, _)| said).unwrap_or_default();
        rows.extend(said.iter().flat_map(|moved| known.news(moved, limit)).map(row));
        for row in rows.drain(..) {
            let fields = row.iter().zip(&mut widths).map(|(field, width)| {
                *width = (*width).max(field.chars().count());
                format!("{field:width$}")
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
    }
}

/// The number of the last move of each node that was printed.
#[derive(Default)]
struct Known(BTreeMap<String, u64>);

impl Known {
    /// The moves of one node that were not printed yet, at most the last `limit`.
    fn news<'a>(&mut self, moved: &'a Value, limit: usize) -> &'a [Value] {
        let moved = moved.as_array().map(Vec::as_slice).unwrap_or_default();
        let number = |moved: &Value| moved["number"].as_u64().unwrap_or_default();
        let Some(last) = moved.last() else { return &[] };
        let known = self.0.entry(text(&last["from"])).or_default();
        let before = std::mem::replace(known, number(last));
        // A node that has started anew counts anew.
        let printed = if before > number(last) { 0 } else { before };
        let news = moved.partition_point(|moved| number(moved) <= printed);
        &moved[news.max(moved.len().saturating_sub(limit))..]
    }
}

fn row(moved: &Value) -> [String; 6] {
    let number = |name: &str| moved[name].as_f64().unwrap_or_default();
    let [actor, why] = ["actor", "why"].map(|name| text(&moved[name]));
    let [from, to] = [("from", 0), ("to", 1)].map(|(name, end)| match &moved["shards"][end] {
        Value::Null => text(&moved[name]),
        shard => format!("{}, shard {shard}", text(&moved[name])),
    });
    [format!("{:.0}", number("at_s")), actor, from, to, format!("{:.1}", number("gain") / 60.0), why]
}

const FOLLOW_EVERY: Duration = Duration::from_secs(1);
const HEADINGS: [&str; 6] = ["SECOND", "ACTOR", "FROM", "TO", "NEARER MESSAGES/S", "WHY"];

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
        let mut news = |moved: &Value, limit| {
            let news = known.news(moved, limit);
            news.iter().map(|moved| moved["number"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(news(&moves("a", 1..6), 2), [4, 5], "the last ones at first");
        assert_eq!(news(&moves("a", 2..8), 9), [6, 7]);
        assert_eq!(news(&moves("b", 1..3), 9), [1, 2], "each node has numbers of its own");
        assert_eq!(news(&moves("a", 2..8), 9), [0; 0]);
        assert_eq!(news(&moves("a", 1..2), 9), [1], "a node that has started anew");
        assert_eq!(news(&json!([]), 9), [0; 0]);
    }

    #[test]
    fn a_move_between_shards_says_which_ones() {
        let moved = |shards: Value| row(&json!({ "from": "a", "to": "b", "shards": shards }))[2..4].join(" to ");
        assert_eq!((moved(json!([0, 1])), moved(Value::Null)), ("a, shard 0 to b, shard 1".into(), "a to b".into()));
    }
}
