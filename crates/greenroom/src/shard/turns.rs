//! The turns that a shard has begun, and whose calls they serve.

use std::rc::Rc;

use bytes::Bytes;
use greenroom_world::{LocalFuture, Timestamp};

use super::activation::AnyActivation;

/// A turn of one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TurnId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl TurnId {
    /// Generations have 20 bits: a waker carries them in its word.
    pub(super) const GENERATION_MAX: u32 = (1 << 20) - 1;
}

/// Who waits for a turn, and for what else: what a call must not call back into.
#[derive(Clone, Default, Debug)]
pub(crate) enum Chain {
    /// Nobody waits for it, or the caller is outside of all actors.
    #[default]
    None,
    /// A turn of the same shard waits.
    Turn(TurnId),
    /// The callers' names, the first caller first, as they travel.
    Path(Bytes),
}

/// Whether a turn excludes all others of its activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Exclusive,
    Read,
}

/// Everything known of a turn but its future.
pub(super) struct Turn {
    pub(super) activation: Rc<dyn AnyActivation>,
    pub(super) access: Access,
    pub(super) chain: Chain,
    pub(super) deadline: Timestamp,
    /// The chain that calls made by this turn carry to other shards and nodes, once one was made.
    pub(super) path: Option<Bytes>,
}

enum State {
    Free {
        next: u32,
    },
    /// Its future is on the stack. `woken` asks for another poll.
    Running {
        turn: Turn,
        woken: bool,
    },
    /// `queued` for a poll, or waiting.
    Parked {
        turn: Turn,
        future: LocalFuture,
        queued: bool,
    },
}

struct Slot {
    generation: u32,
    state: State,
}

/// A slab of turns.
#[derive(Default)]
pub(super) struct Turns {
    slots: Vec<Slot>,
    free: Option<u32>,
}

impl Turns {
    /// Enters a turn whose future is about to be polled.
    pub(super) fn begin(&mut self, turn: Turn) -> TurnId {
        let state = State::Running { turn, woken: false };
        match self.free {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                if let State::Free { next } = slot.state {
                    self.free = (next != u32::MAX).then_some(next);
                }
                slot.state = state;
                TurnId { index, generation: slot.generation }
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 turns");
                self.slots.push(Slot { generation: 0, state });
                TurnId { index, generation: 0 }
            }
        }
    }

    /// Asks for a poll. `true` if the turn must now be put into the queue.
    pub(super) fn wake(&mut self, id: TurnId) -> bool {
        match self.slot(id) {
            Some(Slot { state: State::Running { woken, .. }, .. }) => {
                *woken = true;
                false
            }
            Some(Slot { state: State::Parked { queued, .. }, .. }) => !std::mem::replace(queued, true),
            _ => false,
        }
    }

    /// Takes the future of a queued turn out for a poll.
    pub(super) fn resume(&mut self, id: TurnId) -> Option<LocalFuture> {
        let slot = self.slot(id)?;
        match std::mem::replace(&mut slot.state, State::Free { next: u32::MAX }) {
            State::Parked { turn, future, .. } => {
                slot.state = State::Running { turn, woken: false };
                Some(future)
            }
            other => {
                slot.state = other;
                None
            }
        }
    }

    /// Puts the future of a polled turn back. `true` if it was woken meanwhile and must be queued.
    pub(super) fn park(&mut self, id: TurnId, future: LocalFuture) -> bool {
        let Some(slot) = self.slot(id) else { return false };
        match std::mem::replace(&mut slot.state, State::Free { next: u32::MAX }) {
            State::Running { turn, woken } => {
                slot.state = State::Parked { turn, future, queued: woken };
                woken
            }
            other => {
                slot.state = other;
                false
            }
        }
    }

    /// Ends a turn.
    pub(super) fn end(&mut self, id: TurnId) -> Option<Turn> {
        let free = self.free.unwrap_or(u32::MAX);
        let slot = self.slot(id)?;
        slot.generation = (slot.generation + 1) & TurnId::GENERATION_MAX;
        let state = std::mem::replace(&mut slot.state, State::Free { next: free });
        self.free = Some(id.index);
        match state {
            State::Running { turn, .. } | State::Parked { turn, .. } => Some(turn),
            State::Free { .. } => None,
        }
    }

    pub(super) fn find(&self, id: TurnId) -> Option<&Turn> {
        match self.slots.get(id.index as usize) {
            Some(Slot { generation, state: State::Running { turn, .. } | State::Parked { turn, .. } })
                if *generation == id.generation =>
            {
                Some(turn)
            }
            _ => None,
        }
    }

    pub(super) fn find_mut(&mut self, id: TurnId) -> Option<&mut Turn> {
        match self.slot(id) {
            Some(Slot { state: State::Running { turn, .. } | State::Parked { turn, .. }, .. }) => Some(turn),
            _ => None,
        }
    }

    fn slot(&mut self, id: TurnId) -> Option<&mut Slot> {
        self.slots
            .get_mut(id.index as usize)
            .filter(|slot| slot.generation == id.generation && !matches!(slot.state, State::Free { .. }))
    }
}
