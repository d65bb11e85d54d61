//! `greenroom inspect`: one actor, looked into.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use greenroom::{Adaptive, Brought, Inspection, PastTurn};
use serde_json::{Value, json};

use crate::door::{Door, NodeAddress};
use crate::migrate::split;
use crate::status::{columns, is_gone, members, text};

/// Which actor, and whom to ask.
#[derive(Args)]
pub(crate) struct InspectCommand {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// What the node says that has the actor, or else what the first says that was asked; and who was not asked, and why.
pub(crate) fn look(door: &Door, kind: &str, key: &str) -> Result<(Value, Vec<String>), String> {
    let status = door.get_json("/-/status")?;
    let ask = |door: &Door| door.get_json_at(&["-", "inspect", kind, key]);
    let mut answer = ask(door)?;
    let mut silent = Vec::new();
    for member in members(&status) {
        if is_found(&answer) {
            break;
        }
        if member["id"] == status["node"]["id"] || is_gone(member) {
            continue;
        }
        let told = member["http"].as_str().map(|http| door.at(http).and_then(|other| ask(&other)));
        match told {
            Some(Ok(told)) if is_found(&told) || told["cluster"].is_string() => answer = told,
            Some(Ok(_)) => {}
            Some(Err(error)) => silent.push(format!("{}: {error}", text(&member["name"]))),
            None => silent.push(format!("{}: it has no HTTP door", text(&member["name"]))),
        }
    }
    Ok((answer, silent))
}

/// Asks one node after the other until one has the actor.
pub(crate) fn run(command: &InspectCommand) -> Result<(), String> {
    let (kind, key) = split(&command.actor)?;
    let (answer, silent) = look(&command.node.door(TIMEOUT)?, kind, key)?;
    if let Some(shard) = answer["stuck_shard"].as_u64() {
        let node = text(&answer["node"]);
        return Err(format!(
            "{} is on thread {shard} of node {node}, which does not answer: a turn keeps it, without an await",
            command.actor
        ));
    }
    if let Some(cluster) = answer["cluster"].as_str().filter(|_| !is_found(&answer)) {
        match command.json {
            true => println!("{answer}"),
            false => println!("{} is in cluster {cluster:?}; ask a node of that cluster", command.actor),
        }
        return Ok(());
    }
    if !is_found(&answer) {
        silent.iter().for_each(|node| eprintln!("not asked: {node}"));
        if command.json {
            println!("{}", json!({ "actor": command.actor, "state": "not active" }));
            return Ok(());
        }
        let which = if silent.is_empty() { "any node" } else { "any node that answers" };
        println!("{} is not active on {which}; the next call activates it", command.actor);
        return Ok(());
    }
    if command.json {
        println!("{}", serde_json::to_string_pretty(&answer).unwrap_or_default());
        return Ok(());
    }
    let found: Inspection =
        serde_json::from_value(answer).map_err(|error| format!("what the node tells is no inspection: {error}"))?;
    print!("{}", report(&found));
    Ok(())
}

/// Whether the node that answered has the actor.
pub(crate) fn is_found(answer: &Value) -> bool {
    answer["epoch"].is_u64() || answer["stuck_shard"].is_u64()
}

/// What was found, in words.
fn report(found: &Inspection) -> String {
    let Inspection { actor, node, shard, epoch, state, waiting, timers, .. } = found;
    let mut lines = vec![format!("{actor} is {state} on node {node}, thread {shard}")];
    lines.push(format!(
        "epoch {epoch}, active for {}, last turn began {} ago",
        seconds(found.age_seconds),
        seconds(found.idle_seconds)
    ));
    if let Some(instances) = &found.instances {
        lines.extend(adaptive(instances));
    }
    if let Some(Brought { from, ago_seconds, why, .. }) = &found.brought {
        lines.push(format!("CAME      from {from} {} ago: {why}", seconds(*ago_seconds)));
    }
    for turn in &found.turns {
        let beside = if turn.read { " (a read)" } else { "" };
        lines.push(format!(
            "RUNS      {}{beside} for {}{}{}",
            turn.method,
            seconds(turn.running_seconds),
            awaited(turn.caller.as_deref()),
            left(turn.left_seconds)
        ));
    }
    lines.push(match waiting {
        0 => "no message waits".to_owned(),
        1 => "1 message waits".to_owned(),
        many => format!("{many} messages wait"),
    });
    for message in &found.messages {
        lines.push(format!(
            "WAITS     {} for {}{}{}",
            message.method,
            seconds(message.waited_seconds),
            awaited(message.caller.as_deref()),
            left(message.left_seconds)
        ));
    }
    if *timers > 0 {
        lines.push(format!("{timers} timers are set"));
    }
    for child in &found.children {
        lines.push(format!("CHILD     {child}"));
    }
    let mut said = lines.join("\n") + "\n";
    match (found.history_len_max, &found.history[..]) {
        (0, _) => said.push_str("its last turns are not kept; name its kind in the node's `history`\n"),
        (_, []) => said.push_str("no turn has ended since they are kept\n"),
        (_, history) => {
            let mut rows = vec![["ENDED", "METHOD", "QUEUED", "TOOK", "OUTCOME", "CALLER"].map(str::to_owned)];
            rows.extend(history.iter().rev().map(row));
            said.push_str(&columns(&rows));
        }
    }
    said
}

/// How many instances it has over all clusters, and why.
fn adaptive(found: &Adaptive) -> [String; 3] {
    let Adaptive { instances, home, epoch, why, at_unix_seconds, back, decider, .. } = found;
    let home = home.as_ref().map(|home| format!(", in {home}")).unwrap_or_default();
    let ago = |at: u64| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        format!(", decided in {decider} {} s ago", now.saturating_sub(at))
    };
    let decided = at_unix_seconds.map_or_else(|| format!(", decided in {decider}"), ago);
    [
        format!("INSTANCES {instances}{home} since epoch {epoch}{decided}"),
        format!("WHY       {why}"),
        format!("UNTIL     {back}"),
    ]
}

