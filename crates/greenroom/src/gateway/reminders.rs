//! Reminders as operators see them.

use std::time::UNIX_EPOCH;

use hyper::StatusCode;
use serde_json::{Value, json};

use super::Door;
use super::answer::Answer;
use super::problem::Problem;
use super::service;
use crate::actor::key::check;
use crate::time::{self, ReminderError, ReminderInfo};

/// All reminders, or one actor's: at most so many as an operator reads.
pub(super) async fn list(door: &Door, of: Option<&(String, String)>) -> Result<Value, Problem> {
    let node = &door.node;
    of.map_or(Ok(()), |(_, key)| check(key))?;
    let prefix = match of {
        Some((kind, key)) => node.calendar().keys().records_of(kind, key),
        None => node.calendar().keys().records(),
    };
    let found =
        time::list(node, &prefix, node.config().store_timeout, LISTED_MAX).await.map_err(|error| problem(&error))?;
    let wanted = found.into_iter().filter(|(id, _)| of.is_none_or(|(kind, key)| id.is_of(kind, key)));
    let shown: Vec<Value> = wanted.map(|(_, info)| show(&info)).collect();
    Ok(json!({ "reminders": shown, "listed_at_most": LISTED_MAX }))
}

/// Cancels one.
pub(super) async fn cancel(door: &Door, kind: &str, key: &str, name: &str) -> Result<Answer, Problem> {
    check(key)?;
    match time::cancel(&door.node, kind, key, name).await {
        Ok(existed) => Ok(service::json(StatusCode::OK, &json!({ "existed": existed }))),
        Err(error) => Err(problem(&error)),
    }
}

/// Lets one tick that is parked.
pub(super) async fn retry(door: &Door, kind: &str, key: &str, name: &str) -> Result<Answer, Problem> {
    check(key)?;
    match time::retry(&door.node, kind, key, name).await {
        Ok(existed) => Ok(service::json(StatusCode::OK, &json!({ "existed": existed }))),
        Err(error) => Err(problem(&error)),
    }
}

fn show(info: &ReminderInfo) -> Value {
    json!({
        "actor": info.actor,
        "name": info.name,
        "method": info.method,
        "schedule": info.schedule.to_string(),
        "due_unix_seconds": info.due.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        "deaths": info.deaths,
        "parked": info.is_parked,
    })
}

fn problem(error: &ReminderError) -> Problem {
    match error {
        ReminderError::Invalid { .. } => Problem::bad_request(&error.to_string()),
        ReminderError::Unavailable { .. } | ReminderError::Unknown { .. } => Problem::busy(&error.to_string()),
    }
}

/// Reminders in one answer.
const LISTED_MAX: usize = 1000;
