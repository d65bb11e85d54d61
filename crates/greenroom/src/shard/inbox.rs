//! What other threads hand to a shard: one lock a batch, and one wake-up only if the shard sleeps.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::Item;
use super::turns::TurnId;

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

    /// Closes the inbox and drops what is in it.
    pub(super) fn close(&self) {
        let dropped = {
            let mut state = self.lock();
            state.open = false;
            state.wakes.clear();
            state.sleeper = None;
            mem::take(&mut state.items)
        };
        drop(dropped);
    }

    /// Puts one item in.
    pub(crate) fn push(&self, life: Life, item: Item) -> Result<(), (NotTaken, Item)> {
        let sleeper = {
            let mut state = self.lock();
            if !state.open || state.life != life.0 {
                return Err((NotTaken::Closed, item));
            }
            if state.items.len() >= INBOX_LEN_MAX && item.refusable() {
                return Err((NotTaken::Full, item));
            }
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
            let room = INBOX_LEN_MAX.saturating_sub(state.items.len());
            let result = if items.len() <= room {
                state.items.append(items);
                Ok(())
            } else {
                // Replies and hand-overs always fit: they answer what was bounded when it was asked.
                let (must, may): (Vec<_>, Vec<_>) = mem::take(items).into_iter().partition(|item| !item.refusable());
                state.items.extend(must);
                let mut may = may.into_iter();
                state.items.extend(may.by_ref().take(room));
                items.extend(may);
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

    /// Takes everything: items and wakes, in the order of arrival. The vectors come in empty.
    pub(super) fn drain(&self, items: &mut Vec<Item>, wakes: &mut Vec<TurnId>) {
        if !self.filled.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut state = self.lock();
        mem::swap(&mut state.items, items);
        mem::swap(&mut state.wakes, wakes);
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

    /// Items that wait now.
    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Items that may wait at one shard before callers are refused.
pub(crate) const INBOX_LEN_MAX: usize = 65_536;
