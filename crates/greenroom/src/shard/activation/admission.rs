//! Which messages begin a turn, which wait, and how long.

use std::rc::Rc;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::{Activation, HasTurns, Phase, WATCH_MAX};
use crate::actor::error::{Failure, Refusal};
use crate::actor::interface::{Behaviour, Interface, Message};
use crate::actor::key::ActorId;
use crate::here::gate::Gate;
use crate::shard::Shard;
use crate::shard::chain::Chain;
use crate::shard::envelope::{Body, Envelope};
use crate::shard::late::{self};
use crate::shard::mailbox::Since;
use crate::shard::turns::Access;

/// What becomes of a message.
pub(super) enum Admission {
    Begin,
    Wait,
    TooLate,
}

/// How an activation stands as a message comes, its type apart.
struct Standing<'a> {
    id: &'a ActorId,
    phase: Phase,
    gate: Option<&'a Gate>,
    /// Whether the message's turn could begin now, with nothing before it.
    free: bool,
    /// Whether an exclusive turn runs.
    exclusive: bool,
    /// Messages that wait.
    waiting: usize,
    mailbox_len_max: usize,
}

impl Standing<'_> {
    fn admit(&self, shard: &Shard, access: Access, chain: &Chain) -> Result<Admission, Failure> {
        if self.phase == Phase::Gone {
            return Ok(Admission::TooLate);
        }
        // A message that comes during the end is for the next activation.
        if let Some(gate) = self.gate.filter(|gate| gate.is_full() && self.phase != Phase::Ending) {
            return Err(gate.refusal(self.id.kind.name(), shard.port.node.name()).into());
        }
        if self.free {
            return Ok(Admission::Begin);
        }
        // It cannot begin at once. If the turn or the hook that keeps it from that waits for it in turn, it never could.
        if let Some(path) = shard.cycle(&chain.link, self.id) {
            // A read beside the reads that wait for it may overtake writes that wait for those reads.
            return match access {
                Access::Read if self.phase == Phase::Ready && !self.exclusive => Ok(Admission::Begin),
                _ => Err(Failure::Cycle(path)),
            };
        }
        self.admit_to_wait()
    }

    fn admit_to_wait(&self) -> Result<Admission, Failure> {
        if self.waiting >= self.mailbox_len_max {
            let queue = format!("the mailbox of {}", self.id);
            return Err(Refusal::Overloaded { queue, bound: self.mailbox_len_max as u64 }.into());
        }
        Ok(Admission::Wait)
    }
}

impl<A: Behaviour> Activation<A> {
    /// Whether a turn of `access` may begin now, with nothing before it.
    pub(super) fn free_for(&self, access: Access) -> bool {
        !self.exclusive.get() && (access == Access::Read || self.reads.get() == 0) && !self.must_reload()
    }

    /// How a message's turn shares the activation.
    pub(super) fn access_of(&self, body: &Body<Message<A>>) -> Access {
        Self::method_of(body).map_or(Access::Exclusive, |method| self.access(method))
    }

    /// The method that a message is for, if it is for one.
    pub(in crate::shard) fn method_of(body: &Body<Message<A>>) -> Option<u16> {
        match body {
            Body::Typed(message) => Some(A::Interface::method(message)),
            Body::Wire(call) => Some(call.method),
            Body::Tick(tick) => Some(tick.0.method),
            Body::Ended(_) => None,
        }
    }

    pub(super) fn access(&self, method: u16) -> Access {
        match self.kind.methods().get(usize::from(method)) {
            Some(method) if method.read => Access::Read,
            _ => Access::Exclusive,
        }
    }

    /// Whether the message can begin at once; if not, whether it may wait.
    pub(super) fn admit(&self, shard: &Shard, access: Access, chain: &Chain) -> Result<Admission, Failure> {
        let free = self.phase.get() == Phase::Ready && self.mailbox.is_empty() && self.free_for(access);
        if free && self.kind.gate().is_none() {
            return Ok(Admission::Begin);
        }
        let standing = Standing {
            id: &self.cx.id,
            phase: self.phase.get(),
            gate: self.kind.gate(),
            free,
            exclusive: self.exclusive.get(),
            waiting: self.waiting(),
            mailbox_len_max: self.kind.mailbox_len_max(),
        };
        standing.admit(shard, access, chain)
    }

    pub(in crate::shard) fn enqueue(self: &Rc<Self>, shard: &Shard, envelope: Envelope<Message<A>>) {
        let now = shard.now();
        let deadline = envelope.deadline;
        if let Some(gate) = self.kind.gate() {
            gate.enter();
        }
        self.mailbox.push(&shard.runs.spare, Since::at(now), envelope);
        if deadline != Timestamp::NEVER {
            self.watch(shard, late::last_moment(Duration::ZERO, now, deadline));
        }
        if self.phase.get() == Phase::Ready {
            self.schedule(shard);
        }
    }

    pub(super) fn left_mailbox(&self, messages: usize) {
        if let Some(gate) = self.kind.gate() {
            gate.leave(messages);
        }
    }

    /// Looks at what waits at `due`, or sooner: at most a second ahead, so that an activation has few looks outstanding.
    pub(super) fn watch(&self, shard: &Shard, due: Timestamp) {
        let far = shard.now() + WATCH_MAX;
        if due < far {
            shard.watch(self.slot, due);
        } else if !self.watched.replace(true) {
            shard.watch(self.slot, far);
        }
    }

    pub(in crate::shard) fn schedule(self: &Rc<Self>, shard: &Shard) {
        if !self.scheduled.replace(true) {
            shard.schedule(self.clone());
        }
    }
}
