//! How turns end, and what is done about those that fail.

use super::mailbox::{Effect, Item, Known, Ready, after};
use super::{Action, Effects, Outcome, Partition, Presence, Source, TurnId};
use crate::time::Timestamp;

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Takes in that a turn has ended. One whose ownership or activation is over is not known any more.
    pub(super) fn ended(&mut self, now: Timestamp, turn: TurnId, outcome: Outcome<A, M>, out: &mut Vec<Action<A, M>>) {
        let Some(item) = self.turns.remove(&turn) else { return };
        let actor = item.envelope.to.clone();
        let running = self.wake(&actor).running.take();
        assert_eq!(running, Some(turn), "a turn has ended that its actor does not run");
        match outcome {
            Outcome::Done(effects) => self.done(turn, item, effects),
            Outcome::Deferred => self.deferred(item),
            Outcome::Failed(error) => self.failed(item, error),
            Outcome::Died => self.died(item),
        }
        self.dispatch(now, &actor, out);
    }

    fn done(&mut self, turn: TurnId, item: Item<A, M>, mut effects: Box<Effects<A, M>>) {
        for timer in &mut effects.timers {
            timer.slot = self.slot();
        }
        let mailbox = self.wake(&item.envelope.to);
        let before = match mailbox.records {
            Known::Yes(presence) => presence,
            Known::No | Known::Reading => None,
        };
        let mut presence = None;
        if let (true, Some(birth)) = (item.envelope.creates, item.envelope.birth) {
            let number = if let Source::Counted { number, .. } = item.source { number } else { 0 };
            presence = Some(Presence { birth, number, halted: false });
        }
        let mut dropped = Vec::new();
        if effects.halts {
            presence = presence.or(before).map(|presence| Presence { halted: true, ..presence });
            dropped.extend(std::mem::take(&mut mailbox.deferred).into_iter().map(|(slot, item)| (slot, item.envelope)));
        }
        mailbox.records = Known::Yes(presence.or(before));
        if effects.reconsider {
            mailbox.cursor = Some(super::Slot::default());
        } else if let Source::Queue(slot) = item.source {
            mailbox.cursor = Some(after(slot));
        }
        mailbox.uncommitted += 1;
        self.ready.push_back(Ready { turn: Some(turn), item, effect: Effect::Done { effects, presence, dropped } });
    }

    fn deferred(&mut self, item: Item<A, M>) {
        if let Source::Queue(slot) = item.source {
            self.is_cleared(&item.source);
            let item = Item { deaths: 0, ..item };
            let mailbox = self.wake(&item.envelope.to);
            mailbox.cursor = Some(after(slot));
            mailbox.deferred.insert(slot, item);
            return;
        }
        let slot = self.slot();
        let mailbox = self.wake(&item.envelope.to);
        mailbox.uncommitted += 1;
        let waiting = Item::new(Source::Queue(slot), item.envelope.clone(), None);
        let before = mailbox.deferred.insert(slot, waiting);
        debug_assert!(before.is_none(), "two messages lie in one slot of an actor's queue");
        self.ready.push_back(Ready { turn: None, item, effect: Effect::Deferred(slot) });
    }

    /// A turn has no effects: its message is tried again on a fresh activation, or given up (R6).
    fn failed(&mut self, mut item: Item<A, M>, error: String) {
        item.attempts += 1;
        let actor = item.envelope.to.clone();
        self.wake(&actor).resetting = true;
        if item.attempts < self.config.attempts_max || !self.config.checks.parking {
            return self.wake(&actor).put_back(item);
        }
        self.give_up(item, error);
    }

    /// A message whose commit was refused by itself: its turn has failed, and what its actor did since is undone.
    pub(super) fn refused(&mut self, now: Timestamp, ready: Ready<A, M>, error: String, out: &mut Vec<Action<A, M>>) {
        let Some(actor) = ready.actor().cloned() else { return self.stays(now, ready, error, out) };
        let mut undone = Vec::new();
        self.ready = std::mem::take(&mut self.ready)
            .into_iter()
            .filter_map(|later| {
                if later.actor() != Some(&actor) {
                    return Some(later);
                }
                undone.push(later.item);
                None
            })
            .collect();
        let mailbox = self.wake(&actor);
        assert!(undone.len() < mailbox.uncommitted, "a turn is undone that has not ended");
        mailbox.uncommitted -= undone.len() + 1;
        if let Some(running) = mailbox.running.take() {
            undone.extend(self.turns.remove(&running));
        }
        let mailbox = self.wake(&actor);
        for item in undone.into_iter().rev() {
            mailbox.put_back(item);
        }
        match ready.effect {
            Effect::Done { .. } | Effect::Deferred(_) => self.failed(ready.item, error),
            Effect::Parked(..) | Effect::Failed(_) | Effect::Dropped(_) | Effect::Sent | Effect::Discarded => {
                mailbox.resetting = true;
                if let Source::Parked(slot) = ready.item.source {
                    self.unqueue();
                    self.give_back(slot);
                } else {
                    // Not even that can be written: the journal refuses the message as such.
                    mailbox.put_back(Item { attempts: 0, ..ready.item });
                    self.held.insert(actor.clone(), now + self.config.hold);
                }
            }
        }
        self.dispatch(now, &actor, out);
    }
}
