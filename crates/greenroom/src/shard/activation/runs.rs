//! Runs: one-way messages that wait at one activation, handled one after the other in one frame.
//!
//! A turn that nobody waits for, that carries nothing and that has ended without a wait leaves nothing behind in its frame. So
//! the next message of this sort goes on in the same frame and the same future, and most of a turn's cost is paid once a run.

use std::rc::Rc;

use greenroom_world::Timestamp;

use super::{Activation, Phase};
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::key::Kind;
use crate::here::meter::Place;
use crate::shard::Shard;
use crate::shard::chain::Link;
use crate::shard::envelope::{Body, Envelope};
use crate::shard::mailbox::Since;
use crate::shard::turns::{Access, Job};
use crate::shard::watched::spans_are_read;

impl Shard {
    /// Lets the turn that `begin` begins go on with up to `more` messages behind its own; how many it has left.
    fn run_up_to(&self, more: u32, begin: impl FnOnce()) -> u32 {
        self.runs.more.set(more);
        begin();
        self.runs.more.take()
    }

    /// Whether another message may begin in the frame of the current turn, which has just ended.
    #[inline]
    fn may_go_on(&self) -> bool {
        let Some(frame) = self.current() else { return false };
        frame.bare
            && frame.more.get() > 0
            && !frame.entered.get()
            && frame.baggage().is_none()
            && self.fence_open()
            && !self.is_rehearsed()
    }

    /// Makes the frame of the current turn that of another one, of `method`.
    fn go_on(&self, kind: Kind, place: &Place, method: u16) {
        if let Some(frame) = self.current() {
            frame.more.set(frame.more.get() - 1);
            frame.job.set(Job { access: Access::Exclusive, method });
        }
        self.count_turn(kind, place, method);
        self.budget.set(self.budget.get().saturating_sub(1));
    }
}

impl<A: Behaviour> Activation<A> {
    /// Whether a message may wait for others that come right behind it: nothing on the way need look at it then.
    pub(super) fn gathers(&self, envelope: &Envelope<Message<A>>) -> bool {
        !A::FOREIGN
            && envelope.deadline == Timestamp::NEVER
            && matches!(envelope.chain.link, Link::None)
            && self.phase.get() == Phase::Ready
            && self.kind.gate().is_none()
            && self.waiting_len() < self.kind.mailbox_len_max()
    }

    /// Puts a message to those that have gathered, which begin right here once they are enough.
    pub(super) fn take_gathered(self: &Rc<Self>, shard: &Shard, envelope: Envelope<Message<A>>) {
        self.mailbox.push(&shard.runs.spare, Since::at(shard.now()), envelope);
        self.schedule(shard);
        let len = self.waiting_len();
        let enough = len >= GATHERED_LEN || len >= self.kind.mailbox_len_max();
        if enough && self.idle() && shard.may_begin_inline() {
            self.visit(shard);
        }
    }

    /// Begins what waits, up to a bound.
    pub(super) fn visit(self: &Rc<Self>, shard: &Shard) {
        let mut left = TURNS_A_VISIT;
        while left > 0 {
            if self.phase.get() != Phase::Ready {
                return;
            }
            if self.mailbox.is_empty() {
                break;
            }
            if self.must_reload() {
                if self.idle() {
                    self.begin_reload(shard);
                }
                return;
            }
            let next = self.mailbox.pop_if(&shard.runs.spare, |first| {
                let access = self.access_of(&first.body);
                self.free_for(access).then_some(access)
            });
            let Some((access, since, envelope)) = next else { return };
            self.left_mailbox(1);
            let queued = Some(since.elapsed(shard.now()));
            let more = if self.runs_singly() { 0 } else { left - 1 };
            let unused = shard.run_up_to(more, || self.begin(shard, access, envelope, queued));
            left -= 1 + more - unused;
        }
        if !self.mailbox.is_empty() {
            self.schedule(shard);
        } else if let (true, Some(why)) = (self.idle(), self.asked_to_end.take()) {
            self.begin_end(shard, why);
        }
    }

    /// Whether each turn must have a frame of its own: somebody watches them, or they are counted one by one.
    fn runs_singly(&self) -> bool {
        self.kind.interceptors().is_some() || self.kind.gate().is_some() || spans_are_read()
    }

    /// The message that waits next, if it may begin in the frame of the exclusive turn that has just ended.
    #[inline]
    pub(super) fn following(&self) -> Option<Message<A>> {
        if self.mailbox.is_empty() {
            return None;
        }
        Shard::with(|shard| {
            let shard = shard.filter(|shard| shard.may_go_on())?;
            if self.phase.get() != Phase::Ready || self.asked_to_end.get().is_some() || self.must_reload() {
                return None;
            }
            let (method, _, envelope) = self.mailbox.pop_if(&shard.runs.spare, |first| self.bare_method(first))?;
            shard.go_on(self.cx.id.kind, self.kind.place(), method);
            match envelope.body {
                Body::Typed(message) => Some(message),
                _ => None,
            }
        })
    }

    /// The method of a one-way message that came with nothing, and whose turn is exclusive.
    fn bare_method(&self, envelope: &mut Envelope<Message<A>>) -> Option<u16> {
        let Body::Typed(message) = &mut envelope.body else { return None };
        let method = A::Interface::method(message);
        let is_bare = envelope.chain.is_none() && self.access(method) == Access::Exclusive;
        (is_bare && !A::Interface::reply(message).awaited()).then_some(method)
    }
}

/// Turns that an activation begins before others of its shard have their go.
const TURNS_A_VISIT: u32 = 32;
/// Messages that gather before they begin on their sender's stack.
const GATHERED_LEN: usize = 32;
