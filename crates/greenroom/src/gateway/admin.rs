//! What operators ask of a node.

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde_json::json;

use super::Door;
use super::answer::Answer;
use super::problem::Problem;
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
}

/// Does what is asked. Whether who asks may, the guard has seen to.
///
/// # Errors
/// The problem that the operator is told.
pub(super) fn answer(door: &Door, asked: &Asked, request: &Request<Incoming>) -> Result<Answer, Problem> {
    match asked {
        Asked::Drain { node } => {
            if request.method() != Method::POST {
                return Err(Problem::wrong_method("POST"));
            }
            drain(door, node)
        }
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
