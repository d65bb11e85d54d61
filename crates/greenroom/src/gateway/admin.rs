//! What operators ask of a node.

use hyper::{Method, StatusCode};
use serde_json::json;

use super::Door;
use super::answer::Answer;
use super::problem::Problem;
use super::reminders;
use super::service;
use crate::cluster::Order;
use crate::node::drain;

/// What an operator may ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// Let a node hand over what it has, and leave: `POST /-/drain/{node}`.
    Drain {
        /// Its name.
        node: String,
    },
    /// Show reminders: `GET /-/reminders`, or of one actor `GET /-/reminders/{kind}/{key}`.
    Reminders {
        /// The actor's kind and key.
        of: Option<(String, String)>,
    },
    /// Cancel a reminder: `DELETE /-/reminders/{kind}/{key}/{name}`.
    CancelReminder {
        /// The actor's kind.
        kind: String,
        /// The actor's key.
        key: String,
        /// The reminder's name.
        name: String,
    },
}

/// Does what is asked. Whether who asks may, the guard has seen to.
///
/// # Errors
/// The problem that the operator is told.
pub(super) async fn answer(door: &Door, asked: &Asked, method: &Method) -> Result<Answer, Problem> {
    match asked {
        Asked::Drain { node } if *method == Method::POST => drain(door, node),
        Asked::Drain { .. } => Err(Problem::wrong_method("POST")),
        Asked::Reminders { of } if *method == Method::GET => reminders::list(door, of.as_ref()).await,
        Asked::Reminders { .. } => Err(Problem::wrong_method("GET")),
        Asked::CancelReminder { kind, key, name } if *method == Method::DELETE => {
            reminders::cancel(door, kind, key, name).await
        }
        Asked::CancelReminder { .. } => Err(Problem::wrong_method("DELETE")),
    }
}

fn drain(door: &Door, name: &str) -> Result<Answer, Problem> {
    let node = &door.node;
    let found = node.view().view.by_name(name);
    match found {
        Some(found) if found == node.me() => drain::ask(node),
        Some(found) => node.order(Order::DrainOther(found)),
        None => return Err(Problem::no_such_node(name, &node.view().view)),
    }
    Ok(service::json(StatusCode::ACCEPTED, &json!({ "node": name, "draining": true })))
}
