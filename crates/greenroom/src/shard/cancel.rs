//! Calls that nobody waits for any more: they need not start, and turns that run for them are told.
//!
//! Nothing is kept for calls that end as they should. A caller that goes away sends word to where its call may be; there
//! it is remembered for as long as the call could still start.

use std::collections::BTreeMap;
use std::task::Waker;

use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallId, CancelView};
use greenroom_world::Timestamp;

use super::calls::CallSlot;
use super::turns::Answer;
use super::{Item, Shard, ShardId};
use crate::actor::key::{ActorId, Kind, stable_hash};
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::CallSite;
use crate::pids::key::is_reserved;

/// The name of a call that somebody waits for, among all that this process could hear of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CallKey {
    /// The node that waits; [`HERE`] for shards of this process, [`OUTSIDE`] for who is on no shard.
    node: u64,
    call: u64,
}

impl CallKey {
    /// A message that nobody waits for.
    pub(crate) const NONE: Self = Self { node: HERE, call: u64::MAX };

    /// A call of a shard of this process.
    pub(crate) fn local(site: CallSite) -> Self {
        Self { node: HERE, call: packed(site.shard.raw(), site.slot.index, site.slot.generation) }
    }

    /// A call of another node.
    pub(crate) fn far(node: NodeId, call: CallId) -> Self {
        Self { node: node.0, call: packed(call.shard, call.index, call.generation) }
    }

    /// A call from outside of all actors.
    pub(crate) fn outside(number: u32) -> Self {
        Self { node: OUTSIDE, call: number.into() }
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The node that waits, if it is another one.
    fn far_node(self) -> Option<NodeId> {
        (self.node != HERE && self.node != OUTSIDE).then_some(NodeId(self.node))
    }
}

/// Shards have 12 bits and slots 20, whatever else a peer may say.
fn packed(shard: u16, index: u32, generation: u32) -> u64 {
    u64::from(shard & 0xfff) << 52 | u64::from(index & 0xf_ffff) << 32 | u64::from(generation)
}

/// What a shard has heard of calls that nobody waits for any more, and which turns want to hear of it.
#[derive(Default)]
pub(super) struct Cancels {
    /// Until when each need be remembered.
    recent: BTreeMap<CallKey, Timestamp>,
    /// The latest of those times.
    until: Timestamp,
    asked: BTreeMap<(CallKey, u64), Waker>,
    last_asker: u64,
}

impl Cancels {
    /// Calls that were cancelled, and who asks whether theirs was.
    #[cfg(feature = "rehearsal")]
    pub(super) fn len(&self) -> usize {
        self.recent.len() + self.asked.len()
    }
}

impl Cancels {
    fn remember(&mut self, key: CallKey, until: Timestamp, now: Timestamp) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.retain(|_, until| *until > now);
        }
        if self.recent.len() >= RECENT_MAX {
            // Some are forgotten, and run to their ends.
            self.recent.pop_first();
        }
        self.recent.insert(key, until);
        self.until = self.until.max(until);
    }

    /// Whether nobody waits for the call any more, as far as is known.
    fn contains(&mut self, key: CallKey, now: Timestamp) -> bool {
        if self.recent.is_empty() {
            return false;
        }
        if self.until <= now {
            self.recent.clear();
        }
        self.recent.contains_key(&key)
    }

    /// Takes those who want to hear of calls in `keys`.
    fn take_askers(&mut self, keys: std::ops::RangeInclusive<CallKey>) -> Vec<Waker> {
        let range = (*keys.start(), 0)..=(*keys.end(), u64::MAX);
        self.asked.extract_if(range, |_, _| true).map(|(_, waker)| waker).collect()
    }
}

impl Shard {
    /// The name of the call that the current turn serves.
    pub(crate) fn current_call(&self) -> CallKey {
        match self.current().map(|frame| frame.answer.get()) {
            Some(Answer::Elsewhere(key)) => key,
            Some(Answer::Call(slot)) => CallKey::local(CallSite { shard: self.id(), slot }),
            // Who waits is on this stack.
            Some(Answer::Stack(_)) | None => CallKey::NONE,
        }
    }

    /// Whether who waits for the current turn is on this stack.
    pub(crate) fn caller_is_below(&self) -> bool {
        self.current().is_some_and(|frame| matches!(frame.answer.get(), Answer::Stack(_)))
    }

    /// Whether nobody waits for the current turn any more, though somebody did.
    pub(crate) fn current_is_cancelled(&self) -> bool {
        self.is_cancelled(self.current_call()) || self.current_deadline() <= self.port().node.world().now()
    }

    /// Whether nobody waits for the call any more.
    pub(crate) fn is_cancelled(&self, key: CallKey) -> bool {
        !key.is_none()
            && (self.cancels.borrow_mut().contains(key, self.now())
                || key.far_node().is_some_and(|node| !self.port().node.is_member(node)))
    }

    /// Whether the call must not start, as nobody waits for it any more: counted then.
    #[inline]
    pub(super) fn gives_up(&self, key: CallKey) -> bool {
        if self.cancels.borrow().recent.is_empty() || !self.cancels.borrow_mut().contains(key, self.now()) {
            return false;
        }
        self.gauges().count_cancelled();
        true
    }

    /// Lets `waker` hear of the end of the call's wait; gives the number to take that back by.
    pub(crate) fn ask_for_cancel(&self, key: CallKey, asker: Option<u64>, waker: &Waker) -> u64 {
        let mut cancels = self.cancels.borrow_mut();
        let asker = asker.unwrap_or_else(|| {
            cancels.last_asker += 1;
            cancels.last_asker
        });
        cancels.asked.insert((key, asker), waker.clone());
        asker
    }

