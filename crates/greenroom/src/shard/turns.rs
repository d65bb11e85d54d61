//! The turns that a shard has begun, and whose calls they serve.
//!
//! Most turns end at their first poll. So a turn begins as a [`Frame`] on the stack and a number; what is known of it
//! is written into the slab only when somebody needs to find it by its number, at the latest when it must wait.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_world::{LocalFuture, Timestamp};

use super::activation::HasTurns;
use super::baggage::{Baggage, Load};
use super::calls::CallSlot;
use super::cancel::CallKey;
use super::chain::{CallPath, Link};

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

/// Whether a turn excludes all others of its activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Exclusive,
    Read,
}

/// What a turn does: the method's number in its interface, and how it shares the activation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) access: Access,
    pub(crate) method: u16,
}

/// Where the reply of a turn goes that was begun on its caller's stack. Other replies know their way themselves.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// It has been given, or the reply knows; the call that the turn serves, if somebody waits for it.
    Elsewhere(CallKey),
    /// Into the caller's own `Option<Result<_, _>>`, as long as the caller's poll lasts.
    Stack(*mut ()),
    /// To a call that the caller waits for.
    Call(CallSlot),
}

/// A turn that is being polled.
pub(super) struct Frame {
    pub(super) id: TurnId,
    pub(super) activation: Rc<dyn HasTurns>,
    pub(super) job: Cell<Job>,
    pub(super) deadline: Timestamp,
    /// Tells the reply that belongs to `answer` from all others; 0 if there is none.
    pub(super) serial: u64,
    pub(super) answer: Cell<Answer>,
    /// Who waits, until the slab knows; `None` if it is the turn below on the stack.
    pub(super) link: Cell<Option<Link>>,
    /// What the turn's message carries, and so the calls that it makes.
    pub(super) baggage: Cell<Load>,
    /// Whether the slab knows the turn.
    pub(super) entered: Cell<bool>,
    /// Whether it came with nothing, and nobody waits for it.
    pub(super) bare: bool,
    /// When it began, if it is timed; else never.
    pub(super) timed: Timestamp,
    /// Messages that may still follow in this frame, if it is bare.
    pub(super) more: Cell<u32>,
    /// The turn below on the stack.
    pub(super) below: Cell<*const Frame>,
}

impl Frame {
    /// What the turn's message carries.
    #[inline]
    pub(super) fn baggage(&self) -> Option<&Arc<Baggage>> {
        // SAFETY: frames stay on one thread, and nobody sets the cell while what is borrowed here is looked at: who gets
        // it clones it before any other code runs.
        unsafe { (*self.baggage.as_ptr()).as_ref() }
    }
}

/// Everything that the slab knows of a turn but its future.
pub(super) struct Turn {
    pub(super) activation: Rc<dyn HasTurns>,
    pub(super) job: Job,
    /// When it began, if it is timed; else never.
    pub(super) timed: Timestamp,
    /// When the slab was told of it, which is at its first wait.
    pub(super) began: Timestamp,
    /// Whether the log has said that it runs for long.
    pub(super) told: bool,
    pub(super) link: Link,
    /// While the turn waits; the frame has it while it is polled.
    pub(super) baggage: Load,
    pub(super) deadline: Timestamp,
    pub(super) serial: u64,
    pub(super) answer: Answer,
    /// The chain that calls made by this turn carry to other shards and nodes, once one was made.
    pub(super) path: Option<CallPath>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    OnStack,
    /// On the stack, and to be polled again.
    Woken,
    Waiting,
    Queued,
}

struct Slot {
    generation: u32,
    state: State,
    /// The next free slot.
    next: u32,
    turn: Option<Turn>,
    future: Option<LocalFuture>,
}

/// A slab of turns.
pub(super) struct Turns {
    slots: Vec<Slot>,
    free: u32,
}

impl Default for Turns {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }
}

