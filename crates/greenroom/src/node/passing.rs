//! What tests do to single activations: the optimiser and the control plane do the same when it suits them.

use super::Node;
use crate::actor::interface::Why;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::directory::Entry;
use crate::shard::{Item, Shard, ShardPort, Slot};

impl Node {
    /// Lets an actor go to another shard of this node at its next turn boundary. Whether it is here.
    #[doc(hidden)]
    pub fn pass(&self, kind: &str, key: &str, shard: u16) -> bool {
        let here = self.here();
        let (Some((port, slot)), Some(to)) = (self.place(kind, key), here.shards().get(usize::from(shard))) else {
            return false;
        };
        let (to, until) = (to.id, here.world().now() + here.config().call_timeout);
        let run = move |shard: &Shard| shard.pass_freely(slot, to, until);
        port.push(Item::Run(Box::new(run))).is_ok()
    }

    /// Ends an activation as if another one had a higher epoch. Whether it is here.
    #[doc(hidden)]
    pub fn supersede(&self, kind: &str, key: &str) -> bool {
        let Some((port, slot)) = self.place(kind, key) else { return false };
        port.push(Item::Run(Box::new(move |shard| shard.end_activation(slot, Why::Superseded)))).is_ok()
    }

    fn place(&self, kind: &str, key: &str) -> Option<(ShardPort, Slot)> {
        let here = self.here();
        let entry = Entry::new(ActorId::new(Kind::known(kind)?, key).ok()?);
        let (shard, slot) = here.directory()?.slot_of(&entry)?;
        Some((here.shards().iter().copied().find(|port| port.id == shard)?, slot))
    }
}
