//! What is known of one actor.

use serde_json::Value;

use super::{Explain, TIMEOUT};
use crate::migrate::split;
use crate::nodes::ask;
use crate::status::{columns, text};

/// Asks all nodes for it, and prints what the one says that knows it.
pub(super) fn run(command: &Explain) -> Result<(), String> {
    let (kind, key) = split(&command.actor)?;
    let door = command.node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| door.get_json_at(&["-", "optimiser", "explain", kind, key]))?;
    silent.iter().for_each(|why| println!("not asked: {why}"));
    let Some(found) = said.iter().find(|found| !found.is_null()) else {
        return Err(format!(
            "no node knows whom {} talks with: it is not among the actors that are sent most, or the optimiser is off where it is",
            command.actor
        ));
    };
    print!("{}", story(found));
    Ok(())
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
    for partner in found["partners"].as_array().into_iter().flatten() {
        story.push_str(&format!("talks with {} ({:.0})\n", text(&partner[0]), partner[1].as_f64().unwrap_or_default()));
    }
    if found["brought"].is_object() {
        let brought = &found["brought"];
        let ago = brought["ago_seconds"].as_f64().unwrap_or_default();
        story.push_str(&format!("came from {} {ago:.0} s ago: {}\n", text(&brought["from"]), text(&brought["why"])));
    }
    story.push_str(&format!("{}\n", text(&found["why"])));
    story
}
