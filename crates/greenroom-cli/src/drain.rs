//! `greenroom drain`: a node leaves in order.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use crate::call::described;
use crate::door::{Door, NodeAddress};
use crate::status::is_gone;

/// Which node is to leave, and how long to wait for it.
#[derive(Args)]
pub(crate) struct DrainCommand {
    /// The name of the node that is to leave
    #[arg(value_name = "NODE")]
    name: String,
    /// Seconds to wait until it has left; 0 to ask only
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// Say how it went as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks the node to drain, and waits until it has left.
pub(crate) fn run(command: &DrainCommand) -> Result<(), String> {
    let DrainCommand { name, wait, json, node } = command;
    let door = node.door(TIMEOUT)?;
    let status = door.get_json("/-/status")?;
    let asks_itself = status["node"]["name"] == name.as_str();
    let begun = Instant::now();
    let answer = door.post(&["-", "drain", name], "{}")?;
    if answer.status != 202 {
        return Err(described(answer.status, &answer.body));
    }
    let left = wait_until_left(&door, name, asks_itself, begun + Duration::from_secs(*wait));
    let seconds = begun.elapsed().as_secs_f64();
    if *json {
        println!("{}", json!({ "node": name, "left": left, "seconds": seconds }));
    } else if left {
        println!("{name} has left after {seconds:.1} s");
    } else if *wait == 0 {
        println!("{name} drains");
    }
    match left || *wait == 0 {
        true => Ok(()),
        false => Err(format!("{name} has not left within {wait} s; it goes on draining: see `greenroom status`")),
    }
}

fn wait_until_left(door: &Door, name: &str, asks_itself: bool, until: Instant) -> bool {
    while Instant::now() < until {
        match door.get("/-/status") {
            Ok(answer) if answer.status == 200 => {
                let status = serde_json::from_str(&answer.body).unwrap_or_default();
                if !is_there(&status, name) {
                    return true;
                }
            }
            // A door that closes refuses, and one that is busy, too.
            Ok(_) => {}
            // The node that drains was asked, and is gone. Another one may answer again.
            Err(_) if asks_itself => return true,
            Err(_) => {}
        }
        std::thread::sleep(POLL);
    }
    false
}

fn is_there(status: &Value, name: &str) -> bool {
    let members = status["cluster"]["members"].as_array().map_or(&[][..], Vec::as_slice);
    members.iter().any(|member| member["name"] == name && !is_gone(member))
}

const TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);
