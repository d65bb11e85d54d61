//! Which shards this process has, and the wakers of their turns.
//!
//! A turn's waker is one word: shard, turn and generation. Cloning and dropping it costs nothing, and waking a turn of
//! the shard that is running takes no lock. Shard numbers and their inboxes are used again, never freed, so that a stale
//! waker finds an inbox, whatever has become of its turn; it causes at most a poll that finds nothing new.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::Shard;
use super::inbox::Inbox;
use super::slot::Slot;
use super::turns::TurnId;

/// A shard of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ShardId(pub(super) u16);

impl ShardId {
    pub(crate) const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> u16 {
        self.0
    }

    /// This shard's `slot`, in the lower 62 bits of a word.
    #[inline]
    pub(crate) fn packed(self, slot: Slot) -> u64 {
        (u64::from(self.0) << 50) | (u64::from(slot.generation) << 32) | u64::from(slot.index)
    }

    /// The shard and the slot that are in a word's lower 62 bits.
    #[inline]
    pub(crate) fn unpacked(word: u64) -> (ShardId, Slot) {
        let slot = Slot { index: word as u32, generation: (word >> 32) as u32 & Slot::GENERATION_MAX };
        (ShardId::from_raw((word >> 50) as u16 & 0xFFF), slot)
    }

    /// The inbox of the shard that has this number now.
    pub(crate) fn inbox(self) -> &'static Inbox {
        INBOXES[usize::from(self.0)].get_or_init(Inbox::default)
    }
}

/// A number that no living shard has.
///
/// # Panics
/// When [`SHARDS_MAX`] shards are alive.
pub(super) fn claim() -> ShardId {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let number = match numbers.free.pop() {
        Some(number) => number,
        None => {
            assert!(usize::from(numbers.next) < SHARDS_MAX, "more than {SHARDS_MAX} shards in one process");
            numbers.next += 1;
            numbers.next - 1
        }
    };
    ShardId(number)
}

/// Gives the number back. What is still in the inbox is dropped.
pub(super) fn release(id: ShardId) {
    id.inbox().close();
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).free.push(id.0);
}

struct Numbers {
    next: u16,
    free: Vec<u16>,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { next: 0, free: Vec::new() });
static INBOXES: [OnceLock<Inbox>; SHARDS_MAX] = [const { OnceLock::new() }; SHARDS_MAX];

/// The waker of `turn` on `shard`.
pub(super) fn waker(shard: ShardId, turn: TurnId) -> Waker {
    // SAFETY: the vtable's functions take the data as a number and own nothing.
    unsafe { Waker::from_raw(raw(word(shard, turn))) }
}

fn raw(word: usize) -> RawWaker {
    RawWaker::new(std::ptr::without_provenance(word), &VTABLE)
}

static VTABLE: RawWakerVTable =
    RawWakerVTable::new(|data| raw(data.addr()), |data| wake(data.addr()), |data| wake(data.addr()), |_| {});

fn word(shard: ShardId, turn: TurnId) -> usize {
    (usize::from(shard.0) << 52)
        | ((turn.generation as usize & TurnId::GENERATION_MAX as usize) << 32)
        | turn.index as usize
}

fn wake(word: usize) {
    let shard = ShardId((word >> 52) as u16);
    let turn = TurnId { index: word as u32, generation: (word >> 32) as u32 & TurnId::GENERATION_MAX };
    Shard::with(|current| match current {
        Some(current) if current.id() == shard => current.wake_turn(turn),
        _ => shard.inbox().push_wake(turn),
    });
}

/// Shards that may be alive in one process; their numbers have 12 bits.
const SHARDS_MAX: usize = 4096;