    /// Takes back what [`ask_for_cancel`](Self::ask_for_cancel) asked for.
    pub(crate) fn forget_asker(&self, key: CallKey, asker: u64) {
        self.cancels.borrow_mut().asked.remove(&(key, asker));
    }

    /// Gives up a call of this shard that its caller has dropped.
    pub(crate) fn abandon(&self, slot: CallSlot, target: &Inner) {
        let Some((deadline, peer)) = self.calls.borrow_mut().abandon(slot) else { return };
        match peer {
            Some(peer) => self.cancel_at(peer, self.call_id(slot), None, deadline, &target.id),
            None => {
                let key = CallKey::local(CallSite { shard: self.id(), slot });
                let home = match target.route() {
                    Route::Here(shard, _) => Some(shard),
                    _ => self.home(&target.id, target.hash),
                };
                self.cancel_here(key, deadline, home);
            }
        }
    }

    /// Takes in that nobody outside of all actors waits for a call any more.
    pub(crate) fn abandon_outside(&self, key: CallKey, deadline: Timestamp, id: &ActorId, hash: u64) {
        let relayed = self.calls.borrow_mut().abandon_relay(key);
        if let Some((slot, Some(peer))) = relayed {
            // From there it may have come back to this node, under this name.
            return self.cancel_at(peer, self.call_id(slot), None, deadline, id);
        }
        self.cancel_here(key, deadline, self.home(id, hash));
    }

    /// Takes in what `peer` says of a call that it sent, or that it forwarded.
    pub(super) fn take_cancel(&self, peer: NodeId, cancel: CancelView<'_>) {
        let origin = cancel.origin.map_or(peer, NodeId);
        let deadline = self.now() + cancel.left.min(self.port().node.config().call_timeout.max(CANCEL_KEPT_MAX));
        let Some(kind) = Kind::known(cancel.kind) else { return };
        let Ok(id) = ActorId::new(kind, cancel.key) else { return };
        if let Some(next) = self.forwarded_to(origin, cancel.id) {
            return self.cancel_at(next, cancel.id, Some(origin), deadline, &id);
        }
        let home = self.home(&id, stable_hash(cancel.kind, cancel.key));
        self.cancel_here(CallKey::far(origin, cancel.id), deadline, home);
    }

    fn home(&self, id: &ActorId, hash: u64) -> Option<ShardId> {
        if is_reserved(&id.key) {
            return self.port().node.home_of_spawned(&id.key).map(|port| port.id);
        }
        self.port().node.home(id, hash)
    }

    fn call_id(&self, slot: CallSlot) -> CallId {
        CallId { shard: self.index(), index: slot.index, generation: slot.generation }
    }

    /// Remembers on this node that nobody waits for a call: on this shard, by which it may still come, and on the one that
    /// has the actor.
    fn cancel_here(&self, key: CallKey, deadline: Timestamp, home: Option<ShardId>) {
        self.cancelled(key, deadline);
        if let Some(home) = home.filter(|home| *home != self.id()) {
            self.post(home, Item::Run(Box::new(move |shard| shard.cancelled(key, deadline))));
        }
    }

    fn cancelled(&self, key: CallKey, deadline: Timestamp) {
        let askers = {
            let mut cancels = self.cancels.borrow_mut();
            cancels.remember(key, deadline, self.now());
            cancels.take_askers(key..=key)
        };
        askers.into_iter().for_each(Waker::wake);
    }

    /// Tells `peer` that nobody waits for a call that went there.
    fn cancel_at(&self, peer: NodeId, call: CallId, origin: Option<NodeId>, deadline: Timestamp, id: &ActorId) {
        let origin = origin.filter(|origin| *origin != self.port().node.me()).map(|origin| origin.0);
        let left = deadline.since(self.now());
        self.lane_cancel(peer, &CancelView { id: call, origin, left, kind: id.kind.name(), key: &id.key });
    }

    /// Tells the turns that serve calls of a node's shard, whose connection is gone, or of all of its shards.
    pub(super) fn callers_lost(&self, node: NodeId, shard: Option<u16>) {
        let (first, last) = shard.map_or((0, u16::MAX), |shard| (shard, shard));
        let begin = CallKey { node: node.0, call: packed(first, 0, 0) };
        let end = CallKey { node: node.0, call: packed(last, u32::MAX, u32::MAX) };
        let deadline = self.now() + CANCEL_KEPT_MAX;
        let askers = {
            let mut cancels = self.cancels.borrow_mut();
            let keys: Vec<_> = cancels.asked.range((begin, 0)..=(end, u64::MAX)).map(|((key, _), _)| *key).collect();
            for key in keys {
                cancels.remember(key, deadline, self.now());
            }
            cancels.take_askers(begin..=end)
        };
        askers.into_iter().for_each(Waker::wake);
    }
}

/// In place of a node: this process.
const HERE: u64 = 0;
/// In place of a node: callers that are on no shard.
const OUTSIDE: u64 = u64::MAX;
/// Calls of one shard that are remembered because nobody waits for them any more.
const RECENT_MAX: usize = 16_384;
/// Time for which what a peer says of a call is remembered at least, if the call had so much left.
const CANCEL_KEPT_MAX: std::time::Duration = std::time::Duration::from_secs(60);
