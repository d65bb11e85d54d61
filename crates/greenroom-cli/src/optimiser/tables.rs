//! Who would do better elsewhere, and who talks with whom.

use std::collections::BTreeMap;

use serde_json::Value;

use super::shards;
use crate::status::{columns, text};

/// Who would do better elsewhere, those that gain most first.
pub(super) fn wishes(said: &[Value], top: usize) -> String {
    let mut all: Vec<(String, &Value)> = shards(said)
        .flat_map(|(node, shard)| {
            let wishes = shard["wishes"].as_array().into_iter().flatten();
            wishes.map(move |wish| (node.clone(), wish))
        })
        .collect();
    let gain = |wish: &Value| wish["gain"].as_f64().unwrap_or_default() * wish["rate"].as_f64().unwrap_or_default();
    all.sort_by(|a, b| gain(b.1).total_cmp(&gain(a.1)));
    let mut rows = vec![["ACTOR", "NODE", "WOULD GO TO", "NEARER MESSAGES/S", "COST"].map(str::to_owned)];
    rows.extend(all.into_iter().take(top).map(|(node, wish)| {
        let cost = format!("{:.0} messages", wish["cost"].as_f64().unwrap_or_default());
        [text(&wish["actor"]), node, text(&wish["to"]), format!("{:.1}", gain(wish)), cost]
    }));
    columns(&rows)
}

/// The pairs that talk most, each once, and the nodes of both where they are known.
pub(super) fn edges(said: &[Value], top: usize) -> String {
    let mut pairs: BTreeMap<[String; 2], (f64, [String; 2])> = BTreeMap::new();
    let mut at: BTreeMap<String, String> = BTreeMap::new();
    for (node, shard) in shards(said) {
        for edge in shard["edges"].as_array().into_iter().flatten() {
            let told = [text(&edge["actor"]), text(&edge["partner"])];
            at.insert(told[0].clone(), node.clone());
            let mut pair = told.clone();
            pair.sort();
            // Either end counts all that it sees.
            let weight = edge["weight"].as_f64().unwrap_or_default();
            let known = pairs.entry(pair).or_default();
            if weight >= known.0 {
                *known = (weight, told);
            }
        }
    }
    let mut all: Vec<_> = pairs.into_values().collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut rows = vec![["ACTOR", "NODE", "TALKS WITH", "NODE", "MESSAGES"].map(str::to_owned)];
    rows.extend(all.into_iter().take(top).map(|(weight, [one, other])| {
        let [here, there] = [&one, &other].map(|actor| at.get(actor).cloned().unwrap_or_else(|| "-".to_owned()));
        [one, here, other, there, format!("{weight:.0}")]
    }));
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wishes_and_edges_of_all_nodes_are_in_one_order() {
        let wish =
            |actor: &str, rate: f64| json!({ "actor": actor, "to": "b", "gain": 0.5, "rate": rate, "cost": 16.0 });
        let edge = |actor: &str, weight: f64| json!({ "actor": actor, "partner": "game/1", "weight": weight });
        let said = [
            json!({ "node": "a", "shards": [{ "wishes": [wish("p/1", 2.0)], "edges": [edge("p/1", 9.0)] }] }),
            json!({ "node": "b", "shards": [{ "wishes": [wish("p/2", 8.0)], "edges": [edge("p/2", 7.0)] }] }),
        ];
        let lines = |text: String| text.lines().skip(1).map(|line| line[..3].to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(wishes(&said, 5)), ["p/2", "p/1"]);
        assert_eq!(lines(edges(&said, 1)), ["p/1"]);
    }

    #[test]
    fn a_pair_is_one_line_whoever_tells_of_it_and_says_where_both_are() {
        let edge =
            |actor: &str, partner: &str, weight: f64| json!({ "actor": actor, "partner": partner, "weight": weight });
        let said = [
            json!({ "node": "a", "shards": [{ "edges": [edge("p/1", "g/1", 9.0), edge("g/1", "p/1", 9.5), edge("g/1", "p/2", 1.0)] }] }),
            json!({ "node": "b", "shards": [{ "edges": [edge("p/2", "g/1", 3.0), edge("p/2", "g/2", 2.0)] }] }),
        ];
        let said = edges(&said, 5);
        let rows: Vec<Vec<&str>> = said.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        let expected = [["g/1", "a", "p/1", "a", "10"], ["p/2", "b", "g/1", "a", "3"], ["p/2", "b", "g/2", "-", "2"]];
        assert_eq!(rows, expected.map(|row| row.to_vec()));
    }
}
