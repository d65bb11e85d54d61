//! Activations of reliable actors: no directory knows them, and they end when their partition says so.

use greenroom_protocols::directory::Epoch;

use super::chain::{Chain, Link};
use super::envelope::{Body, Envelope};
use super::seed::Seed;
use super::{Shard, Slot};
use crate::actor::call::Call;
use crate::actor::error::Refusal;
use crate::actor::interface::{Method, Why};
use crate::actor::key::ActorId;
use crate::actor::reply::{AnyReply, ReplyTo};
use greenroom_world::Timestamp;

impl Shard {
    /// Makes an activation of `id`, of `seed`, that only its maker finds.
    pub(crate) fn activate_apart(&self, id: ActorId, epoch: Epoch, seed: Seed) -> Result<Slot, Refusal> {
        let Some(kind) = self.port.node.kinds().find(id.kind) else {
            return Err(self.port.node.unknown_kind(id.kind.name()));
        };
        let activation = self.enter_spawned(|slot| kind.clone().activation(self, id, epoch, slot));
        activation.clone().start(self, seed, Link::None)?;
        Ok(activation.slot())
    }

    /// Takes an activation away, with what it does.
    pub(crate) fn cut_apart(&self, slot: Slot) {
        if let Some(activation) = self.activation(slot) {
            self.cut_turns(&activation);
            self.take_out(slot);
            self.note_ended(slot, Why::Superseded);
        }
    }

    /// Makes a call whose reply goes on to `reply`.
    pub(crate) fn call_for<M: Method>(
        &self,
        call: Call<M>,
        reply: Box<dyn AnyReply>,
        deadline: Timestamp,
        chain: Chain,
    ) {
        let (target, method) = call.into_parts();
        if let Some(slot) = self.relay(reply, deadline, target.hash) {
            let message = method.into_message(ReplyTo::call(self.id(), slot));
            let body = Body::Typed(message);
            self.bring::<M::Interface>(&target, Envelope { body, deadline, chain });
        }
    }
}
