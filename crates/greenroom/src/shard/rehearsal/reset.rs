//! How a shard forgets all that a schedule has left on it.

use super::{Rehearsal, Shard, Stage};
use crate::actor::key::{ActorId, Kind};
use crate::here::built_in::is_built_in;
use crate::pids::key::is_reserved;
use crate::shard::calls::Calls;
use crate::shard::cancel::Cancels;
use crate::shard::idle::{FineWheel, IdleWheel};
use crate::shard::timers::Timers;

/// What is left on a shard, by what it is.
pub type Digest = [(&'static str, u64); 26];

impl Stage {
    /// Forgets all turns, activations, calls and timers, as if the shard had just begun, and what `clients` drops. `false` if something was done that
    /// others may remember, as stores do: then only a new node is as new.
    pub fn reset(&self, clients: impl FnOnce()) -> bool {
        let shard = &*self.shard;
        shard.rehearsal.falls.set(true);
        let is_whole = shard.enter(|| {
            clients();
            let mut held = shard.rehearsal.held.take();
            held.clear();
            let more = shard.rehearsal.held.replace(held);
            drop(more);
            shard.player().into_iter().for_each(|player| player.forget());
            shard.forget_turns();
            shard.forget_activations();
            let has_calls = shard.calls.borrow().len() > 0;
            let calls = has_calls.then(|| shard.calls.replace(Calls::default()));
            drop(calls);
            shard.calls.borrow_mut().begin_anew();
            let (mut items, mut wakes, mut returned) = Default::default();
            shard.inbox.drain(&mut items, &mut wakes, &mut returned);
            drop(items);
            // What was dropped may have made more.
            shard.ready.borrow_mut().clear();
            shard.runnable.borrow_mut().clear();
            shard.turns.borrow().iter().next().is_none() && !shard.rehearsal.is_stained.get()
        });
        shard.rehearsal.clear();
        let forget = shard.rehearsal.forget_states.borrow().clone();
        forget.into_iter().for_each(|forget| forget());
        shard.idle.replace(IdleWheel::default());
        shard.saves.replace(IdleWheel::default());
        shard.late.replace(FineWheel::default());
        shard.cancels.replace(Cancels::default());
        shard.timers.replace(Timers::default());
        shard.turns.borrow_mut().begin_anew();
        shard.activations.borrow_mut().begin_anew();
        is_whole
    }

    /// What there is on the shard: of one that was reset, as of a new one.
    pub fn digest(&self) -> Digest {
        let shard = &*self.shard;
        let rehearsal = &shard.rehearsal;
        let parked = u64::from(shard.has_parked());
        let due = |next: Option<_>| u64::from(next.is_some());
        [
            ("turns", shard.turns.borrow().iter().count() as u64),
            ("ready", shard.ready.borrow().len() as u64),
            ("runnable", shard.runnable.borrow().len() as u64),
            ("calls", shard.calls.borrow().len() as u64),
            ("activations", shard.activations.borrow().len() as u64),
            ("servants", shard.servants().count() as u64),
            ("idle", due(shard.idle.borrow().next())),
            ("saves", due(shard.saves.borrow().next())),
            ("late", due(shard.late.borrow().next())),
            ("timers", due(shard.timers.borrow().next())),
            ("cancels", shard.cancels.borrow().len() as u64),
            ("ties", shard.ties.borrow().len() as u64),
            ("streams", shard.streams.len() as u64),
            ("workers", shard.workers.borrow().len() as u64),
            ("parked", parked),
            ("inbox", u64::from(shard.inbox.filled())),
            ("held", rehearsal.held.borrow().len() as u64),
            ("asked", rehearsal.asked.borrow().len() as u64),
            ("occupied", rehearsal.occupied.borrow().len() as u64),
            ("places", rehearsal.places.borrow().len() as u64),
            ("makers", rehearsal.turns.borrow().len() as u64),
            ("clients", rehearsal.clients.borrow().iter().sum()),
            ("made", rehearsal.made.get()),
            ("panics", rehearsal.panics.borrow().len() as u64),
            ("events", rehearsal.events.len() as u64),
            ("stained", rehearsal.is_stained.get().into()),
        ]
    }
}

/// Notes that the turn that runs does something that outlives its shard.
pub(crate) fn note_lasting() {
    Shard::with(|shard| shard.into_iter().for_each(Shard::stain));
}

impl Shard {
    /// Notes that something is done that outlives the shard.
    fn stain(&self) {
        self.rehearsal.is_stained.set(true);
    }

    /// Notes it, if an activation of `id` may do such.
    pub(super) fn stain_by(&self, id: &ActorId) {
        if is_reserved(&id.key) || !self.rehearsal.is_plain(id.kind, || self.has_plain(id.kind)) {
            self.stain();
        }
    }

    /// Whether the actors of a kind have nothing but their memory.
    fn has_plain(&self, kind: Kind) -> bool {
        let kinds = self.port.node.kinds();
        !is_built_in(kind.name())
            && kinds.find(kind).is_some_and(|found| {
                !found.is_versioned() && (found.states().is_empty() || self.rehearsal.forget_states.borrow().is_some())
            })
    }

    fn forget_turns(&self) {
        let all = self.turns.borrow().all();
        for turn in all {
            let future = self.turns.borrow_mut().cut(turn);
            drop(future);
            let known = self.turns.borrow_mut().end(turn);
            drop(known);
        }
    }

    fn forget_activations(&self) {
        let all: Vec<_> = self.activations.borrow().iter().cloned().collect();
        all.into_iter().for_each(|activation| activation.vanish(self));
    }
}

impl Rehearsal {
    /// What [`Shard::has_plain`] says, asked once a kind.
    fn is_plain(&self, kind: Kind, ask: impl FnOnce() -> bool) -> bool {
        let mut plain = self.plain.borrow_mut();
        if let Some((_, known)) = plain.iter().find(|(known, _)| *known == kind) {
            return *known;
        }
        let found = ask();
        plain.push((kind, found));
        found
    }

    fn clear(&self) {
        self.passes.set(false);
        self.falls.set(false);
        self.client.set(None);
        self.step.set(0);
        self.begun.set(0);
        self.made.set(0);
        self.held.borrow_mut().clear();
        self.asked.borrow_mut().clear();
        self.places.borrow_mut().clear();
        self.turns.borrow_mut().clear();
        self.clients.borrow_mut().clear();
        self.panics.borrow_mut().clear();
        self.labels.take();
        self.occupied.borrow_mut().clear();
        self.acting.take();
        self.ends_as.take();
        self.ticks.clear();
        self.events.clear();
    }
}
