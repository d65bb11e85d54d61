//! What operators see of partitions, and ask of them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use greenroom_protocols::delivery::{Deferred, Parked, Presence, Slot};
use greenroom_reliable::ledger::StoredField;
use greenroom_wire::codec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::errands::subject;
use super::machine::STATE;
use super::name::{Body, Letter, Named, partition_of};
use super::partition::PartitionsRef;
use crate::actor::error::CallError;
use crate::here::node::Node;
use crate::shard::inspect::PastTurn;

/// How a partition is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) partition: u32,
    /// The node that owns it.
    pub(crate) node: String,
    /// The fence's epoch; 0 while the partition is being recovered.
    pub(crate) epoch: u64,
    /// Actors in memory.
    pub(crate) actors: u64,
    /// Messages in memory that are not committed.
    pub(crate) waiting: u64,
    /// Messages that are committed and not acknowledged by their receivers.
    pub(crate) outgoing: u64,
    /// Messages that are parked.
    #[serde(default)]
    pub(crate) parked: u64,
    /// Actors that wait, as the journal refuses even to park what they fail at.
    #[serde(default)]
    pub(crate) held: u64,
    /// Answers to calls with idempotency keys that are kept.
    #[serde(default)]
    pub(crate) answers: u64,
    /// How many bytes they are, about.
    #[serde(default)]
    pub(crate) answers_bytes: u64,
    /// How many bytes they may be before calls with new keys are refused; 0 if an earlier program does not say.
    #[serde(default)]
    pub(crate) answers_bytes_max: u64,
    /// Commits since this owner took the partition.
    pub(crate) commits: u64,
    /// Turns in them.
    pub(crate) turns: u64,
    /// Milliseconds that the last commit took.
    pub(crate) commit_ms: f64,
    /// What keeps it from being taken, if no waiting ends that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

/// What an operator wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Wish {
    /// Show the parked messages, as JSON.
    Parked,
    /// Let a parked message be tried again.
    Retry(String),
    /// Drop a parked message, or one that waits for its turn.
    Drop(String),
    /// Show the messages that wait for their turns: those of an actor, or of all; as JSON.
    Waiting { actor: Option<Named> },
    /// Show what the journal holds of an actor, as JSON.
    Actor { kind: String, key: String },
}

/// The name of a parked message, for people.
pub(super) fn slot_name(slot: Slot) -> String {
    format!("{}-{}", slot.epoch.0, slot.serial)
}

/// Parked messages, as JSON.
pub(super) fn shown(parked: &[Parked<Named, Body>]) -> String {
    let shown = parked.iter().map(|parked| {
        let (from, to) = (parked.envelope.from.as_ref().map(ToString::to_string), parked.envelope.to.to_string());
        json!({ "slot": slot_name(parked.slot), "from": from, "to": to, "method": method(&parked.envelope), "what": subject(&parked.envelope), "error": parked.error })
    });
    Value::Array(shown.collect()).to_string()
}

/// An actor, as JSON.
pub(super) fn actor(
    actor: &Named,
    memory: bool,
    presence: Option<Presence>,
    queue: &[Deferred<Named, Body>],
    fields: &[StoredField],
    history: &[PastTurn],
) -> String {
    let mut fields: serde_json::Map<String, Value> =
        fields.iter().map(|(name, entries)| (name.clone(), field(entries))).collect();
    let state = fields.remove(STATE);
    let deferred: Vec<&str> = queue.iter().map(|deferred| method(&deferred.envelope)).collect();
    json!({
        "actor": actor.to_string(),
        "in_memory": memory,
        "halted": presence.is_some_and(|presence| presence.halted),
        "created_by": presence.map(|presence| format!("partition {}", presence.birth.by.0)),
        "state": state,
        "deferred": deferred,
        "fields": fields,
        "history": history,
    })
    .to_string()
}

/// A field's value, or its entries.
fn field(entries: &[(String, Bytes)]) -> Value {
    let value =
        |bytes: &Bytes| codec::decode(bytes).unwrap_or_else(|_| Value::String(format!("{} bytes", bytes.len())));
    match entries {
        [(name, only)] if name.is_empty() => value(only),
        entries => Value::Array(entries.iter().map(|(_, bytes)| value(bytes)).collect()),
    }
}

pub(super) fn method(letter: &Letter) -> &str {
    match &letter.body {
        Body::Call { method, .. } => method,
        Body::Reply { .. } => "a reply",
        Body::Created => "its creation",
        Body::Output(_) => "an output",
    }
}

/// How all partitions are, for operators: `None` for one that does not answer.
pub(crate) async fn reports(node: &Node) -> Vec<(u32, Option<Report>)> {
    let partitions = node.here().config().reliable.partitions;
    let asked = (0..partitions).map(|partition| async move {
        let report = PartitionsRef::of(node, partition).look().by(PATIENCE).await;
        (partition, report.ok().flatten())
    });
    join_all(asked).await
}

/// The messages that wait for their turns in all partitions, as JSON: a list, its length before it was cut, and the partitions that
/// do not answer.
pub(crate) async fn waiting(node: &Node, actor: Option<(&str, &str)>) -> Value {
    let actor = actor.map(|(kind, key)| Named { kind: kind.to_owned().into(), key: key.into() });
    let partitions = node.here().config().reliable.partitions;
    let asked = (0..partitions).map(|partition| {
        let wish = Wish::Waiting { actor: actor.clone() };
        async move { (partition, ask(node, partition, wish).await) }
    });
    let (mut silent, mut count) = (Vec::new(), 0);
    // The partition in which a message waits knows more of it than the one that has sent it.
    let mut shown: BTreeMap<(u64, String), Value> = BTreeMap::new();
    let mut nameless = Vec::new();
    for (partition, answer) in join_all(asked).await {
        let answer: Value = match answer.map(|answer| serde_json::from_str(&answer)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => {
                silent.push(partition);
                continue;
            }
        };
        let messages = answer["waiting"].as_array().cloned().unwrap_or_default();
        count += answer["count"].as_u64().unwrap_or_default().saturating_sub(messages.len() as u64);
        for message in messages {
            let Some(place) = message["place"].as_str() else {
                nameless.push(message);
                continue;
            };
            let name = (message["partition"].as_u64().unwrap_or_default(), place.to_owned());
            if message["state"] == "sent" {
                shown.entry(name).or_insert(message);
            } else {
                shown.insert(name, message);
            }
        }
    }
    let waiting: Vec<Value> = shown.into_values().chain(nameless).collect();
    json!({ "waiting": waiting, "more": count, "silent_partitions": silent })
}

/// Has a wish granted by a partition.
pub(crate) async fn ask(node: &Node, partition: u32, wish: Wish) -> Result<String, String> {
    match PartitionsRef::of(node, partition).wish(wish).by(PATIENCE).await {
        Ok(answer) => Ok(answer),
        Err(CallError::Actor(why)) => Err(why),
        Err(error) => Err(error.to_string()),
    }
}

/// The partition that an actor is in.
pub(crate) fn partition(node: &Node, kind: &str, key: &str) -> u32 {
    partition_of(kind, key, node.here().config().reliable.partitions).0
}

/// Time for a partition to answer an operator.
const PATIENCE: Duration = Duration::from_secs(3);
