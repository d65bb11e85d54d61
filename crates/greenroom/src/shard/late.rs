//! Messages whose time runs out while they wait: they are refused a little early, so that their callers still hear of it,
//! and of what kept them.

use std::time::Duration;

use greenroom_world::Timestamp;

use super::cancel::CallKey;
use super::turns::{Access, Job};
use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::actor::reply::{AnyReply, refused};
use crate::actor::spent::{Behind, Spent};

/// When a message must begin, that has waited for `waited` and whose caller waits until `deadline`: what begins later could
/// hardly end in time.
pub(crate) fn last_moment(waited: Duration, now: Timestamp, deadline: Timestamp) -> Timestamp {
    if deadline == Timestamp::NEVER {
        return deadline;
    }
    let limit = waited + deadline.since(now);
    deadline - (limit / EARLY_PART).min(EARLY_MAX)
}

/// The job of the `activated` and `deactivating` hooks.
pub(super) const HOOK: Job = Job { access: Access::Exclusive, method: u16::MAX };

impl Shard {
    /// The world's clock, for who must not go by the round's.
    #[inline]
    pub(crate) fn clock(&self) -> Timestamp {
        self.port.node.world().now()
    }

    /// Looks at what waits at the activation in `slot` when `due` has passed.
    pub(super) fn watch(&self, slot: Slot, due: Timestamp) {
        self.late.borrow_mut().insert(due, slot);
    }

    /// Refuses what has waited too long; when to look again.
    pub(super) fn look_at_late(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.late.borrow_mut().take_due(now, LOOKS_A_ROUND);
        for slot in due {
            if let Some(activation) = self.activation(slot) {
                activation.check_late(self, now);
            }
        }
        self.late.borrow().next()
    }

    /// The call that a message's turn serves, if that may begin now: its time has not run out, nor has the lease, and its caller
    /// still waits. Otherwise the reply has been seen to.
    pub(super) fn call_in_time(
        &self,
        id: &ActorId,
        method: u16,
        reply: &mut dyn AnyReply,
        deadline: Timestamp,
        queued: Option<Duration>,
    ) -> Option<CallKey> {
        // Turns before it in this round may have taken their time: so the clock is asked, not the round.
        let now = if deadline == Timestamp::NEVER { None } else { Some(self.clock()) };
        if now.is_some_and(|now| deadline <= now) {
            let refusal = self.expired(Spent { queued, ..Spent::default() });
            self.note_refused(id, method, &refusal);
            reply.take().finish(refused(refusal));
            return None;
        }
        if !now.map_or_else(|| self.fence_open(), |now| self.port().node.fence_open_at(now)) {
            reply.take().finish(refused(Refusal::Fenced));
            return None;
        }
        let call = reply.key().0;
        if self.gives_up(call) {
            reply.disarm();
            return None;
        }
        Some(call)
    }

    /// The refusal of a message that ran out of time here.
    #[cold]
    pub(super) fn expired(&self, spent: Spent) -> Refusal {
        Refusal::Expired(Box::new(Spent { node: Some(self.port.node.name().to_owned()), ..spent }))
    }

    /// The refusal of a message that has waited as the one in this place of its mailbox, and whose caller would have waited for
    /// `left` more.
    pub(super) fn too_late(&self, queued: Duration, left: Duration, place: usize, behind: &Option<Behind>) -> Refusal {
        let (queued, limit) = (Some(queued), Some(queued + left));
        self.expired(Spent { queued, limit, behind: behind.clone(), ahead: place as u64, ..Spent::default() })
    }

    /// The turn of the activation in `slot` that has run longest.
    pub(super) fn behind(&self, slot: Slot) -> Option<Behind> {
        let turns = self.turns.borrow();
        let longest = turns.iter().filter(|turn| turn.activation.slot() == slot).min_by_key(|turn| turn.began)?;
        let running = Some(self.clock().since(longest.began));
        Some(Behind { turn: longest.activation.name_of(longest.job.method), running })
    }
}

/// The part of its time that a message gives up, if it is still waiting then.
const EARLY_PART: u32 = 8;
/// The most of it.
const EARLY_MAX: Duration = Duration::from_millis(100);
/// Activations that one look may visit.
const LOOKS_A_ROUND: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_gives_up_little_of_its_time() {
        let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
        assert_eq!(last_moment(Duration::ZERO, at(0), at(80)), at(70));
        assert_eq!(last_moment(Duration::ZERO, at(0), at(10_000)), at(9_900));
        assert_eq!(
            last_moment(Duration::from_millis(60), at(60), at(80)),
            at(70),
            "it does not move while time passes"
        );
        assert_eq!(last_moment(Duration::ZERO, at(5), Timestamp::NEVER), Timestamp::NEVER);
    }
}
