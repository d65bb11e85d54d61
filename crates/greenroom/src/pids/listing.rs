//! Which spawned actors there are.

use serde::Serialize;
use tokio::sync::oneshot;

use super::key::Address;
use super::kin::Parent;
use crate::here::Here;
use crate::shard::{Item, Shard, Slot};

/// A spawned actor, as [`Node::spawned`](crate::Node::spawned) lists it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Spawned {
    /// Its full name: what `greenroom call` takes.
    pub actor: String,
    /// Who spawned it: an actor's name, or the address of an activation on another shard. `None` for a program outside.
    pub parent: Option<String>,
    /// The shard that it is on.
    pub shard: u16,
    /// How often it has been made anew.
    pub restarts: u32,
    /// Time since it was made, or last made anew.
    pub age_seconds: f64,
    /// Whether a turn of it runs or is suspended.
    pub busy: bool,
    /// Messages that wait for it.
    pub waiting: usize,
}

impl Shard {
    fn list_spawned(&self, max: usize) -> Vec<Spawned> {
        let kin = self.kin().borrow();
        let listed = kin.kids().filter_map(|(number, kid)| {
            let activation = self.numbered(number)?;
            let parent = kid.parent.map(|parent| match parent {
                Parent::Here(parent) => match self.numbered(parent) {
                    Some(parent) => parent.id().to_string(),
                    None => Address { number: parent, ..self.keeper_address() }.key().to_string(),
                },
                Parent::Away(address) => address.key().to_string(),
            });
            Some(Spawned {
                actor: activation.id().to_string(),
                parent,
                shard: self.index(),
                restarts: kid.restarts,
                age_seconds: self.now().since(kid.since).as_secs_f64(),
                busy: activation.busy(),
                waiting: activation.waiting(),
            })
        });
        listed.take(max).collect()
    }
}

impl Shard {
    /// The actors that the activation in `slot` has spawned, at most `max`: those elsewhere by their keys alone.
    pub(super) fn list_children(&self, slot: Slot, max: usize) -> Vec<String> {
        let kin = self.kin().borrow();
        let (here, elsewhere) = kin.children(slot);
        let here = here.filter_map(|number| Some(self.numbered(number)?.id().to_string()));
        here.chain(elsewhere.map(|address| address.key().to_string())).take(max).collect()
    }
}

/// The spawned actors of `node`, at most `max` a shard, in the order in which their shards made room for them.
pub(crate) async fn list(node: &Here, max: usize) -> Vec<Spawned> {
    let mut all = Vec::new();
    for port in node.shards() {
        let (listed, listing) = oneshot::channel();
        let list = move |shard: &Shard| {
            // Who does not wait any more need not know.
            let _ = listed.send(shard.list_spawned(max));
        };
        if port.push(Item::Run(Box::new(list))).is_ok()
            && let Ok(spawned) = listing.await
        {
            all.extend(spawned);
        }
    }
    all
}
