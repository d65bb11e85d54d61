//! Ticks of reminders come at least once: who has had one, and is gone before its keeper knows, may have it again.

use std::cell::RefCell;

use bytes::Bytes;
use greenroom_world::Timestamp;

use super::{Shard, mix};
use crate::actor::key::ActorId;
use crate::actor::reply::WireReply;
use crate::shard::Slot;
use crate::shard::chain::Chain;
use crate::shard::envelope::WireCall;
use crate::time::tick::Ticked;

/// The ticks that have come, and those that have come again.
#[derive(Default)]
pub(super) struct Ticks {
    came: RefCell<Vec<Came>>,
    again: RefCell<Vec<Ticked>>,
}

/// A tick that has come to an activation.
struct Came {
    number: u64,
    id: ActorId,
    slot: Slot,
    method: (u16, String),
    payload: Bytes,
    chain: Chain,
}

impl Ticks {
    pub(super) fn clear(&self) {
        self.came.borrow_mut().clear();
        self.again.borrow_mut().clear();
    }
}

/// Lets no tick of the reminder `name` of this actor come again: it was cancelled, or another one has its name.
pub(crate) fn forget_ticks((kind, key): (&str, &str), name: &str) {
    Shard::with(|shard| {
        let Some(shard) = shard else { return };
        let is_other =
            |ticked: Option<&Ticked>| ticked.is_none_or(|ticked| ticked.tick.reminder.as_deref() != Some(name));
        let is_others =
            |came: &Came| (came.id.kind.name(), &*came.id.key) != (kind, key) || is_other(ticked(&came.chain));
        shard.rehearsal.ticks.came.borrow_mut().retain(is_others);
    });
}

fn ticked(chain: &Chain) -> Option<&Ticked> {
    chain.baggage.as_ref()?.tick.as_deref()
}

impl Shard {
    /// Remembers that a tick has come, if the message is one of a reminder.
    pub(in crate::shard) fn note_tick(
        &self,
        (id, slot): (&ActorId, Slot),
        method: (u16, String),
        payload: &[u8],
        chain: &Chain,
    ) {
        let mut came = self.rehearsal.ticks.came.borrow_mut();
        let number = mix(self.rehearsal.step.get(), TICK | came.len() as u64);
        let payload = Bytes::copy_from_slice(payload);
        came.push(Came { number, id: id.clone(), slot, method, payload, chain: chain.clone() });
    }

    /// The ticks that may come again, by their numbers, and whose they are: the activations that have had them are gone.
    pub(super) fn ticks_to_repeat(&self) -> Vec<(u64, u64)> {
        let came = self.rehearsal.ticks.came.borrow();
        let is_gone = |came: &&Came| self.activation(came.slot).is_none_or(|found| *found.id() != came.id);
        came.iter().filter(is_gone).map(|came| (came.number, came.id.stable_hash())).collect()
    }

    /// What a tick is called.
    pub(super) fn name_of_tick(&self, number: u64) -> Option<String> {
        let came = self.rehearsal.ticks.came.borrow();
        came.iter().find(|came| came.number == number).map(|Came { id, method, .. }| format!("{id}.{}", method.1))
    }

    /// Lets a tick come again.
    pub(super) fn repeat_tick(&self, number: u64) {
        let ticks = &self.rehearsal.ticks;
        let place = ticks.came.borrow().iter().position(|came| came.number == number);
        let Some(Came { id, method, payload, chain, .. }) = place.map(|place| ticks.came.borrow_mut().remove(place))
        else {
            return;
        };
        ticks.again.borrow_mut().extend(ticked(&chain).cloned());
        let call = WireCall { method: method.0, payload, reply: WireReply::nobody() };
        self.resubmit_raw(&id, &method.1, call, Timestamp::NEVER, chain);
    }

    /// Whether the tick comes again although it has had its turn: nobody has written that down.
    pub(in crate::shard) fn comes_again(&self, ticked: &Ticked) -> bool {
        self.rehearsal.ticks.again.borrow().contains(ticked)
    }
}

/// Tells ticks from what else a step has made.
const TICK: u64 = 17 << 58;
