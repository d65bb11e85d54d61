//! What the floors above keep on a shard, and what they have a say in there.

use std::any::Any;
use std::time::Duration;

use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::sampling::Sample;
use super::trips::Departed;
use super::{Shard, ShardId, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::observe::stage::Talk;

/// What a feature keeps on one shard, beside its turns. Its methods do nothing by default.
pub(crate) trait ShardPart: Any {
    /// Does what is due at `now`; when something is due next.
    fn look(&self, shard: &Shard, now: Timestamp) -> Option<Timestamp> {
        let _ = (shard, now);
        None
    }

    /// The activation that serves the feature itself, if there is one: it is nobody's actor, and ends with the shard.
    fn servant(&self) -> Option<Slot> {
        None
    }

    /// Whether the activation must not end for being idle.
    fn needs(&self, slot: Slot) -> bool {
        let _ = slot;
        false
    }

    /// The actors that an activation has made, at most `max` of them.
    fn children(&self, shard: &Shard, slot: Slot, max: usize) -> Vec<String> {
        let _ = (shard, slot, max);
        Vec::new()
    }

    /// What becomes of an activation that has failed; `None` for those that are none of the feature's.
    fn failed(&self, shard: &Shard, slot: Slot, id: &ActorId, why: Why) -> Option<Fate> {
        let _ = (shard, slot, id, why);
        None
    }

    /// Hears that the cluster has changed, as [`Here::view`](crate::here::Here::view) says already.
    fn viewed(&self, shard: &Shard) {
        let _ = shard;
    }

    /// Hears that the actor of an activation is gone, and about to be made anew.
    fn lost(&self, shard: &Shard, slot: Slot) {
        let _ = (shard, slot);
    }

    /// Takes in a message that is sampled, one of those that stay on the shard or of the others; nothing if it is of no use. How many messages
    /// come before the next one; `None` from who samples none.
    fn sampled(&self, shard: &Shard, near: bool, sample: Option<&Sample<'_>>) -> Option<u32> {
        let _ = (shard, near, sample);
        None
    }

    /// Whom the actors of the shard talk with, and at most so many of its edges, if that is known.
    fn talk(&self, shard: &Shard, edges_max: usize) -> Option<Talk> {
        let _ = (shard, edges_max);
        None
    }

    /// Why an actor is not to be taken that moves here, if it is not; who sends it says this of it: nothing, if it goes by somebody's order.
    fn admits(&self, shard: &Shard, id: &ActorId, from: NodeId, letter: &[u8]) -> Result<(), String> {
        let _ = (shard, id, from, letter);
        Ok(())
    }

    /// Hears that an actor has come by a move, and is activated.
    fn arrived(&self, shard: &Shard, id: &ActorId, from: NodeId, letter: &[u8]) {
        let _ = (shard, id, from, letter);
    }

    /// Hears that an actor, which goes to another node or has come from one, carries so many bytes.
    fn carried(&self, shard: &Shard, id: &ActorId, bytes: usize) {
        let _ = (shard, id, bytes);
    }

    /// Hears that the activation of an actor, which loads something or has a hook, has taken so long.
    fn woke(&self, shard: &Shard, id: &ActorId, took: Duration) {
        let _ = (shard, id, took);
    }

    /// Hears that an actor asks to stay on its node until then, whoever would rather have it elsewhere.
    fn pinned(&self, shard: &Shard, id: &ActorId, until: Timestamp) {
        let _ = (shard, id, until);
    }

    /// Which node of `among` an actor had best go to, as this one leaves.
    fn whither(&self, shard: &Shard, id: &ActorId, among: &[NodeId]) -> Option<NodeId> {
        let _ = (shard, id, among);
        None
    }

    /// Whence an actor was brought here, and why, if that is known.
    fn brought(&self, id: &ActorId) -> Option<Arrival> {
        let _ = id;
        None
    }

    /// What it knows of an activation that goes to the shard `to` of its node, to go along: it is none of this shard any more.
    fn passes(&self, shard: &Shard, id: &ActorId, to: ShardId) -> Option<Box<dyn Any + Send>> {
        let _ = (shard, id, to);
        None
    }

    /// Hears that an activation has come from the shard `from`, and what some part there knew of it.
    fn entered(&self, shard: &Shard, id: &ActorId, from: ShardId, brought: &dyn Any) {
        let _ = (shard, id, from, brought);
    }

    /// Sends on its way what an activation carries that has ended to begin anew elsewhere, and hears what becomes of it; it comes back from
    /// who does not.
    fn departs(&self, shard: &Shard, departed: Departed) -> Option<Departed> {
        let _ = shard;
        Some(departed)
    }

    /// Hears what a shard of another node says on a channel of a connection of this shard: only the parts know what it means.
    fn told(&self, shard: &Shard, from: NodeId, channel: u8, payload: &[u8]) {
        let _ = (shard, from, channel, payload);
    }

    /// Refuses the messages that wait here, as the node stops.
    fn refuse_waiting(&self, refusal: &Refusal) {
        let _ = refusal;
    }

    /// Hears that an activation has ended.
    fn ended(&self, shard: &Shard, slot: Slot, why: Why) {
        let _ = (shard, slot, why);
    }
}

/// An actor that was brought to this shard.
#[derive(Clone)]
pub(crate) struct Arrival {
    /// The name of the node that it left.
    pub(crate) from: String,
    /// When it came.
    pub(crate) at: Timestamp,
    /// Why it was brought, in words.
    pub(crate) why: String,
}

/// What becomes of an activation that has failed.
pub(crate) enum Fate {
    /// It is made anew when its time has come.
    Restart,
    /// It ends, and then this is done.
    End { then: Option<Then> },
}

/// Something to be done on the shard afterwards.
pub(crate) type Then = Box<dyn FnOnce(&Shard)>;

/// Tells the parts of the current shard how long an actor's activation has taken, which has begun then and is over.
pub(super) fn woke(id: &ActorId, begun: Timestamp) {
    Shard::with(|shard| {
        if let Some(shard) = shard {
            let took = shard.now().since(begun);
            shard.parts.iter().for_each(|part| part.woke(shard, id, took));
        }
    });
}

impl Shard {
    /// What a feature keeps on this shard: there are few, so they are looked through.
    ///
    /// # Panics
    /// If its part of the node keeps nothing on shards.
    pub(crate) fn part<P: ShardPart>(&self) -> &P {
        let found = self.parts.iter().find_map(|part| {
            let part: &dyn Any = &**part;
            part.downcast_ref()
        });
        found.unwrap_or_else(|| panic!("a shard has no {}", std::any::type_name::<P>()))
    }

    /// Lets the parts do what is due at `now`; when something is due next.
    pub(super) fn look_after_parts(&self, now: Timestamp) -> Option<Timestamp> {
        self.parts.iter().filter_map(|part| part.look(self, now)).min()
    }

    /// Whether the activation serves a feature, and is nobody's actor.
    pub(super) fn is_servant(&self, slot: Slot) -> bool {
        self.servants().any(|servant| servant == slot)
    }

    pub(super) fn servants(&self) -> impl Iterator<Item = Slot> {
        self.parts.iter().filter_map(|part| part.servant())
    }

    /// Whether a feature needs the activation, which must not end for being idle.
    pub(super) fn is_needed(&self, slot: Slot) -> bool {
        self.parts.iter().any(|part| part.needs(slot))
    }

    /// What becomes of an activation that has failed.
    pub(super) fn decide(&self, slot: Slot, id: &ActorId, why: Why) -> Fate {
        let fate = self.parts.iter().find_map(|part| part.failed(self, slot, id, why));
        fate.unwrap_or(Fate::End { then: None })
    }

    /// Tells the parts that the actor of an activation is gone, and about to be made anew.
    pub(super) fn note_lost(&self, slot: Slot) {
        self.parts.iter().for_each(|part| part.lost(self, slot));
    }

    /// Tells the parts that the cluster has changed.
    pub(super) fn note_viewed(&self) {
        self.parts.iter().for_each(|part| part.viewed(self));
    }

    /// The actors that the activation in `slot` has made, at most `max` of each part.
    pub(super) fn children_of(&self, slot: Slot, max: usize) -> Vec<String> {
        self.parts.iter().flat_map(|part| part.children(self, slot, max)).collect()
    }

    /// Whom the actors of this shard talk with, if a part knows it.
    pub(crate) fn talk(&self, edges_max: usize) -> Option<Talk> {
        self.parts.iter().find_map(|part| part.talk(self, edges_max))
    }

    /// Whether the parts let an actor come that moves here.
    pub(crate) fn admits(&self, id: &ActorId, from: NodeId, letter: &[u8]) -> Result<(), String> {
        self.parts.iter().try_for_each(|part| part.admits(self, id, from, letter))
    }

    /// Tells the parts that an actor has come by a move.
    pub(crate) fn note_arrived(&self, id: &ActorId, from: NodeId, letter: &[u8]) {
        self.parts.iter().for_each(|part| part.arrived(self, id, from, letter));
    }

    /// Tells the parts how much an actor carries from node to node.
    pub(crate) fn note_carried(&self, id: &ActorId, bytes: usize) {
        self.parts.iter().for_each(|part| part.carried(self, id, bytes));
    }

    /// Tells the parts that an actor asks to stay on its node.
    pub(super) fn note_pinned(&self, id: &ActorId, until: Timestamp) {
        self.parts.iter().for_each(|part| part.pinned(self, id, until));
    }

    /// Lets the parts hear what a shard of another node says.
    pub(super) fn tell_parts(&self, from: NodeId, channel: u8, payload: &[u8]) {
        self.parts.iter().for_each(|part| part.told(self, from, channel, payload));
    }

    /// Which node of `among` a part would have an actor go to, as this one leaves.
    pub(super) fn whither(&self, id: &ActorId, among: &[NodeId]) -> Option<NodeId> {
        self.parts.iter().find_map(|part| part.whither(self, id, among))
    }

    /// Whence an actor was brought here, if a part knows it.
    pub(super) fn brought(&self, id: &ActorId) -> Option<Arrival> {
        self.parts.iter().find_map(|part| part.brought(id))
    }

    /// Tells the parts that an activation has ended.
    pub(super) fn note_ended(&self, slot: Slot, why: Why) {
        self.parts.iter().for_each(|part| part.ended(self, slot, why));
    }
}
