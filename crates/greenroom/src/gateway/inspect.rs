//! What a node knows of one actor.

use greenroom_wire::limit::NAME_LEN_MAX;
use serde_json::{Value, json};

use super::Door;
use super::problem::Problem;
use crate::actor::key::{ActorId, Kind};
use crate::locality;
use crate::node::inspect::{self, Inspected};

/// What this door's node knows of the actor `key` of `kind`; where it is instead, if it is not here.
pub(super) async fn inspect(door: &Door, kind: &str, key: &str) -> Result<Value, Problem> {
    let (node, id) = (&door.node, named(door, kind, key)?);
    let actor = id.to_string();
    Ok(match inspect::inspect(node, id).await {
        Inspected::Here(found) => serde_json::to_value(*found).unwrap_or_default(),
        Inspected::Stuck { shard } => json!({ "actor": actor, "node": node.name(), "stuck_shard": shard }),
        Inspected::There(other) => json!({ "actor": actor, "state": "elsewhere", "ask": other }),
        Inspected::InCluster(cluster) => json!({ "actor": actor, "state": "in another cluster", "cluster": cluster }),
        Inspected::NotActive => json!({ "actor": actor, "state": "not active" }),
        Inspected::Unknown => json!({ "actor": actor, "state": "unknown" }),
    })
}

/// What this door's node knows of whom the actor `key` of `kind` talks with; `null` if it is not hot here.
pub(super) async fn explain(door: &Door, kind: &str, key: &str) -> Result<Value, Problem> {
    let found = locality::explain(&door.node, named(door, kind, key)?).await;
    Ok(serde_json::to_value(found).unwrap_or_default())
}

fn named(door: &Door, kind: &str, key: &str) -> Result<ActorId, Problem> {
    let known = (kind.len() <= NAME_LEN_MAX).then(|| Kind::known(kind)).flatten();
    let Some(known) = known else {
        return Err(door.node.unknown_kind(&kind.chars().take(NAME_LEN_MAX).collect::<String>()).into());
    };
    door.node.kinds().check_external(kind)?;
    Ok(ActorId::new(known, key)?)
}
