//! `greenroom waits`: turns that have run for long in a cluster, who waits for them, and deadlocks.

use std::time::Duration;

use clap::Args;
use greenroom::Waits;
use greenroom_protocols::wait_for::WaitFor;
use serde_json::Value;

use crate::door::{Door, NodeAddress};
use crate::status::is_gone;

/// Whom to ask, and for what.
#[derive(Args)]
pub(crate) struct WaitsCommand {
    #[command(flatten)]
    node: NodeAddress,
    /// Tell of turns that have run for so long
    #[arg(long, value_name = "TIME", default_value = "1s")]
    over: String,
}

/// Asks all nodes that have a door, and prints what they say.
pub(crate) fn run(command: &WaitsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let status = door.get_json("/-/status")?;
    let path = format!("/-/waits?over={}", command.over);
    let mut told = vec![read(&door, &path)?];
    let mut silent = Vec::new();
    for member in status["cluster"]["members"].as_array().into_iter().flatten() {
        if member["id"] == status["node"]["id"] || is_gone(member) {
            continue;
        }
        let answer = member["http"].as_str().map(|http| door.at(http).and_then(|other| read(&other, &path)));
        match answer {
            Some(Ok(waits)) => told.push(waits),
            Some(Err(error)) => silent.push(format!("{}: {error}", member["name"].as_str().unwrap_or("?"))),
            None => silent.push(format!("{}: it has no HTTP door", member["name"].as_str().unwrap_or("?"))),
        }
    }
    print!("{}", report(&told));
    silent.iter().for_each(|node| println!("not asked: {node}"));
    Ok(())
}

fn read(door: &Door, path: &str) -> Result<Waits, String> {
    let value: Value = door.get_json(path)?;
    serde_json::from_value(value).map_err(|error| format!("{} tells of no waits: {error}", door.url()))
}

/// What the nodes told, in words: deadlocks first.
fn report(told: &[Waits]) -> String {
    let mut graph = WaitFor::default();
    for turn in told.iter().flat_map(|waits| &waits.turns) {
        turn.waiters.iter().for_each(|waiter| graph.insert(waiter, &turn.actor));
    }
    let mut text = String::new();
    for cycle in graph.cycles() {
        text.push_str(&format!("DEADLOCK  {} -> {}\n", cycle.join(" -> "), cycle[0]));
    }
    for waits in told {
        for shard in &waits.stuck_shards {
            text.push_str(&format!(
                "STUCK     thread {shard} of node {}: a turn keeps it, without an await\n",
                waits.node
            ));
        }
    }
    let mut turns: Vec<_> =
        told.iter().flat_map(|waits| waits.turns.iter().map(move |turn| (&waits.node, turn))).collect();
    turns.sort_by(|(_, one), (_, other)| other.running_seconds.total_cmp(&one.running_seconds));
    for (node, turn) in &turns {
        text.push_str(&format!("{:>8.1} s  {} on node {node}", turn.running_seconds, turn.turn));
        let waits_for: Vec<&str> = graph.of(&turn.actor).collect();
        if !waits_for.is_empty() {
            text.push_str(&format!(", waits for {}", waits_for.join(", ")));
        }
        if turn.queued > 0 {
            text.push_str(&format!(", {} messages wait", turn.queued));
        }
        if !turn.waiters.is_empty() {
            text.push_str(&format!(", awaited by {}", turn.waiters.join(", ")));
        }
        text.push('\n');
    }
    if text.is_empty() {
        text.push_str("no turn has run for so long\n");
    }
    text
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_over_two_nodes_is_told_first() {
        let turn = |actor: &str, waiter: &str, seconds: f64| serde_json::json!({ "actor": actor, "turn": format!("{actor}.post"), "running_seconds": seconds, "waiters": [waiter], "queued": 1 });
        let node = |name: &str, turn: Value| {
            serde_json::from_value::<Waits>(serde_json::json!({ "node": name, "turns": [turn], "stuck_shards": [] }))
                .unwrap()
        };
        let told = [node("one", turn("room/a", "room/b", 3.0)), node("two", turn("room/b", "room/a", 4.0))];
        let text = report(&told);
        assert!(text.starts_with("DEADLOCK  room/a -> room/b -> room/a\n"), "{text}");
        assert!(
            text.contains("4.0 s  room/b.post on node two, waits for room/a, 1 messages wait, awaited by room/a"),
            "{text}"
        );
    }
}
