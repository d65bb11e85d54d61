//! By which node messages to other nodes go, and which of the nodes may be had.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_protocols::courses::{Courses, Host, Next};
use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallId, Status};

use super::Shard;
use super::calls::{CallSlot, Completion, Waiter};
use super::outgoing::Outgoing;
use super::submit::AnyParcel;
use crate::actor::error::{Failure, Refusal};
use crate::actor::key::ActorId;
use crate::actor::reference::{Inner, Route};
use crate::actor::reply::failure;
use crate::here::location::Location;

/// What a shard keeps so that its messages to an actor elsewhere do not overtake each other.
pub(super) struct Routes {
    courses: Courses<Marked>,
    /// What waits for a mark, by the actors' hashes.
    held: BTreeMap<u64, Vec<Box<dyn AnyParcel>>>,
    held_len: usize,
}

/// Whom a mark is for, and the version of its interface that its callers speak.
pub(crate) struct Marked {
    pub(crate) id: ActorId,
    pub(crate) version: u16,
}

impl Routes {
    /// Keeps nothing yet. The seed is what nobody outside knows.
    pub(super) fn new(seed: u64) -> Self {
        Self { courses: Courses::new(seed), held: BTreeMap::new(), held_len: 0 }
    }

    /// Whether messages wait for a mark.
    pub(super) fn has_held(&self) -> bool {
        self.held_len > 0
    }

    /// All that waits.
    pub(super) fn take_held(&mut self) -> Vec<Box<dyn AnyParcel>> {
        self.held_len = 0;
        std::mem::take(&mut self.held).into_values().flatten().collect()
    }
}

impl Shard {
    /// Whether a connection to `node` may be had: it lives, as far as is known here, and has not taken leave.
    pub(super) fn may_dial(&self, node: NodeId) -> bool {
        self.port.node.is_member(node) && !self.has_departed(node)
    }

    /// Whether there is a connection to `node`, or may be.
    pub(super) fn may_reach(&self, node: NodeId) -> bool {
        self.has_lane(node) || self.may_dial(node)
    }

    /// How the next message of this shard to the actor of this hash goes, if it goes to another node.
    pub(crate) fn next_course(&self, hash: u64) -> Next {
        let next = self.routes.borrow_mut().courses.next(hash);
        match next {
            Next::Straight(node) if self.may_reach(node) => next,
            // A connection that others must stand in for is as good as broken.
            Next::Round(node) if self.may_reach(node) && self.port.node.detour(node).is_none() => next,
            Next::Straight(_) | Next::Round(_) => {
                self.routes.borrow_mut().courses.forget(hash);
                Next::Unknown
            }
            next => next,
        }
    }

    /// Whether messages to the actor of this hash must keep to the way that others before them have taken.
    pub(crate) fn keeps_to_round(&self, hash: u64) -> bool {
        self.routes.borrow().courses.is_round(hash)
    }

    /// A message goes straight to who has the actor.
    pub(crate) fn goes_straight(&self, hash: u64, host: NodeId) {
        self.routes.borrow_mut().courses.went_straight(hash, host, self.now());
    }

    /// A message goes to `owner`, which may pass it on.
    pub(crate) fn goes_round(&self, hash: u64, owner: NodeId, actor: Marked) {
        self.routes.borrow_mut().courses.goes_round(hash, owner, self.now(), actor);
    }

    /// The message to the actor of this hash that went to `to` is this call.
    pub(super) fn called(&self, hash: u64, to: NodeId, call: CallSlot) {
        self.calls.borrow_mut().sent_to(call, to);
        self.routes.borrow_mut().courses.called(hash, to, call.packed());
    }

    /// `host` has the actor of this hash: it has answered `call`.
    fn learn(&self, hash: u64, host: NodeId, call: CallSlot) {
        let host = self.host(host);
        self.take_news(hash, |courses| courses.answered(hash, host, call.packed(), self.now()));
    }

    /// The node `by` has passed on a message to the actor of this hash.
    pub(super) fn learn_of_passing(&self, hash: u64, by: NodeId) {
        self.take_news(hash, |courses| courses.passed_on(hash, by));
    }

    /// Sends a mark if it is due after the news of where the actor of this hash is.
    fn take_news(&self, hash: u64, take: impl FnOnce(&mut Courses<Marked>) -> Option<(NodeId, &Marked)>) {
        let mut routes = self.routes.borrow_mut();
        let due = take(&mut routes.courses);
        if let Some(mark) = due.and_then(|(by, actor)| self.send_mark(hash, by, actor)) {
            routes.courses.marked(hash, mark.packed());
        }
    }

    fn host(&self, node: NodeId) -> Host {
        if node == self.port.node.me() { Host::Here } else { Host::There(node) }
    }

