//! Activations that an operator ends, on whatever node they are.

use bytes::Bytes;
use greenroom_protocols::node::NodeId;

use super::directory::Entry;
use crate::actor::interface::Why;
use crate::actor::key::{ActorId, Kind};
use crate::here::Here;
use crate::shard::Item;

/// Hears from another node which of this one's activations is to end.
pub(super) fn hear(here: &Here, payload: &[u8]) {
    if let Ok((kind, key)) = serde_json::from_slice::<(String, String)>(payload) {
        end_locally(here, &kind, &key);
    }
}

/// Has the actor end on the node where it is, at its next turn boundary. Word of it may be lost.
pub(crate) fn end(here: &Here, on: NodeId, kind: &str, key: &str) {
    if on == here.me() {
        return end_locally(here, kind, key);
    }
    let said = serde_json::to_vec(&(kind, key)).unwrap_or_default();
    here.tell(on, CHANNEL, Bytes::from(said));
}

fn end_locally(here: &Here, kind: &str, key: &str) {
    let id = Kind::known(kind).and_then(|kind| ActorId::new(kind, key).ok());
    let Some((at, slot)) = id.and_then(|id| here.directory()?.slot_of(&Entry::new(id))) else { return };
    if let Some(port) = here.shards().iter().find(|port| port.id == at) {
        // A shard that is closed has no activations.
        let _ = port.push(Item::Run(Box::new(move |shard| shard.end_activation(slot, Why::Asked))));
    }
}

/// Of the parts of nodes, the channel of this one.
pub(super) const CHANNEL: u8 = 4;
