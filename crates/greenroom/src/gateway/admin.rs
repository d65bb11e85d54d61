//! What operators ask of a node.

use greenroom_wire::limit::NAME_LEN_MAX;
use hyper::{Method, StatusCode};
use serde_json::json;

use super::Door;
use super::answer::Answer;
use super::clusters;
use super::problem::Problem;
use super::reliable::{self, Reliable};
use super::reminders;
use super::{service, state};
use crate::actor::interface::Travels;
use crate::actor::key::{ActorId, Kind};
use crate::actor::migration::Unmoved;
use crate::cluster::directory::Entry;
use crate::cluster::{ControlMessage, Order};
use crate::geo::ClusterChange;
use crate::locality;

/// What an operator may ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// Let a node hand over what it has, and leave: `POST /-/drain/{node}`.
    Drain {
        /// Its name.
        node: String,
    },
    /// Let this node's optimiser take part in no exchange of actors, or go on: `POST /-/optimiser/pause`, `POST /-/optimiser/resume`.
    PauseOptimiser(bool),
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
    /// Let a parked reminder tick: `POST /-/reminders/{kind}/{key}/{name}/retry`.
    RetryReminder {
        /// The actor's kind.
        kind: String,
        /// The actor's key.
        key: String,
        /// The reminder's name.
        name: String,
    },
    /// Show the clusters: `GET /-/clusters`.
    Clusters,
    /// Change the list of clusters: `POST /-/clusters/add/{name}/{gateways}`, `POST /-/clusters/drain/{name}`, `POST /-/clusters/remove/{name}`.
    /// Remove clusters together that do not answer and never will: `POST /-/clusters/remove-lost/{name}/{name}…`, or
    /// `POST /-/clusters/remove-vouched/{name}/{name}…` if the operator vouches that no node of them runs.
    ChangeClusters(ClusterChange),
    /// Look after reliable actors.
    Reliable(Reliable),
    /// Let an actor end, wherever it is active: `POST /-/actors/{kind}/{key}/deactivate`.
    Deactivate {
        /// The actor's kind.
        kind: String,
        /// Its key.
        key: String,
    },
    /// Let an actor go to a node with its state: `POST /-/migrate/{kind}/{key}/{node}`.
    Migrate {
        /// The actor's kind.
        kind: String,
        /// Its key.
        key: String,
        /// The name of the node.
        node: String,
    },
}

/// What somebody must be allowed to, to ask for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Needs {
    /// To look.
    Look,
    /// To see stored values, or to look after nodes and actors.
    Operate,
    /// To change what the cluster is.
    Change,
}

impl Asked {
    /// What it takes to ask this.
    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::Reminders { .. }
            | Self::Clusters
            | Self::Reliable(Reliable::Partitions | Reliable::Parked | Reliable::Waiting { .. }) => Needs::Look,
            Self::Drain { .. }
            | Self::PauseOptimiser(_)
            | Self::CancelReminder { .. }
            | Self::RetryReminder { .. }
            | Self::Migrate { .. }
            | Self::Deactivate { .. }
            | Self::Reliable(Reliable::Actor { .. } | Reliable::Retry { .. } | Reliable::Drop { .. }) => Needs::Operate,
            Self::ChangeClusters(_) => Needs::Change,
        }
    }
}