impl Turns {
    /// A number for a turn that is about to be polled.
    #[inline]
    pub(super) fn begin(&mut self) -> TurnId {
        match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let id = TurnId { index: self.free, generation: slot.generation };
                slot.state = State::OnStack;
                self.free = slot.next;
                id
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 turns");
                assert!(index < NONE, "fewer than 2^32 - 1 turns at once");
                let slot = Slot { generation: 0, state: State::OnStack, next: NONE, turn: None, future: None };
                self.slots.push(slot);
                TurnId { index, generation: 0 }
            }
        }
    }

    /// Writes down what is known of a turn on the stack.
    pub(super) fn enter(&mut self, id: TurnId, turn: Turn) {
        if let Some(slot) = self.slot(id) {
            slot.turn = Some(turn);
        }
    }

    /// Asks for a poll. `true` if the turn must now be put into the queue.
    pub(super) fn wake(&mut self, id: TurnId) -> bool {
        let Some(slot) = self.slot(id) else { return false };
        match slot.state {
            State::OnStack => slot.state = State::Woken,
            State::Waiting => {
                slot.state = State::Queued;
                return true;
            }
            State::Woken | State::Queued | State::Free => {}
        }
        false
    }

    /// Takes the future of a queued turn out for a poll.
    pub(super) fn resume(&mut self, id: TurnId) -> Option<(Frame, LocalFuture)> {
        let slot = self.slot(id)?;
        let future = slot.future.take()?;
        let turn = slot.turn.as_mut()?;
        slot.state = State::OnStack;
        let frame = Frame {
            id,
            activation: turn.activation.clone(),
            job: Cell::new(turn.job),
            deadline: turn.deadline,
            serial: turn.serial,
            answer: Cell::new(turn.answer),
            link: Cell::new(None),
            baggage: Cell::new(turn.baggage.take()),
            entered: Cell::new(true),
            bare: false,
            timed: turn.timed,
            more: Cell::new(0),
            below: Cell::new(std::ptr::null()),
        };
        Some((frame, future))
    }

    /// Puts the future of a turn away that has been entered. `true` if it was woken meanwhile and must be queued.
    pub(super) fn park(&mut self, frame: &Frame, future: LocalFuture) -> bool {
        let Some(slot) = self.slot(frame.id) else { return false };
        if let Some(turn) = &mut slot.turn {
            turn.answer = frame.answer.get();
            turn.baggage = frame.baggage.take();
        }
        slot.future = Some(future);
        let woken = slot.state == State::Woken;
        slot.state = if woken { State::Queued } else { State::Waiting };
        woken
    }

    /// Ends a turn: its number is free, and what was known of it comes back to be dropped when no borrow is held.
    pub(super) fn end(&mut self, id: TurnId) -> Option<Turn> {
        let turn = self.slot(id)?.turn.take();
        self.free(id);
        turn
    }

    /// Ends a turn of which nothing is known.
    pub(super) fn free(&mut self, id: TurnId) {
        let free = self.free;
        if let Some(slot) = self.slot(id) {
            slot.generation = (slot.generation + 1) & TurnId::GENERATION_MAX;
            slot.state = State::Free;
            slot.next = free;
            self.free = id.index;
        }
    }

    /// The turns of the activation in `slot`.
    pub(super) fn of(&self, slot: super::Slot) -> Vec<TurnId> {
        let turns = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, turn)| turn.turn.as_ref().is_some_and(|known| known.activation.slot() == slot));
        turns.map(|(index, turn)| TurnId { index: index as u32, generation: turn.generation }).collect()
    }

    /// Takes the future of a turn out that waits: it is never polled again.
    pub(super) fn cut(&mut self, id: TurnId) -> Option<LocalFuture> {
        self.slot(id)?.future.take()
    }

    pub(super) fn find(&self, id: TurnId) -> Option<&Turn> {
        let slot = self.slots.get(id.index as usize)?;
        slot.turn.as_ref().filter(|_| slot.generation == id.generation)
    }

    /// What the slab knows of the turns that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.slots.iter().filter_map(|slot| slot.turn.as_ref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Turn> {
        self.slots.iter_mut().filter_map(|slot| slot.turn.as_mut())
    }

    pub(super) fn find_mut(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.slot(id)?.turn.as_mut()
    }

    /// Says who waits from now on for the turn of the activation in `slot` that does `job`.
    pub(super) fn set_callers(&mut self, slot: super::Slot, job: Job, callers: Link) {
        let is_it = |turn: &&mut Turn| turn.activation.slot() == slot && turn.job.method == job.method;
        if let Some(turn) = self.iter_mut().find(is_it) {
            (turn.link, turn.path) = (callers, None);
        }
    }

    /// All turns that wait.
    #[cfg(feature = "rehearsal")]
    pub(super) fn all(&self) -> Vec<TurnId> {
        let turns = self.slots.iter().enumerate().filter(|(_, slot)| slot.state != State::Free);
        turns.map(|(index, slot)| TurnId { index: index as u32, generation: slot.generation }).collect()
    }

    /// Gives numbers out as if none had been, now that there are no turns.
    #[cfg(feature = "rehearsal")]
    pub(super) fn begin_anew(&mut self) {
        self.free = NONE;
        for (index, slot) in self.slots.iter_mut().enumerate().rev() {
            slot.next = std::mem::replace(&mut self.free, index as u32);
        }
    }

    fn slot(&mut self, id: TurnId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.index as usize)?;
        (slot.generation == id.generation && slot.state != State::Free).then_some(slot)
    }
}

const NONE: u32 = u32::MAX;
