//! What happened at the nodes of a cluster, as JSON; and what people change through its door, as an event.

use greenroom_security::principal::Principal;
use hyper::Request;
use serde_json::{Value, json};

use super::admin::Asked;
use super::problem::Problem;
use super::reliable::Reliable;
use super::service::CHANGE;
use super::{Door, asked};
use crate::geo::ClusterChange;
use crate::observe::events::{Event, EventsWord, Happened, TOLD_LEN_MAX, Wanted};
use crate::observe::level::Level;
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;
use crate::observe::subject::Subject;

/// Reads `?since=1764000000000&until=1764000060000&level=warn&subject=node%201&event=moved&limit=100`, of which each may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(Wanted, usize, Whom), Problem> {
    let (mut wanted, mut limit) = (Wanted::default(), LIMIT_DEFAULT);
    let whom = asked::read(query, UNCLEAR, |name, value| {
        match name {
            "since" => wanted.since = Some(value.parse().ok()?),
            "until" => wanted.until = Some(value.parse().ok()?),
            "level" => wanted.level = Some(Level::find(&value)?),
            "subject" => wanted.subject = Some(value),
            "event" => wanted.event = Some(value),
            "limit" => limit = value.parse().ok().filter(|limit| *limit <= TOLD_LEN_MAX)?,
            _ => return None,
        }
        Some(())
    })?;
    Ok((wanted, limit, whom))
}

/// The events that the nodes keep of those wanted, the last ones first; with what errors say if `values`.
pub(super) async fn list(door: &Door, (wanted, limit, whom): (Wanted, usize, Whom), values: bool) -> Value {
    let node = &door.node;
    let question = Question::Events { wanted, limit: limit as u32 };
    let mut heard = look::ask::<EventsWord>(node, &question, &whom).await;
    if !values {
        heard.said.values_mut().flat_map(|word| &mut word.events).for_each(Event::keep_error_to_itself);
    }
    let view = node.view();
    let named = heard.said.iter().filter_map(|(id, word)| Some((&*view.member(*id)?.name, word)));
    let (events, left_out) = EventsWord::together(named, limit);
    let events = events.into_iter().map(|(node, event)| {
        let mut told = json!(event);
        told["node"] = node.into();
        told
    });
    let mut told = heard.with_silent(json!({ "node": node.name(), "events": events.collect::<Vec<_>>() }));
    told["nodes_left_out"] = told["left_out"].take();
    told["left_out"] = left_out.into();
    told
}

/// Remembers what somebody has changed by this request, who it was, and what they said that it is for.
pub(super) fn changed<B>(door: &Door, change: &Asked, request: &Request<B>) {
    if let Some(told) = told(change) {
        noted(door, told, request);
    }
}

/// The same of a change in words, and of what it is about.
pub(super) fn noted<B>(door: &Door, (what, subject): (String, Subject), request: &Request<B>) {
    let who = request.extensions().get::<Principal>().map_or(ANYBODY, Principal::name);
    let purpose = request.headers().get(CHANGE).and_then(|purpose| purpose.to_str().ok()).map(str::to_owned);
    door.node.happened_by(who.to_owned(), Happened::Changed { what, subject, purpose });
}

/// What a change is, in words, and what it is about; nothing for what only looks.
fn told(change: &Asked) -> Option<(String, Subject)> {
    Some(match change {
        Asked::Drain { node } => (format!("node {node} is asked to drain"), Subject::node(node)),
        Asked::PauseOptimiser(true) => ("the optimiser of this node is paused".to_owned(), Subject::default()),
        Asked::PauseOptimiser(false) => ("the optimiser of this node goes on".to_owned(), Subject::default()),
        Asked::CancelReminder { kind, key, name } => {
            (format!("reminder {name} of {kind}/{key} is cancelled"), Subject::actor(format!("{kind}/{key}")))
        }
        Asked::RetryReminder { kind, key, name } => {
            (format!("reminder {name} of {kind}/{key} ticks again"), Subject::actor(format!("{kind}/{key}")))
        }
        Asked::Deactivate { kind, key } => {
            (format!("{kind}/{key} is asked to end"), Subject::actor(format!("{kind}/{key}")))
        }
        Asked::Migrate { kind, key, node } => {
            (format!("{kind}/{key} is asked to go to node {node}"), Subject::actor(format!("{kind}/{key}")))
        }
        Asked::ChangeClusters(change) => {
            let (what, cluster) = match change {
                ClusterChange::Add(name, _) => ("is to join", name.clone()),
                ClusterChange::Admit(name) => ("takes part", name.clone()),
                ClusterChange::Drain(name) => ("is to give up what it has", name.clone()),
                ClusterChange::Remove(name) => ("is to leave the list", name.clone()),
                ClusterChange::RemoveLost { clusters, vouch: false } => ("is taken out as lost", clusters.join(", ")),
                ClusterChange::RemoveLost { clusters, vouch: true } => {
                    ("is taken out at once: it is vouched that none of its nodes runs", clusters.join(", "))
                }
                ClusterChange::DropLost => ("leaves the list", "that is lost".to_owned()),
                ClusterChange::Renumber => ("gets a higher number", "list".to_owned()),
            };
            let subject = Subject::cluster(&cluster);
            (format!("cluster {cluster} {what}"), subject)
        }
        Asked::Reliable(Reliable::Retry { partition, slot }) => {
            (format!("message {slot} of partition {partition}, which was parked, is tried again"), Subject::default())
        }
        Asked::Reliable(Reliable::Drop { partition, slot }) => {
            (format!("message {slot} of partition {partition} is dropped"), Subject::default())
        }
        Asked::Reliable(_) | Asked::Reminders { .. } | Asked::Clusters => return None,
    })
}

/// Who asks at a door that asks nobody who they are: such a door lets this machine alone change anything.
const ANYBODY: &str = "anybody on this machine";
const LIMIT_DEFAULT: usize = 100;
const UNCLEAR: &str = "write which events are wanted as `?since=1764000000000&until=1764000060000` (Unix milliseconds), `&level=warn` (hint, \
    good, warn or bad: that and worse), `&subject=NAME` (of a node, cluster, kind, method or actor), `&event=moved` (those called so) and `&limit=100` (at most 1000), with \
    `&nodes=a,b` if not those of all nodes";