/// Does what is asked, with what errors say if `values`. Whether who asks may, the guard has seen to.
///
/// # Errors
/// The problem that the operator is told.
pub(super) async fn answer(door: &Door, asked: &Asked, method: &Method, values: bool) -> Result<Answer, Problem> {
    if let (Asked::Reminders { of: Some((kind, _)) }, false) = (asked, values) {
        door.guard.hidden().check(Some(kind))?;
    }
    match asked {
        Asked::Drain { node } if *method == Method::POST => drain(door, node),
        Asked::Drain { .. } => Err(Problem::wrong_method("POST")),
        Asked::PauseOptimiser(paused) if *method == Method::POST => {
            locality::pause(&door.node, *paused);
            let mode = door.node.config().optimiser.mode;
            Ok(service::json(StatusCode::OK, &json!({ "node": door.node.name(), "paused": paused, "mode": mode })))
        }
        Asked::PauseOptimiser(_) => Err(Problem::wrong_method("POST")),
        Asked::Reminders { of } if *method == Method::GET => {
            let listed = reminders::list(door, of.as_ref()).await?;
            Ok(service::json(StatusCode::OK, &door.guard.shown(listed, values)))
        }
        Asked::Reminders { .. } => Err(Problem::wrong_method("GET")),
        Asked::CancelReminder { kind, key, name } if *method == Method::DELETE => {
            reminders::cancel(door, kind, key, name).await
        }
        Asked::CancelReminder { .. } => Err(Problem::wrong_method("DELETE")),
        Asked::RetryReminder { kind, key, name } if *method == Method::POST => {
            reminders::retry(door, kind, key, name).await
        }
        Asked::RetryReminder { .. } => Err(Problem::wrong_method("POST")),
        Asked::Clusters if *method == Method::GET => clusters::show(door),
        Asked::Clusters => Err(Problem::wrong_method("GET")),
        Asked::ChangeClusters(wish) if *method == Method::POST => clusters::change(door, wish).await,
        Asked::ChangeClusters(_) => Err(Problem::wrong_method("POST")),
        Asked::Reliable(asked) if *method == asked.method() => {
            let told = reliable::answer(door, asked, values).await?;
            Ok(service::json(StatusCode::OK, &door.guard.shown(told, values)))
        }
        Asked::Reliable(asked) => {
            Err(Problem::wrong_method(if asked.method() == Method::GET { "GET" } else { "POST" }))
        }
        Asked::Deactivate { kind, key } if *method == Method::POST => {
            Ok(service::json(StatusCode::ACCEPTED, &state::deactivate(door, kind, key).await?))
        }
        Asked::Deactivate { .. } => Err(Problem::wrong_method("POST")),
        Asked::Migrate { kind, key, node } if *method == Method::POST => migrate(door, kind, key, node),
        Asked::Migrate { .. } => Err(Problem::wrong_method("POST")),
    }
}

fn drain(door: &Door, name: &str) -> Result<Answer, Problem> {
    let node = &door.node;
    let found = node.view().view.by_name(name);
    match found {
        Some(found) if found == node.me() => node.ask_to_drain(),
        Some(found) => node.order(Order::Say(found, ControlMessage::Drain)),
        None => return Err(Problem::no_such_node(name, &node.view().view)),
    }
    Ok(service::json(StatusCode::ACCEPTED, &json!({ "node": name, "draining": true })))
}

/// Passes the wish on to whoever has the actor; nothing happens if nobody has.
fn migrate(door: &Door, kind: &str, key: &str, name: &str) -> Result<Answer, Problem> {
    let node = &door.node;
    let view = node.view();
    let known = (kind.len() <= NAME_LEN_MAX).then(|| Kind::known(kind)).flatten();
    let Some(hosts) = known.and_then(|known| view.hosts(known)) else {
        return Err(node.unknown_kind(&kind.chars().take(NAME_LEN_MAX).collect::<String>()).into());
    };
    let Some(known) = known else { return Err(node.unknown_kind(kind).into()) };
    node.kinds().check_external(kind)?;
    let id = ActorId::new(known, key)?;
    let to = view.view.by_name(name).ok_or_else(|| Problem::no_such_node(name, &view.view))?;
    if !hosts.nodes.contains(&to) {
        let unmoved = Unmoved::NotHosted { node: name.to_owned(), kind: kind.to_owned() };
        return Err(Problem::bad_request(&unmoved.to_string()));
    }
    if node.kinds().contains(kind) && node.kinds().travels(known) == Travels::Not {
        return Err(Problem::bad_request(&Unmoved::NotCarried { kind: kind.to_owned() }.to_string()));
    }
    node.order(Order::Migrate(Entry::new(id), to));
    Ok(service::json(StatusCode::ACCEPTED, &json!({ "actor": format!("{kind}/{key}"), "to": name })))
}
