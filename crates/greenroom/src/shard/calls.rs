//! The calls that this shard's turns wait for: a slab whose slots are the calls' names on the wire.
//!
//! The reply is kept here and not in the caller's future, so that a caller that is dropped on another thread leaves
//! nothing behind but a slot that its deadline clears.

use std::task::Waker;

use bytes::Bytes;
use greenroom_protocols::node::NodeId;
use greenroom_wire::Status;
use greenroom_world::Timestamp;

use super::cancel::CallKey;
use super::erased::Erased;
use super::turns::TurnId;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::reply::AnyReply;
use crate::actor::spent::Spent;

/// The name of a call among its shard's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallSlot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl CallSlot {
    /// The same in one word.
    pub(super) fn packed(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

/// What a call ended with.
pub(crate) enum Completion {
    /// The handler's `Result<T, E>`, moved.
    Value(Erased),
    /// The runtime's word.
    Failed(Box<Failure>),
    /// A reply as bytes, to be decoded by who waits for it, and the node that gave it if it is another one.
    Wire { status: Status, payload: Bytes, from: Option<NodeId> },
}

/// Who is told when the reply is there.
pub(super) enum Waiter {
    /// Nobody yet: the caller's future has not been polled since.
    None,
    /// A turn of this shard.
    Turn(TurnId),
    /// A part of a turn with a waker of its own.
    Waker(Waker),
    /// Not a future: the reply goes on to where it was asked for. The call is for the actor with this hash.
    Relay(Box<dyn AnyReply>, u64),
    /// The call is a mark on the way to the actor with this hash.
    Mark(u64),
}

enum State {
    Free { next: u32 },
    Waiting { waiter: Waiter, deadline: Timestamp, peer: Option<NodeId> },
    Done(Completion),
}

struct Slot {
    generation: u32,
    state: State,
}

/// What is to be done once a call has ended, when no borrow is held.
#[must_use]
pub(super) enum Then {
    Nothing,
    WakeTurn(TurnId),
    Wake(Waker),
    /// The call was for the actor with this hash.
    Relay {
        reply: Box<dyn AnyReply>,
        call: CallSlot,
        hash: u64,
        completion: Completion,
    },
    /// The call was a mark on the way to the actor with this hash.
    Marked {
        call: CallSlot,
        hash: u64,
        completion: Completion,
    },
}

/// The calls in flight of one shard.
pub(super) struct Calls {
    slots: Vec<Slot>,
    free: Option<u32>,
    len: usize,
    /// No deadline is before this. It may be too early: then a sweep finds nothing, and knows better.
    next_sweep: Timestamp,
}

impl Default for Calls {
    fn default() -> Self {
        Self { slots: Vec::new(), free: None, len: 0, next_sweep: Timestamp::NEVER }
    }
}

impl Calls {
    /// Opens a slot; gives the waiter back when [`CALLS_MAX`] are open.
    pub(super) fn open(&mut self, waiter: Waiter, deadline: Timestamp) -> Result<CallSlot, Waiter> {
        if !self.has_room() {
            return Err(waiter);
        }
        self.len += 1;
        self.next_sweep = self.next_sweep.min(deadline);
        let state = State::Waiting { waiter, deadline, peer: None };
        Ok(match self.free {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                if let State::Free { next } = slot.state {
                    self.free = (next != u32::MAX).then_some(next);
                }
                slot.state = state;
                CallSlot { index, generation: slot.generation }
            }
            None => {
                let index = self.slots.len() as u32;
                self.slots.push(Slot { generation: 0, state });
                CallSlot { index, generation: 0 }
            }
        })
    }

    /// Gives places out as if none had been, now that no call is open.
    #[cfg(feature = "rehearsal")]
    pub(super) fn begin_anew(&mut self) {
        self.slots.clear();
        (self.free, self.next_sweep) = (None, Timestamp::NEVER);
    }

    /// Whether another call may be opened.
    pub(super) fn has_room(&self) -> bool {
        self.len < CALLS_MAX
    }

    /// Notes that the call went out to `peer`: it fails when the connection does.
    pub(super) fn sent_to(&mut self, call: CallSlot, to: NodeId) {
        if let Some(Slot { state: State::Waiting { peer, .. }, .. }) = self.slot(call) {
            *peer = Some(to);
        }
    }

    /// Ends a call. A call that is not open any more is left alone.
    pub(super) fn complete(&mut self, call: CallSlot, completion: Completion) -> Then {
        let Some(slot) = self.slot(call) else { return Then::Nothing };
        if !matches!(slot.state, State::Waiting { .. }) {
            return Then::Nothing;
        }
        let State::Waiting { waiter, .. } = std::mem::replace(&mut slot.state, State::Free { next: u32::MAX }) else {
            return Then::Nothing;
        };
        let then = match waiter {
            Waiter::Relay(reply, hash) => {
                self.close(call);
                return Then::Relay { reply, call, hash, completion };
            }
            Waiter::Mark(hash) => {
                self.close(call);
                return Then::Marked { call, hash, completion };
            }
            Waiter::Turn(turn) => Then::WakeTurn(turn),
            Waiter::Waker(waker) => Then::Wake(waker),
            Waiter::None => Then::Nothing,
        };
        slot.state = State::Done(completion);
        then
    }

    /// Takes the result if it is there; otherwise notes who waits now. `None` for a call that is not open.
    pub(super) fn poll(&mut self, call: CallSlot, waiter: impl FnOnce() -> Waiter) -> Option<Option<Completion>> {
        let slot = self.slot(call)?;
        match &mut slot.state {
            State::Waiting { waiter: old, .. } => {
                *old = waiter();
                Some(None)
            }
            State::Done(_) => {
                let State::Done(completion) = std::mem::replace(&mut slot.state, State::Free { next: u32::MAX }) else {
                    return None;
                };
                self.close(call);
                Some(Some(completion))
            }
            State::Free { .. } => None,
        }
    }

    /// Forgets a call: its reply, should it come, goes nowhere.
    pub(super) fn close(&mut self, call: CallSlot) {
        let free = self.free.unwrap_or(u32::MAX);
        let Some(slot) = self.slots.get_mut(call.index as usize) else { return };
        if slot.generation != call.generation {
            return;
        }
        slot.generation = slot.generation.wrapping_add(1);
        slot.state = State::Free { next: free };
        self.free = Some(call.index);
        self.len -= 1;
    }

    /// Forgets a call; if its reply had not come, when that was due and the node that it went to.
    pub(super) fn abandon(&mut self, call: CallSlot) -> Option<(Timestamp, Option<NodeId>)> {
        let waited = match self.slot(call)?.state {
            State::Waiting { deadline, peer, .. } => Some((deadline, peer)),
            State::Done(_) | State::Free { .. } => None,
        };
        self.close(call);
        waited
    }

    /// Forgets the call that stands for `key` on the way to another node: its slot, and that node.
    pub(super) fn abandon_relay(&mut self, key: CallKey) -> Option<(CallSlot, Option<NodeId>)> {
        let relays = |slot: &Slot| match &slot.state {
            State::Waiting { waiter: Waiter::Relay(reply, _), peer, .. } if reply.key().0 == key => Some(*peer),
            _ => None,
        };
        let (index, peer) = self.slots.iter().enumerate().find_map(|(index, slot)| Some((index, relays(slot)?)))?;
        let call = CallSlot { index: index as u32, generation: self.slots[index].generation };
        self.close(call);
        Some((call, peer))
    }

    /// Ends the calls whose deadlines have passed. Costs a look at each open call, but only when a deadline may have.
    /// `name` gives the names of nodes, for the errors.
    pub(super) fn sweep(&mut self, now: Timestamp, name: impl Fn(NodeId) -> Option<String>) -> Vec<Then> {
        if now < self.next_sweep {
            return Vec::new();
        }
        let mut late = Vec::new();
        let mut next = Timestamp::NEVER;
        for (index, slot) in self.slots.iter().enumerate() {
            if let State::Waiting { deadline, peer, .. } = slot.state {
                if deadline <= now {
                    late.push((CallSlot { index: index as u32, generation: slot.generation }, peer));
                } else {
                    next = next.min(deadline);
                }
            }
        }
        self.next_sweep = next;
        let ends = late.into_iter().map(|(call, peer)| {
            let spent = Spent { node: peer.and_then(&name), ..Spent::default() };
            self.complete(call, Completion::Failed(Box::new(Doubt::TimedOut(Box::new(spent)).into())))
        });
        ends.collect()
    }

    /// When [`Calls::sweep`] next has something to do.
    pub(super) fn next_sweep(&self) -> Option<Timestamp> {
        (self.len > 0 && self.next_sweep != Timestamp::NEVER).then_some(self.next_sweep)
    }

    /// Ends the calls that went out to `peer`, as the connection broke.
    pub(super) fn peer_lost(&mut self, peer: NodeId, failure: &Failure) -> Vec<Then> {
        let lost: Vec<_> = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| matches!(slot.state, State::Waiting { peer: Some(to), .. } if to == peer))
            .map(|(index, slot)| CallSlot { index: index as u32, generation: slot.generation })
            .collect();
        lost.into_iter().map(|call| self.complete(call, Completion::Failed(Box::new(failure.clone())))).collect()
    }

    /// What a caller is told when the table is full.
    pub(super) fn full() -> Refusal {
        Refusal::Overloaded { queue: "the shard's table of calls".into(), bound: CALLS_MAX as u64 }
    }

    /// Whether the end of `call` has not come.
    #[cfg(feature = "rehearsal")]
    pub(super) fn is_open(&self, call: CallSlot) -> bool {
        let found = self.slots.get(call.index as usize).filter(|slot| slot.generation == call.generation);
        found.is_some_and(|slot| matches!(slot.state, State::Waiting { .. }))
    }

    /// Calls in flight.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn slot(&mut self, call: CallSlot) -> Option<&mut Slot> {
        self.slots.get_mut(call.index as usize).filter(|slot| slot.generation == call.generation)
    }
}

/// Calls that may be in flight at once from one shard.
const CALLS_MAX: usize = 1 << 20;
