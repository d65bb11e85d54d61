//! `greenroom pids`: the spawned actors of a node.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::status::{columns, is_gone, members, text};

/// Whose actors, and whom to ask.
#[derive(Args)]
pub(crate) struct PidsCommand {
    /// The name of the node whose actors are listed; all nodes of the cluster, if it is left out
    #[arg(value_name = "NODE")]
    name: Option<String>,
    #[command(flatten)]
    node: NodeAddress,
}

/// Prints the spawned actors, a line each.
pub(crate) fn run(command: &PidsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    let status = door.get_json("/-/status")?;
    let meant = |member: &&Value| match &command.name {
        Some(name) => member["name"] == name.as_str(),
        None => !is_gone(member),
    };
    let asked: Vec<&Value> = members(&status).iter().filter(meant).collect();
    if let (Some(name), []) = (&command.name, &asked[..]) {
        let names: Vec<String> = members(&status).iter().map(|member| text(&member["name"])).collect();
        return Err(format!("no node of the cluster is called {name:?}; there are {}", names.join(", ")));
    }
    let mut rows = vec![["ACTOR", "NODE", "SHARD", "PARENT", "RESTARTS", "AGE", "TURN", "WAITING"].map(str::to_owned)];
    for member in asked {
        let node = text(&member["name"]);
        let listed = if member["id"] == status["node"]["id"] {
            door.get_json("/-/pids")?
        } else {
            match member["http"].as_str() {
                Some(http) => door.at(http)?.get_json("/-/pids")?,
                None => return Err(format!("node {node:?} has no HTTP door to ask; start it with --http")),
            }
        };
        rows.extend(listed["spawned"].as_array().into_iter().flatten().map(|spawned| row(&node, spawned)));
    }
    print!("{}", columns(&rows));
    Ok(())
}

fn row(node: &str, spawned: &Value) -> [String; 8] {
    [
        text(&spawned["actor"]),
        node.to_owned(),
        spawned["shard"].to_string(),
        text(&spawned["parent"]),
        spawned["restarts"].to_string(),
        format!("{:.0} s", spawned["age_seconds"].as_f64().unwrap_or_default()),
        if spawned["busy"] == true { "runs" } else { "-" }.to_owned(),
        spawned["waiting"].to_string(),
    ]
}

const TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_what_the_node_says() {
        let spawned = json!({
            "actor": "worker/~1.2.0.3", "parent": null, "shard": 0, "restarts": 2, "age_seconds": 61.4, "busy": true,
            "waiting": 3,
        });
        assert_eq!(row("a", &spawned), ["worker/~1.2.0.3", "a", "0", "-", "2", "61 s", "runs", "3"]);
    }
}
