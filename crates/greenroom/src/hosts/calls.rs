//! Calls that hosts make: with the chain, the principal and the limit of the turn that makes them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use greenroom_protocols::host::LaneEvent;
use greenroom_wire::Status;
use greenroom_wire::carried::{calling_seat, pairs};
use greenroom_wire::extension::tag;
use greenroom_wire::host::{Call, FromNode, REQUESTS_MAX, WINDOW};
use greenroom_world::Timestamp;

use super::lane::{Lane, Request};
use super::on_shard::OnShard;
use super::refusals::RequestOrigin;
use crate::actor::error::{Doubt, IDEMPOTENCY_KEY, Refusal};
use crate::actor::key::{ActorId, Kind, stable_hash};
use crate::actor::reference::Inner;
use crate::actor::reply::{AnyReply, CallName, CallSite, ReplyForm, RuntimeEnd, Watcher, WireReply, encode_failure};
use crate::context::Context;
use crate::reliable::hosted::{Asked, HostedTurn, Parcel, Read};
use crate::shard::Shard;
use crate::shard::baggage::{Baggage, Load};
use crate::shard::calls::Completion;
use crate::shard::cancel::CallKey;
use crate::shard::chain::{Chain, Link};
use crate::shard::raw::{Journey, RawCall, RouteTarget};

/// A route that a host has defined, or why nobody takes that, and the version of the interface that it speaks there.
pub(super) struct HostRoute {
    target: Result<Arc<RouteTarget>, Refusal>,
    version: u16,
}

/// Where the answer to a host's call goes.
struct HostReply {
    session: u64,
    request: u64,
    over: bool,
    /// Where it is kept for the second run of the turn that asked.
    kept: Option<Asked>,
}

impl HostReply {
    fn answer(&mut self, completion: Completion) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let (status, payload) = match completion {
            Completion::Wire { status, payload, .. } => (status, payload),
            Completion::Failed(failure) => encode_failure(&failure),
            Completion::Value(_) => encode_failure(&Doubt::Dropped.into()),
        };
        if let Some(kept) = &self.kept {
            kept.answered(status, &payload);
        }
        Shard::with(|shard| {
            if let Some(shard) = shard {
                OnShard::of(shard).answer(self.session, self.request, status, &payload);
            }
        });
    }
}

impl AnyReply for HostReply {
    fn call(&self) -> Option<CallSite> {
        None
    }

    fn key(&self) -> CallName {
        CallName(CallKey::NONE)
    }

    fn awaited(&self) -> bool {
        !self.over
    }

    fn take(&mut self) -> Box<dyn AnyReply> {
        let over = std::mem::replace(&mut self.over, true);
        Box::new(Self { session: self.session, request: self.request, over, kept: self.kept.take() })
    }

    fn disarm(&mut self) {
        self.over = true;
    }

    /// Turns answer where their types are known.
    fn hold(&mut self) {}

    /// The same.
    fn watch(&mut self, _: Watcher) {}

    fn finish(mut self: Box<Self>, end: RuntimeEnd) {
        self.answer(end.0);
    }
}

impl Drop for HostReply {
    fn drop(&mut self) {
        self.answer(Completion::Failed(Box::new(Doubt::Dropped.into())));
    }
}

