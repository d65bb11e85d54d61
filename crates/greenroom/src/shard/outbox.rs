//! What is to be handed to one of the node's other shards.

use std::sync::Arc;

use super::batch::Batch;
use super::envelope::Envelope;
use super::inbox::{INBOX_LEN_MAX, NotTaken};
use super::submit::Parcel;
use super::{Item, Shard, ShardId, ShardPort, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::reference::Inner;

/// Items that wait to be handed over, in order.
#[derive(Default)]
pub(super) struct Outbox {
    items: Vec<Item>,
    /// Messages, replies and all else, those in batches counted one by one.
    waiting: usize,
}

impl Outbox {
    fn push(&mut self, item: Item) {
        self.waiting += item.weight().max(1);
        self.items.push(item);
    }

    fn hand_over(&mut self, port: ShardPort) -> Result<(), (NotTaken, Vec<Item>)> {
        self.waiting = 0;
        let handed = port.id.inbox().push_all(port.life, &mut self.items);
        handed.map_err(|why| (why, std::mem::take(&mut self.items)))
    }
}

impl Shard {
    /// Hands `item` to another shard of this process, at the latest at the end of the round.
    pub(crate) fn post(&self, to: ShardId, item: Item) {
        match self.sibling(to) {
            Some(index) => self.put_out(index, |outbox| outbox.push(item)),
            // A shard of a node that has stopped.
            None => drop(item),
        }
    }

    /// Hands a message to another shard of this node, by the slot that its actor had when a message last went there.
    pub(super) fn post_message<I: Interface>(
        &self,
        index: usize,
        slot: Slot,
        target: Arc<Inner>,
        envelope: Envelope<I::Message>,
    ) {
        let envelope = envelope.portable(self);
        if !Batch::takes::<I>() {
            return self.put_out(index, |outbox| {
                outbox.push(Item::Parcel(Box::new(Parcel::<I> { target, envelope })));
            });
        }
        self.put_out(index, |outbox| {
            if let Some(Item::Batch(batch)) = outbox.items.last_mut()
                && batch.has_room::<I>()
            {
                batch.push::<I>(target, slot, envelope);
                outbox.waiting += 1;
                return;
            }
            let mut batch = self.spare_batches.borrow_mut().pop().unwrap_or_else(|| Batch::new(self.id()));
            batch.push::<I>(target, slot, envelope);
            outbox.push(Item::Batch(batch));
        });
    }

    fn put_out(&self, index: usize, put: impl FnOnce(&mut Outbox)) {
        let waiting = {
            let outbox = &mut self.outboxes.borrow_mut()[index];
            put(outbox);
            outbox.waiting
        };
        if waiting >= HAND_OVER_LEN {
            self.hand_over_to(index);
        }
    }

    /// The place of another shard among those of this node.
    pub(crate) fn sibling(&self, id: ShardId) -> Option<usize> {
        let shards = self.port.node.shards();
        // Numbers are mostly given out in a row.
        let guess = usize::from(id.raw().wrapping_sub(shards.first()?.id.raw()));
        match shards.get(guess) {
            Some(port) if port.id == id => Some(guess),
            _ => shards.iter().position(|port| port.id == id),
        }
    }

    /// Hands what goes to the node's other shards over to them.
    pub(super) fn hand_over(&self) {
        for index in 0..self.port.node.shards().len() {
            self.hand_over_to(index);
        }
    }

    fn hand_over_to(&self, index: usize) {
        let port = self.port.node.shards()[index];
        let handed = {
            let outbox = &mut self.outboxes.borrow_mut()[index];
            if outbox.items.is_empty() {
                return;
            }
            outbox.hand_over(port)
        };
        let Err((why, refused)) = handed else { return };
        let refusal = match why {
            NotTaken::Full => Refusal::Overloaded { queue: "the inbox of a shard".into(), bound: INBOX_LEN_MAX as u64 },
            NotTaken::Closed => Refusal::Stopping,
        };
        // What is refused may be posted back at once: no outbox is borrowed here.
        for item in refused {
            match item {
                Item::Parcel(parcel)
                | Item::Passed { parcel, .. }
                | Item::Ahead { parcel, .. }
                | Item::Handed(parcel) => {
                    parcel.refuse(refusal.clone());
                }
                // That shard has ended: it has its last hook here.
                Item::Enter(enter) => self.enter_over(*enter),
                Item::Batch(mut batch) => {
                    batch.refuse(&refusal);
                    self.keep_spare(batch);
                }
                _ => {}
            }
        }
    }

    /// Gives a batch whose messages are delivered back to the shard that filled it.
    pub(super) fn give_back(&self, batch: Batch) {
        let from = self.sibling(batch.from()).map(|index| self.port.node.shards()[index]);
        if let Some(port) = from {
            port.id.inbox().give_back(port.life, batch);
        }
    }

    /// Keeps an emptied batch of this shard for the next messages.
    pub(super) fn keep_spare(&self, mut batch: Batch) {
        batch.recycle();
        let mut spare = self.spare_batches.borrow_mut();
        if spare.len() < SPARE_BATCHES_MAX {
            spare.push(batch);
        }
    }
}

/// Items for another shard that wait no longer for the end of the round: it may be idle.
const HAND_OVER_LEN: usize = 128;
/// Emptied batches that a shard keeps.
const SPARE_BATCHES_MAX: usize = 16;
