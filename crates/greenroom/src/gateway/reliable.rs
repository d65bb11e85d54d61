//! Reliable actors as operators see them.

use hyper::Method;
use serde_json::{Value, json};

use super::Door;
use super::path::decode;
use super::problem::Problem;
use crate::actor::key::check;
use crate::here::port::Port;
use crate::node::Node;
use crate::reliable::admin::{self, Wish};

/// What an operator may ask of reliable actors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reliable {
    /// How the partitions are: `GET /-/reliable`.
    Partitions,
    /// What is parked: `GET /-/reliable/parked`.
    Parked,
    /// The messages that wait for their turns: `GET /-/reliable/waiting`, and of one actor `GET /-/reliable/waiting/{kind}/{key}`.
    Waiting { actor: Option<(String, String)> },
    /// What the journal holds of an actor: `GET /-/reliable/actor/{kind}/{key}`.
    Actor { kind: String, key: String },
    /// Tries a parked message again: `POST /-/reliable/{partition}/retry/{slot}`.
    Retry { partition: u32, slot: String },
    /// Drops a parked message or one that waits for its turn: `POST /-/reliable/{partition}/drop/{slot}`.
    Drop { partition: u32, slot: String },
}

impl Reliable {
    /// What the rest of a path names, if anything.
    ///
    /// # Errors
    /// What is wrong with its encoding.
    pub(super) fn read(rest: &[&str]) -> Result<Option<Self>, String> {
        Ok(match *rest {
            [] => Some(Self::Partitions),
            ["parked"] => Some(Self::Parked),
            ["waiting"] => Some(Self::Waiting { actor: None }),
            ["waiting", kind, key] => Some(Self::Waiting { actor: Some((decode(kind)?, decode(key)?)) }),
            ["actor", kind, key] => Some(Self::Actor { kind: decode(kind)?, key: decode(key)? }),
            [partition, "retry", slot] => {
                let slot = decode(slot)?;
                partition.parse().ok().map(|partition| Self::Retry { partition, slot })
            }
            [partition, "drop", slot] => {
                let slot = decode(slot)?;
                partition.parse().ok().map(|partition| Self::Drop { partition, slot })
            }
            _ => None,
        })
    }

    /// How it is asked.
    pub(super) fn method(&self) -> Method {
        match self {
            Self::Partitions | Self::Parked | Self::Waiting { .. } | Self::Actor { .. } => Method::GET,
            Self::Retry { .. } | Self::Drop { .. } => Method::POST,
        }
    }
}

/// Does what is asked; what parked messages hold and failed with is shown if `values`.
pub(super) async fn answer(door: &Door, asked: &Reliable, values: bool) -> Result<Value, Problem> {
    if door.node.journal().is_none() {
        return Err(Problem::bad_request("this node has no journal of reliable actors; ask one that hosts them"));
    }
    let node = Node::at(std::sync::Arc::new(Port { node: door.node.clone() }));
    let shown = match asked {
        Reliable::Partitions => partitions(&node).await,
        Reliable::Parked => parked(&node, values).await,
        Reliable::Waiting { actor } => {
            let actor = actor.as_ref().map(|(kind, key)| (kind.as_str(), key.as_str()));
            actor.map_or(Ok(()), |(_, key)| check(key))?;
            admin::waiting(&node, actor).await
        }
        Reliable::Actor { kind, key } => {
            check(key)?;
            let wish = Wish::Actor { kind: kind.clone(), key: key.clone() };
            let partition = admin::partition(&node, kind, key);
            let mut shown = json_of(&granted(&node, partition, wish).await?);
            shown["partition"] = partition.into();
            shown
        }
        Reliable::Retry { partition, slot } => {
            json!({ "retried": granted(&node, *partition, Wish::Retry(slot.clone())).await? })
        }
        Reliable::Drop { partition, slot } => {
            json!({ "dropped": granted(&node, *partition, Wish::Drop(slot.clone())).await? })
        }
    };
    Ok(shown)
}

async fn partitions(node: &Node) -> Value {
    let reports = admin::reports(node).await;
    let shown = reports.into_iter().map(|(partition, report)| match report {
        Some(report) => json!(report),
        None => json!({ "partition": partition, "node": null }),
    });
    json!({ "partitions": shown.collect::<Vec<_>>() })
}

async fn parked(node: &Node, values: bool) -> Value {
    let (mut shown, mut silent) = (Vec::new(), Vec::new());
    for partition in 0..node.here().config().reliable.partitions {
        match admin::ask(node, partition, Wish::Parked).await {
            Ok(parked) => {
                for mut message in json_of(&parked).as_array().cloned().unwrap_or_default() {
                    message["partition"] = partition.into();
                    if !values {
                        message["what"] = Value::Null;
                        message["error"] = Value::Null;
                    }
                    shown.push(message);
                }
            }
            Err(_) => silent.push(partition),
        }
    }
    json!({ "parked": shown, "silent_partitions": silent })
}

async fn granted(node: &Node, partition: u32, wish: Wish) -> Result<String, Problem> {
    let partitions = node.here().config().reliable.partitions;
    if partition >= partitions {
        let why = format!(
            "there is no partition {partition}: there are {partitions}, and `greenroom reliable parked` names each message's"
        );
        return Err(Problem::bad_request(&why));
    }
    admin::ask(node, partition, wish).await.map_err(|why| Problem::bad_request(&why))
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