impl OnShard {
    /// Takes in a number for a kind and a method.
    pub(super) fn define_route(
        &self,
        shard: &Shard,
        session: u64,
        route: u32,
        kind: &str,
        method: &str,
        version: u16,
    ) -> Result<(), String> {
        let target = shard.port().node.kinds().external_route(kind, method).map(Arc::new);
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return Ok(()) };
        if route as usize != lane.routes.len() || lane.routes.len() >= ROUTES_MAX {
            return Err(format!("Define gives number {route}, and {} is next, of {ROUTES_MAX}", lane.routes.len()));
        }
        lane.routes.push(HostRoute { target, version });
        Ok(())
    }

    /// Takes in a call.
    pub(super) fn call(&self, shard: &Shard, session: u64, call: &Call<'_>, len: usize) -> Result<(), String> {
        self.note_request(shard, session, call.request, call.turn, len)?;
        let (route, version) = self.route(shard, session, call.route)?;
        let origin = RequestOrigin { session, request: call.request, turn: call.turn, seat: 0 };
        let named = route.as_ref().ok().cloned();
        let refuse = |failure| {
            let requester = self.requester(origin);
            match &named {
                Some(route) => {
                    let operation = format_args!("{}.{}", route.kind_name, route.method);
                    self.refuse(shard, origin, requester, &operation, failure);
                }
                None => self.refuse(shard, origin, requester, &"Call", failure),
            }
            Ok(())
        };
        let Some((sender, link, inherited, until)) = self.turn_of(session, call) else {
            return refuse(Doubt::Fenced.into());
        };
        let node = &shard.port().node;
        let route = match route {
            Ok(route) => route,
            Err(refusal) => return refuse(refusal.into()),
        };
        if call.turn == 0
            && let Err(refusal) = self.check_outside(session, &route, call.key)
        {
            return refuse(refusal.into());
        }
        let baggage = match carried(call, inherited.as_ref(), version) {
            Ok(baggage) => baggage,
            Err(refusal) => return refuse(refusal.into()),
        };
        let taken = route.kind.map_or(Ok(()), |kind| node.check_idempotency(kind, false, baggage.as_deref()));
        if let Err(refusal) = taken {
            return refuse(refusal.into());
        }
        let awaited = call.request != 0;
        let mut kept = None;
        // What a reliable turn does is seen once it is committed.
        if let Some(hosted) = HostedTurn::of(&inherited) {
            if !awaited {
                let arguments = Bytes::copy_from_slice(call.payload);
                hosted.send(shard, Parcel { route: &route, key: call.key, arguments, load: baggage });
                return Ok(());
            }
            if let Err(refusal) = hosted.check_call(node, &route, call.key) {
                return refuse(refusal.into());
            }
            match hosted.begin_read(|| what(&route, call)) {
                Some(Read::Known(status, payload)) => {
                    self.answer(session, call.request, status, &payload);
                    return Ok(());
                }
                Some(Read::Asked(asked)) => kept = Some(asked),
                None => {}
            }
        }
        let deadline = match awaited {
            true => node.deadline(call.left).min(until),
            false => Timestamp::NEVER,
        };
        if let Err(refusal) = shard.admit_call(call.turn == 0, deadline) {
            return refuse(refusal.into());
        }
        let reply = if awaited {
            let hash = stable_hash(&route.kind_name, call.key);
            let reply = Box::new(HostReply { session, request: call.request, over: false, kept });
            let Some(slot) = shard.relay(reply, deadline, hash) else { return Ok(()) };
            self.note_call(session, call.request, slot, &route, call.key);
            WireReply::here(CallSite { shard: shard.id(), slot }, ReplyForm::asked_by(call.payload))
        } else {
            WireReply::nobody()
        };
        let chain = Chain { link: if awaited { link } else { Link::None }, baggage };
        let journey = Journey::begins_at(node);
        shard.refill_budget();
        shard.submit_raw(RawCall {
            key: call.key,
            route: &route,
            payload: call.payload,
            reply,
            deadline,
            chain,
            journey,
            sender: sender.as_ref(),
        });
        Ok(())
    }

    /// Counts a request against its lane's bounds, and notes that its turn waits for it.
    pub(super) fn note_request(
        &self,
        shard: &Shard,
        session: u64,
        request: u64,
        turn: u64,
        len: usize,
    ) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let turn = state.turn(session, turn);
        let Some(lane) = state.lanes.get_mut(&session) else { return Ok(()) };
        lane.receive(len)?;
        if request == 0 {
            return Ok(());
        }
        if lane.requests.len() >= REQUESTS_MAX {
            return Err(format!("it has {REQUESTS_MAX} requests open on a lane, which is the most"));
        }
        if lane.requests.insert(request, Request { turn, call: None }).is_some() {
            return Err(format!("request {request} is open already"));
        }
        drop(state);
        if let Some(cookie) = turn {
            self.tell(shard, LaneEvent::Waits { cookie });
        }
        Ok(())
    }

    fn note_call(
        &self,
        session: u64,
        request: u64,
        slot: crate::shard::calls::CallSlot,
        route: &RouteTarget,
        key: &str,
    ) {
        let mut state = self.state.borrow_mut();
        let found = state.lanes.get_mut(&session).and_then(|lane| lane.requests.get_mut(&request));
        if let (Some(noted), Some(kind)) = (found, route.kind) {
            noted.call = Some((slot, ActorId::unchecked(kind, key)));
        }
    }

    /// Returns the actor whose turn makes a call, and what the call has from that turn; `None` if it may call no more.
    fn turn_of(&self, session: u64, call: &Call<'_>) -> Option<(Option<ActorId>, Link, Load, Timestamp)> {
        let state = self.state.borrow();
        if call.turn == 0 {
            let seat = call.extension.find(tag::CALLING_SEAT).and_then(|field| calling_seat(field).ok());
            let link = seat.map_or(Link::None, |seat| state.callers_of_hook(session, seat));
            return Some((None, link, state.lanes.get(&session)?.session.on_behalf(), Timestamp::NEVER));
        }
        let running = state.turns.get(&state.turn(session, call.turn)?)?;
        Some((Some(running.actor.clone()), running.link.clone(), running.baggage.clone(), running.deadline))
    }

    fn check_outside(&self, session: u64, route: &RouteTarget, key: &str) -> Result<(), Refusal> {
        let found = self.state.borrow().lanes.get(&session).map(|lane| lane.session.clone());
        found.map_or(Ok(()), |session| session.check_outside(&route.kind_name, key, &route.method))
    }

    fn route(
        &self,
        shard: &Shard,
        session: u64,
        route: u32,
    ) -> Result<(Result<Arc<RouteTarget>, Refusal>, u16), String> {
        let mut state = self.state.borrow_mut();
        let lane = state.lanes.get_mut(&session).ok_or("its session is over")?;
        let known = lane.routes.get_mut(route as usize).ok_or_else(|| format!("route {route} is not defined"))?;
        if let Ok(target) = &known.target
            && target.kind.is_none()
            && Kind::known(&target.kind_name).is_some()
        {
            let RouteTarget { kind_name, method, .. } = &**target;
            known.target = shard.port().node.kinds().external_route(kind_name, method).map(Arc::new);
        }
        Ok((known.target.clone(), known.version))
    }

    /// Answers a request of a host's, unless the host has given it up.
    pub(super) fn answer(&self, session: u64, request: u64, status: Status, payload: &[u8]) {
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return };
        let Some(Request { turn, .. }) = lane.requests.remove(&request) else { return };
        let reads = lane.session.reads;
        let unread = match reads.written(payload) {
            Ok(payload) if lane.put(&FromNode::Reply { request, status, payload: &payload }) => None,
            Ok(_) => Some("the reply is too large for a host's frame".to_owned()),
            Err(error) => Some(format!("the host reads one codec only: {error}")),
        };
        if let Some(message) = unread {
            let (status, payload) = reads.failure(&Doubt::Unreadable { message }.into());
            lane.put(&FromNode::Reply { request, status, payload: &payload });
        }
        let woken = turn.map(|cookie| state.handle(LaneEvent::GoesOn { cookie }));
        drop(state);
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    /// The host waits for a request no more.
    pub(super) fn cancel_call(&self, shard: &Shard, session: u64, request: u64) {
        let given_up = {
            let mut state = self.state.borrow_mut();
            let Some(lane) = state.lanes.get_mut(&session) else { return };
            let Some(given_up) = lane.requests.remove(&request) else { return };
            given_up
        };
        if let Some(cookie) = given_up.turn {
            self.tell(shard, LaneEvent::GoesOn { cookie });
        }
        if let Some((slot, id)) = given_up.call {
            shard.abandon(slot, &Inner::untyped(id));
        }
    }
}

