//! What other threads hand to a shard: one lock a batch, and one wake-up only if the shard sleeps.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::Item;
use super::batch::Batch;
use super::turns::TurnId;
use crate::actor::error::Refusal;

/// A bounded queue with many writers and one reader.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// Whether the state holds something: lets the shard look without the lock.
    filled: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Rises each time that a shard opens the inbox. Who holds an older one speaks to a shard that is gone.
    life: u32,
    open: bool,
    items: Vec<Item>,
    wakes: Vec<TurnId>,
    /// Emptied batches of this shard: no reason to wake it.
    returned: Vec<Batch>,
    /// Messages among the items.
    messages: usize,
    /// Set while the shard sleeps.
    sleeper: Option<Waker>,
}

/// Which of the shards that had this inbox is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(u32);

/// Why nothing was put into an inbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotTaken {
    Full,
    Closed,
}

impl Inbox {
    /// Opens the inbox for the next shard.
    pub(super) fn open(&self) -> Life {
        let mut state = self.lock();
        state.life = state.life.wrapping_add(1);
        state.open = true;
        Life(state.life)
    }

    /// Closes the inbox. The messages in it are refused.
    pub(super) fn close(&self) {
        let (items, returned) = {
            let mut state = self.lock();
            state.open = false;
            state.wakes.clear();
            state.sleeper = None;
            state.messages = 0;
            (mem::take(&mut state.items), mem::take(&mut state.returned))
        };
        drop(returned);
        for item in items {
            match item {
                Item::Parcel(parcel)
                | Item::Passed { parcel, .. }
                | Item::Ahead { parcel, .. }
                | Item::Handed(parcel) => {
                    parcel.refuse(Refusal::Stopping);
                }
                Item::Enter(enter) => enter.refuse(Refusal::Stopping),
                _ => {}
            }
        }
    }

    /// Puts one item in.
    pub(crate) fn push(&self, life: Life, item: Item) -> Result<(), (NotTaken, Item)> {
        let sleeper = {
            let mut state = self.lock();
            if !state.open || state.life != life.0 {
                return Err((NotTaken::Closed, item));
            }
            let weight = item.weight();
            if weight > 0 && state.messages >= INBOX_LEN_MAX {
                return Err((NotTaken::Full, item));
            }
            state.messages += weight;
            state.items.push(item);
            self.filled.store(true, Ordering::Release);
            state.sleeper.take()
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }

    /// Moves as many of `items` in as fit, in order; what did not fit stays.
    pub(super) fn push_all(&self, life: Life, items: &mut Vec<Item>) -> Result<(), NotTaken> {
        let (sleeper, result) = {
            let mut state = self.lock();
            if !state.open || state.life != life.0 {
                return Err(NotTaken::Closed);
            }
            let messages: usize = items.iter().map(Item::weight).sum();
            let result = if state.messages + messages <= INBOX_LEN_MAX {
                state.messages += messages;
                state.items.append(items);
                Ok(())
            } else {
                // Replies and hand-overs always fit: they answer what was bounded when it was asked.
                for item in mem::take(items) {
                    let weight = item.weight();
                    if weight == 0 || state.messages + weight <= INBOX_LEN_MAX {
                        state.messages += weight;
                        state.items.push(item);
                    } else {
                        items.push(item);
                    }
                }
                if items.is_empty() { Ok(()) } else { Err(NotTaken::Full) }
            };
            self.filled.store(true, Ordering::Release);
            (state.sleeper.take(), result)
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        result
    }

    /// Asks for a poll of `turn`.
    pub(super) fn push_wake(&self, turn: TurnId) {
        let sleeper = {
            let mut state = self.lock();
            if !state.open {
                return;
            }
            state.wakes.push(turn);
            self.filled.store(true, Ordering::Release);
            state.sleeper.take()
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Whether there may be something to drain.
    pub(super) fn filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Gives an emptied batch back to the shard that filled it.
    pub(super) fn give_back(&self, life: Life, batch: Batch) {
        let mut state = self.lock();
        if state.open && state.life == life.0 {
            state.returned.push(batch);
        }
    }

    /// Takes everything: items and wakes, in the order of arrival. The vectors come in empty.
    pub(super) fn drain(&self, items: &mut Vec<Item>, wakes: &mut Vec<TurnId>, returned: &mut Vec<Batch>) {
        if !self.filled.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut state = self.lock();
        mem::swap(&mut state.items, items);
        mem::swap(&mut state.wakes, wakes);
        mem::swap(&mut state.returned, returned);
        state.messages = 0;
    }

    /// Goes to sleep unless something has come: `false` then. The next push wakes `waker`.
    pub(super) fn sleep(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if !state.items.is_empty() || !state.wakes.is_empty() {
            return false;
        }
        state.sleeper = Some(waker.clone());
        true
    }

    /// Whether the shard of that life is gone.
    pub(crate) fn is_closed(&self, life: Life) -> bool {
        let state = self.lock();
        !state.open || state.life != life.0
    }

    /// Messages that wait now.
    pub(crate) fn len(&self) -> usize {
        self.lock().messages
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages that may wait at one shard before callers are refused.
pub(crate) const INBOX_LEN_MAX: usize = 65_536;
