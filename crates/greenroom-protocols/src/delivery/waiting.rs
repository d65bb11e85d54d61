//! Messages that wait for their turns, as an operator sees and drops them.

use super::mailbox::{Effect, Item, Known, Ready};
use super::{Action, DeadLetter, Partition, Sealed, Source, WaitingPlace};
use crate::time::Timestamp;

/// A message that waits for its turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingMessage<A, M> {
    /// Its place; `None` for one-way messages from outside, which have none and cannot be dropped.
    pub place: Option<WaitingPlace>,
    /// The message.
    pub envelope: Sealed<A, M>,
    /// Failures of its turn.
    pub attempts: u32,
    /// Processes that died during its turn.
    pub deaths: u32,
    /// True while its turn runs, or waits until it may run.
    pub is_running: bool,
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// The messages in memory that wait for their turns: those of `actor`, or of all actors.
    pub fn waiting(&self, actor: Option<&A>) -> Vec<WaitingMessage<A, M>> {
        let shown = |item: &Item<A, M>, is_running| WaitingMessage {
            place: item.place(),
            envelope: item.envelope.clone(),
            attempts: item.attempts,
            deaths: item.deaths,
            is_running,
        };
        let mut waiting = Vec::new();
        for (_, mailbox) in self.mailboxes.iter().filter(|(of, _)| actor.is_none_or(|actor| actor == *of)) {
            let running = mailbox.running.and_then(|turn| self.turns.get(&turn));
            waiting.extend(running.map(|item| shown(item, true)));
            waiting.extend(mailbox.deferred.values().chain(&mailbox.queue).map(|item| shown(item, false)));
        }
        waiting
    }

    /// True if a message in memory waits at `place` for its turn, or for the end of its turn.
    pub fn waits_at(&self, actor: &A, place: &WaitingPlace) -> bool {
        let Some(mailbox) = self.mailboxes.get(actor) else { return false };
        let running = mailbox.running.and_then(|turn| self.turns.get(&turn));
        let mut items = running.into_iter().chain(&mailbox.queue).chain(mailbox.deferred.values());
        items.any(|item| item.place().as_ref() == Some(place))
    }

    /// Drops a message that waits. If its turn runs, the turn is undone.
    pub(super) fn drop_waiting(
        &mut self,
        now: Timestamp,
        actor: &A,
        (place, stored): (&WaitingPlace, Option<Sealed<A, M>>),
        out: &mut Vec<Action<A, M>>,
    ) {
        let unread = self.unread(actor, place, stored);
        let Some(item) = self.take_waiting(actor, place).or(unread) else { return };
        let mailbox = self.wake(actor);
        mailbox.uncommitted += 1;
        // The activation may have seen the message, and records that are being read may still hold it.
        mailbox.resetting = true;
        self.held.remove(actor);
        self.ready.push_back(Ready { turn: None, item, effect: Effect::Dropped(DeadLetter::Dropped) });
        self.dispatch(now, actor, out);
    }

    /// A message in the own queue of an actor whose records are not in memory.
    fn unread(&self, actor: &A, place: &WaitingPlace, stored: Option<Sealed<A, M>>) -> Option<Item<A, M>> {
        let is_read = self.mailboxes.get(actor).is_some_and(|mailbox| matches!(mailbox.records, Known::Yes(_)));
        match place {
            WaitingPlace::Queue(slot) if !is_read => Some(Item::new(Source::Queue(*slot), stored?, None)),
            _ => None,
        }
    }

    fn take_waiting(&mut self, actor: &A, place: &WaitingPlace) -> Option<Item<A, M>> {
        let is_it = |item: &Item<A, M>| item.place().as_ref() == Some(place);
        let mailbox = self.mailboxes.get_mut(actor)?;
        if let Some(turn) = mailbox.running
            && self.turns.get(&turn).is_some_and(is_it)
        {
            mailbox.running = None;
            return self.turns.remove(&turn);
        }
        if let Some(at) = mailbox.queue.iter().position(is_it) {
            return mailbox.queue.remove(at);
        }
        let slot = mailbox.deferred.iter().find(|(_, item)| is_it(item)).map(|(slot, _)| *slot)?;
        mailbox.deferred.remove(&slot)
    }
}
