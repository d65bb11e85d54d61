//! `greenroom reliable`: the partitions of reliable actors, and the messages that wait for an operator.

mod waiting;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::NodeAddress;

/// What to do with reliable actors.
#[derive(Args)]
pub(crate) struct ReliableCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show who owns which partition, and what waits there
    Partitions {
        /// Show them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Show what the journal holds of an actor, as JSON
    Actor {
        /// The actor, as KIND/KEY
        #[arg(value_name = "KIND/KEY")]
        actor: String,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Show the parked messages, with their errors
    Parked {
        /// Show them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Try a parked message again
    Retry {
        /// Where it lies, as `parked` shows it
        #[arg(value_name = "PARTITION:SLOT")]
        message: String,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Show the messages that wait for their turns, and where they are
    Waiting(waiting::Waiting),
    /// Drop a message that is parked or waits for its turn
    Drop(waiting::Drop),
}

/// Runs the command.
pub(crate) fn run(command: &ReliableCommand) -> Result<(), String> {
    match &command.action {
        Action::Partitions { json, node } => partitions(&get(node, &["-", "reliable"])?["partitions"], *json),
        Action::Actor { actor, node } => {
            let (kind, key) = actor.split_once('/').ok_or("name the actor as KIND/KEY, such as account/ada")?;
            let shown = get(node, &["-", "reliable", "actor", kind, key])?;
            println!("{}", serde_json::to_string_pretty(&shown).map_err(|error| error.to_string())?);
            Ok(())
        }
        Action::Parked { json, node } => parked(&get(node, &["-", "reliable", "parked"])?, *json),
        Action::Retry { message, node } => ask(node, message, "retry", "retried"),
        Action::Waiting(waiting) => waiting.run(),
        Action::Drop(drop) => drop.run(),
    }
}

fn partitions(shown: &Value, json: bool) -> Result<(), String> {
    if json {
        println!("{shown}");
        return Ok(());
    }
    println!("PARTITION\tNODE\tEPOCH\tACTORS\tWAITING\tOUTGOING\tPARKED\tHELD\tANSWERS\tCOMMITS\tTURNS\tLAST COMMIT");
    for partition in shown.as_array().map_or(&[][..], Vec::as_slice) {
        let number = |field: &str| partition[field].as_u64().unwrap_or_default();
        let node = partition["node"].as_str().unwrap_or("(does not answer)");
        let took = partition["commit_ms"].as_f64().unwrap_or_default();
        let columns = ["epoch", "actors", "waiting", "outgoing", "parked", "held", "answers", "commits", "turns"]
            .map(|field| number(field).to_string());
        println!("{}\t{node}\t{}\t{took:.2} ms", number("partition"), columns.join("\t"));
        if let Some(trouble) = partition["trouble"].as_str() {
            println!("  {trouble}");
        }
    }
    println!("{}", kept(shown));
    Ok(())
}

/// How many answers to calls with idempotency keys are kept, and how near the fullest partition is to its bound.
fn kept(shown: &Value) -> String {
    let partitions = shown.as_array().map_or(&[][..], Vec::as_slice);
    let number = |partition: &Value, field: &str| partition[field].as_u64().unwrap_or_default();
    let sum = |field| partitions.iter().map(|partition| number(partition, field)).sum::<u64>();
    let full =
        |partition: &&Value| number(partition, "answers_bytes") * 100 / number(partition, "answers_bytes_max").max(1);
    let answers = format!("{} answers to calls with idempotency keys are kept", sum("answers"));
    match partitions.iter().max_by_key(full).filter(|_| sum("answers") > 0) {
        None => answers,
        Some(fullest) => format!(
            "{answers}, {:.1} MiB; partition {} has {} % of what it may keep",
            sum("answers_bytes") as f64 / f64::from(1 << 20),
            number(fullest, "partition"),
            full(&fullest)
        ),
    }
}

fn parked(shown: &Value, json: bool) -> Result<(), String> {
    let messages = shown["parked"].as_array().map_or(&[][..], Vec::as_slice);
    if json {
        println!("{}", shown["parked"]);
        return Ok(());
    }
    for message in messages {
        let text = |field: &str| message[field].as_str().unwrap_or("outside").to_owned();
        let partition = message["partition"].as_u64().unwrap_or_default();
        println!("{partition}:{}\t{}\tfrom {}\t{}", text("slot"), text("what"), text("from"), text("error"));
    }
    if messages.is_empty() {
        println!("nothing is parked");
    }
    match shown["silent_partitions"].as_array() {
        Some(silent) if !silent.is_empty() => Err(format!("{} partitions do not answer; ask again", silent.len())),
        _ => Ok(()),
    }
}

fn ask(node: &NodeAddress, message: &str, verb: &str, past: &str) -> Result<(), String> {
    let (partition, slot) =
        message.split_once(':').ok_or("name the message as `greenroom reliable parked` does: 17:3-5")?;
    let answer = node.door(TIMEOUT)?.post(&["-", "reliable", partition, verb, slot], "")?;
    if answer.status != 200 {
        return Err(described(answer.status, &answer.body));
    }
    let answer: Value = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
    println!("{past} {}", answer[past].as_str().unwrap_or_default());
    Ok(())
}

fn get(node: &NodeAddress, path: &[&str]) -> Result<Value, String> {
    let answer = node.door(TIMEOUT)?.get_at(path)?;
    if answer.status != 200 {
        return Err(described(answer.status, &answer.body));
    }
    serde_json::from_str(&answer.body).map_err(|error| error.to_string())
}

/// Partitions that do not answer are waited for before the door answers.
const TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_partition_that_is_nearest_to_its_bound_is_named() {
        let one = |partition: u32, answers: u64, bytes: u64| json!({ "partition": partition, "answers": answers, "answers_bytes": bytes, "answers_bytes_max": 4 << 20 });
        let silent = json!({ "partition": 2, "node": null });
        let said = kept(&json!([one(0, 3, 400), one(1, 9000, 1 << 20), silent]));
        assert_eq!(
            said,
            "9003 answers to calls with idempotency keys are kept, 1.0 MiB; partition 1 has 25 % of what it may keep"
        );
        assert_eq!(kept(&json!([silent])), "0 answers to calls with idempotency keys are kept");
    }
}
