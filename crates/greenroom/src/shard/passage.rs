//! Activations that go from one shard of their node to another, as values: see [`greenroom_protocols::passage`].
//!
//! Nothing is encoded, no hook runs and no owner is asked: the activation goes on under its epoch, with what waits for it. It
//! goes at a turn boundary, and only if nothing of it is tied to its shard.

mod enter;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::passage::{Cuts, Entrance, HELD_MAX};
use greenroom_world::Timestamp;

use self::enter::AnyPassenger;
pub(crate) use self::enter::Enter;
use super::activation::AnyActivation;
use super::submit::AnyParcel;
use super::underway::Underway;
use super::{Item, Shard, ShardId, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::ActorId;
use crate::here::built_in::is_built_in;
use crate::here::location::Passage;
use crate::pids::key::is_reserved;

/// The passages of one shard.
#[derive(Default)]
pub(super) struct Passages {
    /// Where activations are to go at their next turn boundary, by their slots, unless it is later than that.
    wanted: BTreeMap<(u32, u32), (ShardId, Timestamp)>,
    /// The slots of other shards that are used no more.
    cuts: Cuts<(ShardId, Slot)>,
    /// Actors that come.
    entrances: BTreeMap<ActorId, Coming>,
    /// Slots of this shard that activations have left, the last ones.
    left: VecDeque<(Slot, ActorId)>,
}

/// An actor that comes.
#[derive(Default)]
struct Coming {
    entrance: Entrance<ShardId, Box<dyn AnyParcel>>,
    /// Where it is, once it is here.
    at: Option<At>,
}

#[derive(Clone, Copy)]
struct At {
    slot: Slot,
    epoch: Epoch,
    passage: Passage,
}

impl Shard {
    /// Lets the activation in `slot` go to the shard `to` of this node at its next turn boundary, if that comes before `until`
    /// and nothing holds it here.
    pub(crate) fn pass_freely(&self, slot: Slot, to: ShardId, until: Timestamp) {
        if let Some(activation) = self.activation(slot)
            && self.sibling(to).is_some_and(|index| index != usize::from(self.index()))
        {
            self.passages.borrow_mut().wanted.insert(number(slot), (to, until));
            activation.end(self, Why::Migrating);
        }
    }

    /// Where the activation in `slot` is to go, if it may go there now.
    pub(super) fn take_passage(&self, activation: &Rc<dyn AnyActivation>) -> Option<ShardId> {
        let (to, until) = self.passages.borrow_mut().wanted.remove(&number(activation.slot()))?;
        (self.now() < until && self.may_pass(activation)).then_some(to)
    }

    /// Whether nothing of an activation is tied to its shard.
    fn may_pass(&self, activation: &Rc<dyn AnyActivation>) -> bool {
        let (node, id, slot) = (&self.port.node, activation.id(), activation.slot());
        let Some(kind) = node.kinds().find(id.kind) else { return false };
        let options = kind.options();
        let is_bound = options.workers > 0
            || options.reliable
            || kind.is_versioned()
            || is_built_in(id.kind.name())
            || is_reserved(&id.key)
            || activation.hears()
            || self.is_servant(slot);
        let leaves = || self.is_stopping() || node.is_handing_over() || !self.fence_open();
        !(is_bound || self.tied_here(slot).is_some() || leaves() || self.is_parked(id.stable_hash()))
    }

    /// What an activation has on its shard that does not go to another one, if there is anything.
    pub(crate) fn tied_here(&self, slot: Slot) -> Option<&'static str> {
        if self.is_tied(slot) {
            Some("a stream is tied to it")
        } else if self.is_needed(slot) {
            Some("it has children here")
        } else if self.timers.borrow().of(slot) > 0 {
            Some("it has set timers")
        } else {
            None
        }
    }

    /// Asks the directory whether an activation may go; if so, it has.
    fn lets_over(&self, id: &ActorId, epoch: Epoch, slot: Slot, to: ShardId) -> bool {
        let passage = Passage { from: self.id(), slot };
        self.port.node.ways().any(|way| way.pass(id, epoch, passage, to))
    }

    /// Sends an activation on its way, as the directory has said that it goes.
    fn send_over(
        &self,
        (id, epoch, slot): (&ActorId, Epoch, Slot),
        idle: Duration,
        to: ShardId,
        actor: Box<dyn AnyPassenger>,
    ) {
        let passage = Passage { from: self.id(), slot };
        let brought = self.note_passing(id, to);
        self.take_out(slot);
        let enter = Enter { id: id.clone(), epoch, idle, passage, actor, brought };
        {
            let mut passages = self.passages.borrow_mut();
            if passages.left.len() >= LEFT_MAX {
                passages.left.pop_front();
            }
            passages.left.push_back((slot, id.clone()));
        }
        // What it has sent stays ahead of what it sends there.
        self.hand_over();
        self.post(to, Item::Enter(Box::new(enter)));
        for port in self.port.node.shards().iter().filter(|port| port.id != self.id() && port.id != to) {
            let id = id.clone();
            self.post(port.id, Item::Run(Box::new(move |shard| shard.cut(passage, &id, to))));
        }
    }

    /// Uses the slot that an actor leaves no more, and says so to the shard that it goes to, by way of the one that it leaves.
    fn cut(&self, passage: Passage, id: &ActorId, to: ShardId) {
        let Passage { from, slot } = passage;
        if from == self.id() || !self.passages.borrow_mut().cuts.cut(route_number(from, slot), (from, slot)) {
            return;
        }
        let (id, by) = (id.clone(), self.id());
        let through =
            move |shard: &Shard| shard.post(to, Item::Run(Box::new(move |shard| shard.through(&id, passage, by))));
        self.post(from, Item::Run(Box::new(through)));
    }

    /// Whether a slot of another shard is known to be used no more.
    #[inline]
    pub(super) fn is_cut(&self, shard: ShardId, slot: Slot) -> bool {
        self.passages.borrow().cuts.is_cut(route_number(shard, slot), (shard, slot))
    }

    /// Takes a message to an actor that goes to the shard `to` on its way.
    pub(crate) fn follow_over(&self, message: &mut dyn Underway, to: ShardId, passage: Passage) -> Result<(), Refusal> {
        if passage.from == self.id() {
            // Behind the activation.
            if let Some(parcel) = message.sealed(self) {
                self.post(to, Item::Handed(parcel));
            }
            return Ok(());
        }
        self.cut(passage, message.id(), to);
        if to != self.id() {
            if let Some(parcel) = message.sealed(self) {
                self.post(to, Item::Ahead { passage, parcel });
            }
            return Ok(());
        }
        if self.handed.take() == Some(message.hash())
            && let Some(activation) = self.entered(message.id())
        {
            return message.offer(self, activation);
        }
        let id = message.id().clone();
        let Some(parcel) = message.sealed(self) else { return Ok(()) };
        let held = self.passages.borrow_mut().entrances.entry(id.clone()).or_default().entrance.hold(parcel);
        if let Err(parcel) = held {
            let queue = format!("what waits for {id}, which goes to another shard,");
            parcel.refuse(Refusal::Overloaded { queue, bound: HELD_MAX as u64 });
        }
        Ok(())
    }

    /// Takes in what the shard has handed on that the actor has left, or what has waited for that.
    pub(super) fn take_handed(&self, parcel: Box<dyn AnyParcel>) {
        self.handed.set(Some(parcel.hash()));
        parcel.deliver(self);
        self.handed.set(None);
    }

    /// Takes in what may have come before the actor: it does not go back to where that was.
    pub(super) fn take_ahead(&self, passage: Passage, parcel: Box<dyn AnyParcel>) {
        self.cut(passage, parcel.id(), self.id());
        parcel.deliver(self);
    }

    /// The activation of an actor that comes, if it is here.
    fn entered(&self, id: &ActorId) -> Option<Rc<dyn AnyActivation>> {
        let slot = self.passages.borrow().entrances.get(id)?.at?.slot;
        self.activation(slot)
    }

    /// An activation comes from another shard.
    pub(super) fn enter_over(&self, enter: Enter) {
        let Enter { id, epoch, idle, passage, actor, brought } = enter;
        let slot = self.activations.borrow_mut().insert(|slot| actor.activation(slot));
        self.idle.borrow_mut().insert(self.now() + idle, slot);
        self.count_activation(&id, true);
        self.gauge_activations();
        if passage.from == self.id() {
            // It could not go.
            self.note_passed(&id, epoch, passage, slot);
        } else {
            let mut passages = self.passages.borrow_mut();
            let coming = passages.entrances.entry(id.clone()).or_default();
            coming.at = Some(At { slot, epoch, passage });
            coming.entrance.enter();
        }
        self.note_entered(&id, passage.from, brought);
        self.cut(passage, &id, self.id());
        let Some(activation) = self.activation(slot) else { return };
        activation.clone().check_late(self, self.now());
        if activation.waiting() > 0 {
            activation.clone().run(self);
        }
        // It has missed what was said to all others here.
        if self.is_stopping() {
            activation.end(self, Why::Stopping);
        } else if self.port.node.is_handing_over() {
            self.give_up_one(&activation);
        }
    }

    /// All that the shard `by` has sent to the old slot of an actor has come.
    fn through(&self, id: &ActorId, passage: Passage, by: ShardId) {
        let others = self.port.node.shards().len() - 1;
        let opens = {
            let mut passages = self.passages.borrow_mut();
            let found = passages.entrances.get_mut(id);
            let Some(coming) = found.filter(|coming| coming.at.is_some_and(|at| at.passage == passage)) else { return };
            coming.entrance.through(by);
            coming.entrance.is_open(others)
        };
        if !opens {
            return;
        }
        // Turns that this begins may send it more, which waits behind what waits.
        while let Some(parcel) = self.take_held(id) {
            self.take_handed(parcel);
        }
        let coming = self.passages.borrow_mut().entrances.remove(id);
        if let Some(At { slot, epoch, passage }) = coming.and_then(|coming| coming.at) {
            self.note_passed(id, epoch, passage, slot);
        }
    }

    fn note_passed(&self, id: &ActorId, epoch: Epoch, passage: Passage, slot: Slot) {
        self.port.node.ways().for_each(|way| way.passed(id, epoch, passage, (self.id(), slot)));
    }

    fn take_held(&self, id: &ActorId) -> Option<Box<dyn AnyParcel>> {
        self.passages.borrow_mut().entrances.get_mut(id)?.entrance.take()
    }

    /// An activation has been taken out: what was held for its entrance goes to the actor's next one, when the directory knows.
    pub(super) fn end_entrance(&self, slot: Slot) {
        let mut passages = self.passages.borrow_mut();
        passages.wanted.remove(&number(slot));
        if passages.entrances.is_empty() {
            return;
        }
        let found = passages.entrances.iter().find(|(_, coming)| coming.at.is_some_and(|at| at.slot == slot));
        let Some(id) = found.map(|(id, _)| id.clone()) else { return };
        let coming = passages.entrances.remove(&id);
        drop(passages);
        let mut entrance = coming.unwrap_or_default().entrance;
        while let Some(parcel) = entrance.take() {
            self.run_apart(Item::Parcel(parcel));
        }
    }

    /// Does what was to be done with the activation in `slot`, which has left it, where it has gone.
    pub(super) fn follow_slot(&self, slot: Slot, run: impl FnOnce(&Shard, Slot) + Send + 'static) {
        let passages = self.passages.borrow();
        let Some((_, id)) = passages.left.iter().rev().find(|(left, _)| *left == slot) else { return };
        let id = id.clone();
        drop(passages);
        let place = |shard: &Shard, id: &ActorId| shard.port.node.ways().find_map(|way| way.place(id));
        let Some((to, _)) = place(self, &id).filter(|(to, _)| *to != self.id()) else { return };
        let run = move |shard: &Shard| {
            let known = || place(shard, &id).filter(|(at, _)| *at == shard.id())?.1;
            if let Some(slot) = shard.entered(&id).map(|activation| activation.slot()).or_else(known) {
                run(shard, slot);
            }
        };
        self.post(to, Item::Run(Box::new(run)));
    }

    /// Refuses what waits for actors that come.
    pub(super) fn refuse_entering(&self, refusal: &Refusal) {
        let mut held = Vec::new();
        for coming in self.passages.borrow_mut().entrances.values_mut() {
            held.extend(std::iter::from_fn(|| coming.entrance.take()));
        }
        held.into_iter().for_each(|parcel| parcel.refuse(refusal.clone()));
    }

    /// What the parts of this shard know of an activation that goes to another one.
    fn note_passing(&self, id: &ActorId, to: ShardId) -> Vec<Box<dyn Any + Send>> {
        self.parts.iter().filter_map(|part| part.passes(self, id, to)).collect()
    }

    /// Tells the parts that an activation has come from another shard.
    fn note_entered(&self, id: &ActorId, from: ShardId, brought: Vec<Box<dyn Any + Send>>) {
        for one in brought {
            self.parts.iter().for_each(|part| part.entered(self, id, from, &*one));
        }
    }
}

fn number(slot: Slot) -> (u32, u32) {
    (slot.index, slot.generation)
}

/// The only one with this number among all shards' slots and their generations.
fn route_number(shard: ShardId, slot: Slot) -> u64 {
    u64::from(shard.raw()) << 50 | u64::from(slot.generation) << 32 | u64::from(slot.index)
}

/// Slots that activations have left, of which a shard remembers whose they were.
const LEFT_MAX: usize = 1024;
