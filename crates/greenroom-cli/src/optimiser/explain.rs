//! What is known of one actor.

use serde_json::{Value, json};

use super::{Explain, TIMEOUT, TOP_MAX, shards, tell_silent};
use crate::door::Door;
use crate::inspect::{is_found, look};
use crate::migrate::split;
use crate::nodes::ask;
use crate::status::{columns, text};

/// Asks all nodes for it, and prints what the one says that knows it best.
pub(super) fn run(command: &Explain) -> Result<(), String> {
    let (kind, key) = split(&command.actor)?;
    let door = command.node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| door.get_json_at(&["-", "optimiser", "explain", kind, key]))?;
    tell_silent(&silent);
    let rate = |found: &&Value| found["rate"].as_f64().unwrap_or_default();
    let known = said.into_iter().filter(|found| !found.is_null());
    let Some(mut found) = known.max_by(|a, b| rate(&a).total_cmp(&rate(&b))) else {
        return Err(unknown(&door, (kind, key), silent.is_empty())?);
    };
    let (advice, _) = ask(&door, |door| door.get_json(&format!("/-/optimiser?top={TOP_MAX}")))?;
    found["partners_elsewhere"] = elsewhere(&advice, &found);
    match command.json {
        true => println!("{}", serde_json::to_string_pretty(&found).unwrap_or_default()),
        false => print!("{}", story(&found)),
    }
    Ok(())
}

/// Why no node knows whom an actor talks with; `all` of them have been asked.
fn unknown(door: &Door, (kind, key): (&str, &str), all: bool) -> Result<String, String> {
    let (found, _) = look(door, kind, key)?;
    let (advice, _) = ask(door, |door| door.get_json("/-/optimiser?top=0"))?;
    Ok(not_known(&format!("{kind}/{key}"), &found, &advice, all))
}

/// The same, of the actor as it was found and what the nodes' optimisers say.
fn not_known(actor: &str, found: &Value, advice: &[Value], all: bool) -> String {
    if !is_found(found) {
        let which = if all { "any node" } else { "any node that answers" };
        return format!(
            "{actor} is not active on {which}: whom it talks with is known some messages after it is called"
        );
    }
    let node = text(&found["node"]);
    let own = advice.iter().find(|advice| advice["node"] == found["node"]);
    match own {
        Some(own) if own["mode"] == "off" => {
            format!(
                "{actor} is on {node}, whose optimiser is off: `--optimiser on` or `--optimiser advise` turns it on"
            )
        }
        Some(own) if own["shards"].as_array().is_some_and(Vec::is_empty) => format!(
            "{actor} is on {node}, which has counted nothing yet: it has just started, or is alone and has one thread, so that \
             there is nowhere to go"
        ),
        _ => format!(
            "{actor} is on {node}, where it is not among those that are sent most; messages to reliable actors, stateless workers \
             and spawned ones do not count"
        ),
    }
}

/// Those of other nodes that send to an actor which was found on its node: their nodes know that. The heaviest first.
fn elsewhere(advice: &[Value], found: &Value) -> Value {
    let weight = |edge: &Value| edge["weight"].as_f64().unwrap_or_default();
    let edges = shards(advice).filter(|(node, _)| *node != text(&found["node"]));
    let mut with: Vec<(String, &Value)> = edges
        .flat_map(|(node, shard)| {
            let edges = shard["edges"].as_array().into_iter().flatten();
            edges.filter(|edge| edge["partner"] == found["actor"]).map(move |edge| (node.clone(), edge))
        })
        .collect();
    let known = found["partners"].as_array().map(Vec::as_slice).unwrap_or_default();
    with.retain(|(_, edge)| known.iter().all(|partner| partner[0] != edge["actor"]));
    with.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
    with.iter().map(|(node, edge)| json!([edge["actor"], edge["weight"], node])).collect()
}

/// What is known of one actor, in words.
fn story(found: &Value) -> String {
    let percent = |part: &Value| part.as_f64().unwrap_or_default() * 100.0;
    let mut story = format!(
        "{} on {}, shard {}: {:.1} messages a second, of which the last {:.0} count\n",
        text(&found["actor"]),
        text(&found["node"]),
        found["shard"],
        found["rate"].as_f64().unwrap_or_default(),
        found["memory"].as_f64().unwrap_or_default(),
    );
    let mut rows = vec![
        ["this shard".to_owned(), format!("{:.0} %", percent(&found["near"]))],
        ["the node's other shards".to_owned(), format!("{:.0} %", percent(&found["beside"]))],
        ["the node's door and program".to_owned(), format!("{:.0} %", percent(&found["outside"]))],
    ];
    for place in found["places"].as_array().into_iter().flatten() {
        rows.push([text(&place[0]), format!("{:.0} %", percent(&place[1]))]);
    }
    story.push_str(&columns(&rows));
    for partner in [&found["partners"], &found["partners_elsewhere"]].into_iter().filter_map(Value::as_array).flatten()
    {
        let on = partner[2].as_str().map(|node| format!(" on {node}")).unwrap_or_default();
        let weight = partner[1].as_f64().unwrap_or_default();
        story.push_str(&format!("talks with {}{on} ({weight:.0})\n", text(&partner[0])));
    }
    if found["brought"].is_object() {
        let brought = &found["brought"];
        let ago = brought["ago_seconds"].as_f64().unwrap_or_default();
        story.push_str(&format!("came from {} {ago:.0} s ago: {}\n", text(&brought["from"]), text(&brought["why"])));
    }
    story.push_str(&format!("{}\n", text(&found["why"])));
    story
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_other_nodes_that_send_to_an_actor_are_its_partners_too() {
        let edge = |actor: &str, weight: f64| json!({ "actor": actor, "partner": "user/ada", "weight": weight });
        let of = |node: &str, edges: &[Value]| json!({ "node": node, "shards": [{ "edges": edges }] });
        let advice = [
            of("a", &[edge("room/near", 9.0)]),
            of("b", &[edge("room/1", 2.0), json!({ "actor": "room/1", "partner": "user/bob", "weight": 7.0 })]),
            of("c", &[edge("room/2", 3.0), edge("room/3", 4.0)]),
        ];
        let mut found = json!({ "actor": "user/ada", "node": "a", "partners": [["room/near", 9.0], ["room/3", 4.0]] });
        found["partners_elsewhere"] = elsewhere(&advice, &found);
        assert_eq!(found["partners_elsewhere"], json!([["room/2", 3.0, "c"], ["room/1", 2.0, "b"]]));
        let said = story(&found);
        assert!(said.contains("talks with room/near (9)\n") && said.contains("talks with room/1 on b (2)\n"), "{said}");
    }

    #[test]
    fn why_nothing_is_known_of_an_actor_is_told_apart() {
        let of = |mode: &str, shards: Value| [json!({ "node": "a", "mode": mode, "shards": shards })];
        let (found, shard) = (json!({ "node": "a", "epoch": 1 }), json!([{ "kinds": [] }]));
        let said = |found: &Value, advice: &[Value], all| not_known("user/ada", found, advice, all);
        let gone = json!({ "state": "not active" });
        assert!(said(&gone, &of("on", shard.clone()), true).starts_with("user/ada is not active on any node:"));
        assert!(said(&gone, &of("on", shard.clone()), false).contains("any node that answers"));
        assert!(said(&found, &of("off", json!([])), true).contains("on a, whose optimiser is off"));
        assert!(said(&found, &of("on", json!([])), true).contains("alone and has one thread"));
        assert!(said(&found, &of("on", shard), true).contains("not among those that are sent most"));
    }
}
