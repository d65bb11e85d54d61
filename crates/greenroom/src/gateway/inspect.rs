//! What a node knows of one actor.

use greenroom_wire::limit::NAME_LEN_MAX;
use serde_json::{Value, json};

use super::Door;
use super::problem::Problem;
use crate::actor::key::{ActorId, Kind};
use crate::node::inspect::{self, Inspected};

/// What this door's node knows of the actor `key` of `kind`; where it is instead, if it is not here.
pub(super) async fn inspect(door: &Door, kind: &str, key: &str) -> Result<Value, Problem> {
    let node = &door.node;
    let known = (kind.len() <= NAME_LEN_MAX).then(|| Kind::known(kind)).flatten();
    let Some(known) = known else {
        return Err(node.unknown_kind(&kind.chars().take(NAME_LEN_MAX).collect::<String>()).into());
    };
    let id = ActorId::new(known, key)?;
    let actor = id.to_string();
    Ok(match inspect::inspect(node, id).await {
        Inspected::Here(found) => serde_json::to_value(*found).unwrap_or_default(),
        Inspected::Stuck { shard } => json!({ "actor": actor, "node": node.name(), "stuck_shard": shard }),
        Inspected::There(other) => json!({ "actor": actor, "state": "elsewhere", "ask": other }),
        Inspected::NotActive => json!({ "actor": actor, "state": "not active" }),
        Inspected::Unknown => json!({ "actor": actor, "state": "unknown" }),
    })
}
