//! What happened at a node, as JSON; and what people change through its door, as an event.

use greenroom_security::principal::Principal;
use hyper::Request;
use serde_json::{Value, json};

use super::Door;
use super::admin::Asked as Change;
use super::path::decode;
use super::problem::Problem;
use super::reliable::Reliable;
use super::service::CHANGE;
use crate::geo::ClusterChange;
use crate::observe::events::{EVENTS_LEN_MAX, Happened, Wanted};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

/// Which events are asked for, and how many.
pub(super) struct Asked {
    wanted: Wanted,
    limit: usize,
}

impl Asked {
    /// Reads `?since=1764000000000&until=1764000060000&level=warn&subject=node%201&limit=100`, of which each may be left out.
    ///
    /// # Errors
    /// Something else is asked for.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Problem> {
        let mut asked = Self { wanted: Wanted::default(), limit: LIMIT_DEFAULT };
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(unclear)?;
            let value = decode(value).map_err(|why| Problem::bad_request(&why))?;
            match name {
                "since" => asked.wanted.since = Some(value.parse().map_err(|_| unclear())?),
                "until" => asked.wanted.until = Some(value.parse().map_err(|_| unclear())?),
                "level" => asked.wanted.level = Some(Level::find(&value).ok_or_else(unclear)?),
                "subject" => asked.wanted.subject = Some(value),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| *limit <= EVENTS_LEN_MAX);
                    asked.limit = limit.ok_or_else(unclear)?;
                }
                _ => return Err(unclear()),
            }
        }
        Ok(asked)
    }
}

fn unclear() -> Problem {
    Problem::bad_request(
        "write which events are wanted as `?since=1764000000000&until=1764000060000` (Unix milliseconds), `&level=warn` (hint, good, warn or \
         bad: that and worse), `&subject=NAME` (of a node, cluster, kind, method or actor) and `&limit=100` (at most 4096)",
    )
}

/// The events that are kept of those wanted, the last ones first.
pub(super) fn list(door: &Door, asked: &Asked) -> Value {
    let node = door.node.name();
    let (events, left_out) = door.node.events().last(&asked.wanted, asked.limit);
    let events: Vec<Value> = events
        .iter()
        .map(|event| {
            let mut told = json!(event);
            told["node"] = node.into();
            told
        })
        .collect();
    json!({ "node": node, "events": events, "left_out": left_out })
}

/// Remembers what somebody has changed by this request, who it was, and what they said that it is for.
pub(super) fn changed<B>(door: &Door, change: &Change, request: &Request<B>) {
    let Some((what, subject)) = told(change) else { return };
    let who = request.extensions().get::<Principal>().map_or(ANYBODY, Principal::name);
    let purpose = request.headers().get(CHANGE).and_then(|purpose| purpose.to_str().ok()).map(str::to_owned);
    door.node.happened_by(who.to_owned(), Happened::Changed { what, subject, purpose });
}

/// What a change is, in words, and what it is about; nothing for what only looks.
fn told(change: &Change) -> Option<(String, Subject)> {
    Some(match change {
        Change::Drain { node } => (format!("node {node} is asked to drain"), Subject::node(node)),
        Change::PauseOptimiser(true) => ("the optimiser of this node is paused".to_owned(), Subject::default()),
        Change::PauseOptimiser(false) => ("the optimiser of this node goes on".to_owned(), Subject::default()),
        Change::CancelReminder { kind, key, name } => {
            (format!("reminder {name} of {kind}/{key} is cancelled"), Subject::actor(format!("{kind}/{key}")))
        }
        Change::Migrate { kind, key, node } => {
            (format!("{kind}/{key} is asked to go to node {node}"), Subject::actor(format!("{kind}/{key}")))
        }
        Change::ChangeClusters(change) => {
            let (what, cluster) = match change {
                ClusterChange::Add(name, _) => ("is to join", name),
                ClusterChange::Admit(name) => ("takes part", name),
                ClusterChange::Drain(name) => ("is to give up what it has", name),
                ClusterChange::Remove(name) => ("is to leave the list", name),
                ClusterChange::RemoveLost(name) => ("is taken out as lost", name),
            };
            (format!("cluster {cluster} {what}"), Subject::cluster(cluster))
        }
        Change::Reliable(Reliable::Retry { partition, slot }) => {
            (format!("message {slot} of partition {partition}, which was parked, is tried again"), Subject::default())
        }
        Change::Reliable(Reliable::Drop { partition, slot }) => {
            (format!("message {slot} of partition {partition}, which was parked, is dropped"), Subject::default())
        }
        Change::Reliable(_) | Change::Reminders { .. } | Change::Clusters => return None,
    })
}

/// Who asks at a door that asks nobody who they are: such a door lets this machine alone change anything.
const ANYBODY: &str = "anybody on this machine";
const LIMIT_DEFAULT: usize = 100;