fn row(turn: &PastTurn) -> [String; 6] {
    [
        format!("{} ago", seconds(turn.ago_seconds)),
        turn.method.clone(),
        seconds(turn.queued_seconds),
        seconds(turn.took_seconds),
        turn.outcome.clone(),
        turn.caller.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn awaited(caller: Option<&str>) -> String {
    caller.map(|caller| format!(", awaited by {caller}")).unwrap_or_default()
}

fn left(seconds_left: Option<f64>) -> String {
    seconds_left.map(|left| format!(", {} left", seconds(left))).unwrap_or_default()
}

fn seconds(seconds: f64) -> String {
    match seconds {
        few if few < 0.01 => format!("{:.2} ms", few * 1000.0),
        few if few < 1.0 => format!("{:.0} ms", few * 1000.0),
        few if few < 100.0 => format!("{few:.1} s"),
        many => format!("{many:.0} s"),
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_said_in_words() {
        let found: Inspection = serde_json::from_value(json!({
            "actor": "printer/hall", "node": "a", "shard": 1, "epoch": 7, "state": "ready", "age_seconds": 61.0,
            "idle_seconds": 0.5, "waiting": 1, "timers": 0, "children": [], "history_len_max": 2,
            "turns": [{ "method": "print", "running_seconds": 0.5, "read": false, "caller": null, "left_seconds": 9.5 }],
            "messages": [{ "method": "pages", "waited_seconds": 0.25, "caller": "user/ada", "left_seconds": null }],
            "history": [{ "method": "pages", "ago_seconds": 2.0, "queued_seconds": 0.0, "took_seconds": 0.0002,
                "outcome": "ok", "caller": null }],
            "brought": { "from": "b", "ago_seconds": 3.0, "why": "75 % of its last messages went here, 0 % stayed there" },
            "instances": { "instances": "single", "home": "eu", "epoch": 2, "why": "us: 7 reads", "at_unix_seconds": 1,
                "back": "one in each cluster, when", "decider": "us" },
        }))
        .expect("it is what nodes tell");
        let said = report(&found);
        for part in [
            "printer/hall is ready on node a, thread 1",
            "RUNS      print for 500 ms, 9.5 s left",
            "WAITS     pages for 250 ms, awaited by user/ada",
            "2.0 s ago",
            "0.20 ms",
            "INSTANCES single, in eu since epoch 2, decided in us ",
            "WHY       us: 7 reads",
            "CAME      from b 3.0 s ago: 75 % of its last messages went here",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
