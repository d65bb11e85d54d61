//! The multi-cluster as operators see and change it.

use hyper::StatusCode;
use serde_json::json;

use super::Door;
use super::answer::Answer;
use super::problem::Problem;
use super::service;
use crate::geo::ClusterChange;

/// The clusters, as this node sees them.
///
/// # Errors
/// The cluster is alone.
pub(super) fn show(door: &Door) -> Result<Answer, Problem> {
    let node = &door.node;
    let geo = node.geo().ok_or_else(alone)?;
    Ok(service::json(StatusCode::OK, &json!(geo.status(node))))
}

/// Changes the list of clusters.
///
/// # Errors
/// Why it was not changed, and what helps.
pub(super) async fn change(door: &Door, wish: &ClusterChange) -> Result<Answer, Problem> {
    let node = &door.node;
    let geo = node.geo().ok_or_else(alone)?;
    geo.change(node, wish).await.map_err(|unchanged| Problem::bad_request(&unchanged.to_string()))?;
    Ok(service::json(StatusCode::ACCEPTED, &json!(geo.status(node))))
}

fn alone() -> Problem {
    Problem::bad_request("this node's cluster is alone: no `geo.clusters` is configured")
}
