//! Who would do better elsewhere, and who talks with whom.

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

/// The pairs that talk most.
pub(super) fn edges(said: &[Value], top: usize) -> String {
    let mut all: Vec<(String, &Value)> = shards(said)
        .flat_map(|(node, shard)| {
            let edges = shard["edges"].as_array().into_iter().flatten();
            edges.map(move |edge| (node.clone(), edge))
        })
        .collect();
    let weight = |edge: &Value| edge["weight"].as_f64().unwrap_or_default();
    all.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
    let mut rows = vec![["ACTOR", "NODE", "TALKS WITH", "MESSAGES"].map(str::to_owned)];
    rows.extend(
        all.into_iter()
            .take(top)
            .map(|(node, edge)| [text(&edge["actor"]), node, text(&edge["partner"]), format!("{:.0}", weight(edge))]),
    );
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
}