impl Lane {
    /// Bytes of calls have come. An error if the host has sent more than it was let.
    pub(super) fn receive(&mut self, len: usize) -> Result<(), String> {
        if self.received >= WINDOW + self.granted {
            return Err("it has sent more calls than its window lets it; wait for Credit".to_owned());
        }
        self.received += len as u64;
        // What is taken in is bounded where it waits: at its actor's mailbox.
        if self.received - self.granted >= WINDOW / 4 {
            self.granted = self.received;
            let granted = self.granted;
            self.put(&FromNode::Credit { granted });
        }
        Ok(())
    }
}

/// What tells a call from others of its turn.
fn what(route: &RouteTarget, call: &Call<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&*route.kind_name, call.key, &*route.method, call.payload).hash(&mut hasher);
    hasher.finish()
}

/// What a call carries: what its turn does, and the context, trace and idempotency key that the host gives it.
fn carried(call: &Call<'_>, inherited: Option<&Arc<Baggage>>, version: u16) -> Result<Load, Refusal> {
    let mut own = None;
    if !call.extension.is_empty() {
        let invalid = |field: &str, message: String| Refusal::Invalid { field: field.to_owned(), message };
        let mut context = Context::EMPTY;
        let pairs = call.extension.find(tag::CONTEXT).map_or(Ok(Vec::new()), pairs);
        for (key, value) in pairs.map_err(|error| invalid("context", error.to_string()))? {
            context.set(key, value).map_err(|error| invalid("context", error.to_string()))?;
        }
        let said = Baggage::read(call.extension).map_err(|error| invalid("extension", error.to_string()))?;
        let trace = said.trace.clone();
        let key = call.extension.find(tag::IDEMPOTENCY_KEY).map(str::from_utf8).transpose();
        let key = key.map_err(|_| invalid(IDEMPOTENCY_KEY, "the idempotency key is not UTF-8".to_owned()))?;
        // One-way messages have no answer that could be kept.
        let idempotency = key.filter(|_| call.request != 0).map(Box::from);
        own = Some(Box::new(Baggage { context, trace, idempotency, ..Baggage::default() }));
    }
    let mut load = Baggage::join(inherited, own)?;
    if version != greenroom_protocols::versions::FIRST {
        let laden = load.as_deref().cloned().unwrap_or_default();
        load = Some(Arc::new(Baggage { version: Some(version), ..laden }));
    }
    Ok(load)
}

/// Routes that a host may define on a lane.
const ROUTES_MAX: usize = 65_536;
