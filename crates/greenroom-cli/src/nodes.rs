//! What is asked of all nodes of a cluster, each at its own door.

use serde_json::Value;

use crate::door::Door;
use crate::status::{is_gone, members, text};

/// What the nodes answer that have a door; and who was not asked, and why.
pub(crate) fn ask(
    door: &Door,
    ask: impl Fn(&Door) -> Result<Value, String>,
) -> Result<(Vec<Value>, Vec<String>), String> {
    let status = door.get_json("/-/status")?;
    let (mut said, mut silent) = (vec![ask(door)?], Vec::new());
    for member in members(&status).iter().filter(|member| !is_gone(member)) {
        if member["id"] == status["node"]["id"] {
            continue;
        }
        match member["http"].as_str().map(|http| door.at(http).and_then(|other| ask(&other))) {
            Some(Ok(answer)) => said.push(answer),
            Some(Err(error)) => silent.push(format!("{}: {error}", text(&member["name"]))),
            None => silent.push(format!("{}: it has no HTTP door", text(&member["name"]))),
        }
    }
    Ok((said, silent))
}
