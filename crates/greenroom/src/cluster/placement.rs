//! Placement: which node gets a new activation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::node::NodeId;

use super::view::KindHosts;
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::here::built_in::{HOME, WORKERS};

/// A placement of one's own, registered by name with [`Builder::placement`](crate::Builder::placement).
///
/// It is asked on the node whose part of the directory the actor is in: register it on every node.
pub trait Placement: Send + Sync + 'static {
    /// The name of one of the `candidates`, all of which host the kind; `None` refuses the activation.
    fn choose(&self, actor: &ActorId, candidates: &[Candidate]) -> Option<String>;
}

/// A node that could host an activation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The node's name.
    pub name: String,
    /// The node's roles.
    pub roles: Vec<String>,
    /// Activations on it, as far as is known here.
    pub activations: u64,
    /// Whether the first call came from it.
    pub is_caller: bool,
}

pub(crate) type Placements = BTreeMap<String, Arc<dyn Placement>>;

/// The node for a new activation of `actor`, first called from `caller`, for callers of version `wanted` of its interface. Where the kind
/// does not care it is the one that the actor `went_to` not long ago.
pub(crate) fn choose(
    node: &Here,
    (actor, hash): (&ActorId, u64),
    hosts: &KindHosts,
    (caller, wanted): (NodeId, u16),
    went_to: Option<NodeId>,
) -> Result<NodeId, Refusal> {
    let role = hosts.placement.strip_prefix("role:");
    let nodes = match role {
        None => hosts.serving(wanted),
        Some(role) => {
            let view = node.view();
            let has = |id| view.member(id).is_some_and(|member| member.roles.iter().any(|known| known == role));
            let fit = hosts.serving_among(wanted, has);
            if fit.is_empty() && !hosts.nodes.iter().any(|id| has(*id)) && !hosts.nodes.is_empty() {
                let message = format!("no node that hosts {:?} has the role {role:?}", actor.kind.name());
                return Err(Refusal::Placement { message });
            }
            Cow::Owned(fit)
        }
    };
    let near = reached(node, &nodes);
    let nodes = near.as_deref().unwrap_or(&nodes);
    let random = |nodes: &[NodeId]| nodes[(node.world().random() % nodes.len() as u64) as usize];
    let name = hosts.placement.as_str();
    let is_anywhere = role.is_some() || matches!(name, "balanced" | "" | "random");
    if let Some(went_to) = went_to.filter(|went_to| is_anywhere && nodes.contains(went_to)) {
        return Ok(went_to);
    }
    match name {
        _ if hosts.nodes.is_empty() => {
            if let Some(gap) = node.view().unread(actor.kind.name()) {
                return Err(gap.into());
            }
            let message = format!("every node that hosts {:?} is about to leave", actor.kind.name());
            Err(Refusal::Placement { message })
        }
        _ if nodes.is_empty() => Err(node.view().gap(actor.kind.name(), wanted).into()),
        _ if role.is_some() => Ok(lighter(node, random(nodes), random(nodes))),
        "balanced" | "" => Ok(lighter(node, random(nodes), random(nodes))),
        "random" | WORKERS => Ok(random(nodes)),
        "local" if nodes.contains(&caller) => Ok(caller),
        "local" => Ok(random(nodes)),
        // The range's owner is where the hash says, and every caller asks it anyway.
        "hash" if nodes.contains(&node.me()) => Ok(node.me()),
        "hash" => Ok(nodes[(hash % nodes.len() as u64) as usize]),
        HOME => {
            let home = node.parts().find_map(|part| part.home(node, actor, hosts));
            Ok(home.filter(|home| nodes.contains(home)).unwrap_or(nodes[0]))
        }
        _ => custom(node, actor, name, nodes, caller),
    }
}

/// Those of `nodes` to which the way is not cut, if there are some to which it is: an activation there would be found by
/// nobody whom this node directs to it.
fn reached(node: &Here, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
    let apart = node.loads().apart(node.world().now());
    if apart.is_empty() {
        return None;
    }
    let near: Vec<NodeId> = nodes.iter().filter(|id| !apart.contains(id)).copied().collect();
    (!near.is_empty()).then_some(near)
}

/// The less loaded of two nodes: two random choices come close to the best one (Mitzenmacher, 2001).
fn lighter(node: &Here, one: NodeId, other: NodeId) -> NodeId {
    let load = |id| if id == node.me() { node.activations() } else { node.loads().of(id) };
    if load(one) <= load(other) { one } else { other }
}

fn custom(node: &Here, actor: &ActorId, name: &str, nodes: &[NodeId], caller: NodeId) -> Result<NodeId, Refusal> {
    let Some(placement) = node.placements().get(name) else {
        let message =
            format!("placement {name:?} is not registered on node {:?}; register it on every node", node.name());
        return Err(Refusal::Placement { message });
    };
    let view = node.view();
    let candidates: Vec<(NodeId, Candidate)> = nodes
        .iter()
        .filter_map(|id| {
            let member = view.member(*id)?;
            let activations = if *id == node.me() { node.activations() } else { node.loads().of(*id) };
            let (name, roles) = (member.name.clone(), member.roles.clone());
            Some((*id, Candidate { name, roles, activations, is_caller: *id == caller }))
        })
        .collect();
    let offered: Vec<Candidate> = candidates.iter().map(|(_, candidate)| candidate.clone()).collect();
    let chosen = placement.choose(actor, &offered);
    let found = chosen.and_then(|name| candidates.iter().find(|(_, candidate)| candidate.name == name));
    found.map(|(id, _)| *id).ok_or_else(|| Refusal::Placement { message: format!("placement {name:?} chose no node") })
}