    /// Takes in the end of a call that a turn has made to `target`.
    pub(crate) fn learn_of_call(&self, target: &Inner, call: CallSlot, end: &Completion) {
        match end {
            // Who answered has the actor: the next call goes there at once.
            Completion::Wire { from: Some(from), .. } if *from != self.port.node.me() => {
                target.set_route(Route::There(*from));
            }
            // The actor has come to this node, and the call has found it by a way around; or nobody knows.
            Completion::Wire { .. } | Completion::Failed(_) if let Route::There(_) = target.route() => {
                target.set_route(Route::Unresolved);
            }
            _ => {}
        }
        self.learn_of_end(target.hash, call, end);
    }

    /// Takes in the end of `call`, which was for the actor of this hash.
    pub(super) fn learn_of_end(&self, hash: u64, call: CallSlot, end: &Completion) {
        match end {
            Completion::Wire { from: Some(from), .. } => self.learn(hash, *from, call),
            end if is_doubtful(end) => self.routes.borrow_mut().courses.doubt(hash),
            _ => {}
        }
    }

    /// Sends a mark behind all that went round by `by`: where the actor is, it is answered as it arrives.
    fn send_mark(&self, hash: u64, by: NodeId, actor: &Marked) -> Option<CallSlot> {
        let deadline = self.now() + MARK_LIMIT;
        let slot = self.calls.borrow_mut().open(Waiter::Mark(hash), deadline).ok()?;
        let mark = Outgoing {
            id: Some(CallId { shard: self.index(), index: slot.index, generation: slot.generation }),
            origin: None,
            hops: 0,
            kind: actor.id.kind.name(),
            method: MARK,
            key: &actor.id.key,
            deadline,
            grant: None,
            chain: None,
            baggage: None,
            version: actor.version,
        };
        if self.lane_call(by, &mark, &mut |_| Ok(())).is_err() {
            self.calls.borrow_mut().close(slot);
            return None;
        }
        self.calls.borrow_mut().sent_to(slot, by);
        Some(slot)
    }

    /// A mark has been answered, or came to nothing.
    pub(super) fn mark_ended(&self, hash: u64, mark: CallSlot, end: &Completion) {
        let host = match end {
            Completion::Wire { status: Status::Ok, from, .. } => from.map(|node| self.host(node)),
            _ => None,
        };
        self.routes.borrow_mut().courses.mark_ended(hash, mark.packed(), host, self.now());
        self.let_go(hash);
    }

    /// Keeps a message until the mark before it is answered.
    pub(crate) fn hold_back(&self, parcel: Box<dyn AnyParcel>) {
        let hash = parcel.hash();
        let mut routes = self.routes.borrow_mut();
        let held_len = routes.held_len;
        let held = routes.held.entry(hash).or_default();
        if held_len < HELD_MAX && held.len() < HELD_OF_ACTOR_MAX {
            held.push(parcel);
            routes.held_len += 1;
            return;
        }
        routes.courses.give_up(hash);
        drop(routes);
        self.let_go(hash);
        parcel.deliver(self);
    }

    /// Lets go what was held for a mark.
    fn let_go(&self, hash: u64) {
        let held = {
            let mut routes = self.routes.borrow_mut();
            let held = routes.held.remove(&hash).unwrap_or_default();
            routes.held_len -= held.len();
            held
        };
        for parcel in held {
            parcel.deliver(self);
        }
    }

    /// Refuses what is held.
    pub(super) fn refuse_held_back(&self, refusal: &Refusal) {
        let held = self.routes.borrow_mut().take_held();
        held.into_iter().for_each(|parcel| parcel.refuse(refusal.clone()));
    }

    /// What a location comes to: a node that has taken leave will soon not be named any more, and one that only others
    /// reach is reached through one of them.
    pub(crate) fn reachable(&self, location: Location) -> Location {
        match location {
            Location::There { node, .. } if self.has_departed(node) => Location::Wait,
            Location::There { node, grant } => {
                Location::There { node: self.port.node.detour(node).unwrap_or(node), grant }
            }
            location => location,
        }
    }
}

/// Whether a call may have ended so because the actor is elsewhere.
fn is_doubtful(end: &Completion) -> bool {
    let is_busy =
        |failure: &Failure| matches!(failure, Failure::Refused(Refusal::Overloaded { .. } | Refusal::Shed { .. }));
    match end {
        Completion::Failed(failure) => !is_busy(failure),
        Completion::Wire { status: Status::Unknown | Status::Expired, .. } => true,
        Completion::Wire { status: Status::Refused, payload, .. } => !is_busy(&failure(payload)),
        _ => false,
    }
}

/// The method of a mark: no actor has one of this name.
pub(super) const MARK: &str = "?arrived";
/// A mark that is not answered in so long came to nothing.
const MARK_LIMIT: Duration = Duration::from_millis(500);
/// Messages that a shard holds back at most for marks.
const HELD_MAX: usize = 16_384;
/// Of these, how many for one actor.
const HELD_OF_ACTOR_MAX: usize = HELD_MAX / 8;
