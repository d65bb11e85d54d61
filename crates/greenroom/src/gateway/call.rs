//! A call of an actor's method.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::names::near_names;
use greenroom_protocols::versions::{ANY, FIRST, Offer};
use greenroom_security::principal::Principal;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::{Status, limit};
use greenroom_world::Timestamp;
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::body::RequestBody;
use super::connections::Seat;
use super::guard::Visitor;
use super::pass::Pass;
use super::path::decode;
use super::problem::Problem;
use super::{Door, arguments, body, carried, status, topic};
use super::{events, service};
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{self, ReplyForm, WireReply};
use crate::actor::spent::Spent;
use crate::duration;
use crate::here::built_in::{TOPICS, is_built_in};
use crate::observe::Observed;
use crate::pids::key::is_reserved;
use crate::shard::baggage::{Baggage, Load};
use crate::shard::calls::Completion;
use crate::shard::chain::PortableChain;
use crate::shard::raw::{Journey, RawParcel, RouteTarget};

/// Whom a request calls.
pub(super) struct Target {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) method: String,
}

/// Makes the call that `request` asks for.
///
/// # Errors
/// The problem that the client is told.
pub(super) async fn call(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    target: Target,
    request: Request<RequestBody>,
) -> Result<Answer, Problem> {
    let limit = time_limit(request.headers(), door.node.config().call_timeout)?;
    let principal = request.extensions().get::<Principal>().cloned();
    let ready = Ready::new(door, &target, || carried::baggage(request.headers(), principal))?;
    if request.method() == Method::GET && !ready.reads(door) {
        // What a page gets, it must not change.
        return Err(Problem::wrong_method("POST"));
    }
    let wants_events = events::wanted(request.headers());
    let visitor = request.extensions().get::<Visitor>();
    let pass = wants_events.then(|| Pass::new(door, request.headers(), visitor, &target.kind, &target.key));
    let asked = request.uri().query().and_then(|query| query.strip_prefix("arguments=")).map(str::to_owned);
    let head = ReplyForm::DOOR.head();
    let mut held = body::read(door, &head, request.into_body()).await?;
    if let Some(asked) = asked {
        let asked = decode(&asked).map_err(|why| Problem::bad_request(&why))?;
        held.bytes.truncate(head.len());
        held.bytes.extend_from_slice(asked.as_bytes());
    }
    let given = &held.bytes[head.len()..];
    let normal = arguments::normal(given)?;
    if normal.len() != given.len() || matches!(normal, Cow::Owned(_)) {
        let normal = normal.into_owned();
        held.bytes.truncate(head.len());
        held.bytes.extend_from_slice(&normal);
    }
    match held.bytes[head.len()..].iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => {
            held.bytes.truncate(head.len());
            held.bytes.extend_from_slice(b"{}");
        }
        Some(b'{') => {}
        Some(_) => {
            let message = "the body must be a JSON object with the method's arguments by name".to_owned();
            return Err(Refusal::Invalid { field: String::new(), message }.into());
        }
    }
    seat.works();
    let payload = Bytes::from(std::mem::take(&mut held.bytes));
    let reply = ready.call(door, payload, ReplyForm::DOOR, limit).await?;
    if let Some(stream) = events::stream_of(&reply) {
        if let Some(pass) = pass {
            return events::answer(door, seat.clone(), pass, target.method, events::items(door, stream));
        }
        events::give_up(door, stream);
        return Err(Problem::only_events());
    }
    Ok(service::bytes(StatusCode::OK, "application/json", reply))
}

/// A call that may be made: what its names mean, and what it carries.
pub(super) struct Ready {
    route: RouteTarget,
    id: ActorId,
    load: Load,
}

impl Ready {
    /// Sees to it that the node takes calls, and that there are such a kind and such a method.
    ///
    /// # Errors
    /// The problem that the client is told. Nothing ran.
    pub(super) fn new(
        door: &Door,
        target: &Target,
        load: impl FnOnce() -> Result<Load, Problem>,
    ) -> Result<Self, Problem> {
        if let Some(why) = status::refuses(&door.node) {
            return Err(Problem::not_ready(why));
        }
        if target.kind == TOPICS && target.method == topic::SUBSCRIBE {
            return Err(Problem::watch_instead());
        }
        let load = load()?;
        let (route, id, version) = resolve(door, target)?;
        door.node.check_idempotency(id.kind, false, load.as_deref())?;
        // Most kinds have one version, and most requests no baggage.
        let load = match version {
            None => load,
            version => Some(Arc::new(Baggage { version, ..load.map(Arc::unwrap_or_clone).unwrap_or_default() })),
        };
        Ok(Self { route, id, load })
    }

    /// Whether the method is known here as one that changes nothing.
    fn reads(&self, door: &Door) -> bool {
        let methods = door.node.kinds().methods().find(|(kind, _)| *kind == self.route.kind_name);
        let method = methods.zip(self.route.index).and_then(|((_, methods), index)| methods.get(usize::from(index)));
        method.is_some_and(|method| method.is_repeatable())
    }

    /// Makes the call; the value that it returns, in the codec of `form`.
    ///
    /// # Errors
    /// The problem that the client is told.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    pub(super) async fn call(
        self,
        door: &Door,
        payload: Bytes,
        form: ReplyForm,
        limit: Duration,
    ) -> Result<Bytes, Problem> {
        let principal = self.load.as_deref().and_then(|baggage| baggage.principal.as_ref());
        let _place = door.calls.enter(self.id.stable_hash(), principal.map(Principal::name))?;
        let began = door.node.world().now();
        let replied = perform(door, self, payload, form, limit).await;
        door.node.part::<Observed>().answered(door.node.world().now().since(began));
        answer(replied, form.codec)
    }

    /// Sends the message, and waits for no turn.
    ///
    /// # Errors
    /// The problem that the client is told. Nothing ran.
    pub(super) fn send(self, door: &Door, payload: Bytes) -> Result<(), Problem> {
        let node = &door.node;
        let Self { route, id, load } = self;
        let hash = id.stable_hash();
        let parcel = RawParcel {
            id: id.clone(),
            route: Arc::new(route),
            payload,
            reply: WireReply::nobody(),
            deadline: Timestamp::NEVER,
            chain: PortableChain { link: None, baggage: load },
            journey: Journey::begins_at(node),
        };
        Ok(node.enter(&id, hash, Box::new(parcel))?)
    }
}

/// What the target means here, without activating anything for names that mean nothing, and the version of its interface
/// that the call is of, unless there is only the first.
fn resolve(door: &Door, target: &Target) -> Result<(RouteTarget, ActorId, Option<u16>), Refusal> {
    let node = &door.node;
    let Target { kind, key, method } = target;
    let known = (kind.len() <= limit::NAME_LEN_MAX).then(|| Kind::known(kind)).flatten();
    // The key of a spawned actor says where it is, whoever hosts its kind.
    let hosted = |known: &Kind| {
        let is_known = node.kinds().contains(kind) || node.view().hosts(*known).is_some();
        is_known || is_reserved(key) || node.is_yet_to_come(*known)
    };
    let Some(known) = known.filter(hosted) else {
        if let Some(refusal @ Refusal::NoHost { .. }) = known.map(|known| node.unknown_kind(known.name())) {
            return Err(refusal);
        }
        let near = if kind.len() <= limit::NAME_LEN_MAX { near_kinds(door, kind) } else { Vec::new() };
        return Err(Refusal::UnknownKind { kind: shortened(kind), near });
    };
    let id = ActorId::new(known, key)?;
    if method.len() > limit::NAME_LEN_MAX {
        return Err(Refusal::UnknownMethod { kind: kind.clone(), method: shortened(method), near: Vec::new() });
    }
    let route = node.kinds().external_route(kind, method)?;
    let view = node.view();
    let offers = view.hosts(known).map_or(&[] as &[Offer], |hosts| hosts.offers());
    let newest = offers.iter().map(|offer| offer.version).max().unwrap_or(FIRST);
    // A method that is not known here may be one of a newer version elsewhere.
    let newer = route.index.is_none() && route.offer.is_some_and(|here| here.version < newest);
    if node.kinds().contains(kind) && route.index.is_none() && !newer {
        return Err(node.kinds().unknown_method(&route));
    }
    if route.index.is_none() && !door.admits_remote(kind, method) {
        return Err(Refusal::UnknownMethod { kind: kind.clone(), method: method.clone(), near: Vec::new() });
    }
    let version = (!offers.is_empty()).then_some(if newer { newest } else { ANY });
    Ok((route, id, version))
}

pub(super) fn near_kinds(door: &Door, kind: &str) -> Vec<String> {
    let view = door.node.view();
    let elsewhere = view.view.active().flat_map(|(_, member)| member.kinds.iter().map(|kind| kind.name.as_str()));
    let names = door.node.kinds().methods().map(|(name, _)| name).chain(elsewhere);
    near_names(kind, names.filter(|name| !is_built_in(name)))
}

/// A name that is longer than any is, short enough to be repeated.
pub(super) fn shortened(name: &str) -> String {
    match name.char_indices().nth(limit::NAME_LEN_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

async fn perform(door: &Door, ready: Ready, payload: Bytes, form: ReplyForm, limit: Duration) -> Completion {
    let node = &door.node;
    let Ready { route, id, load } = ready;
    let (sender, receiver) = oneshot::channel();
    let hash = id.stable_hash();
    let (number, deadline) = (node.next_outside(), node.deadline(Some(limit)));
    let mut waiting = Waiting { door, id: &id, hash, number, deadline, over: false };
    let parcel = RawParcel {
        id: id.clone(),
        route: Arc::new(route),
        payload,
        reply: WireReply::gateway(sender, waiting.number, form),
        deadline: waiting.deadline,
        chain: PortableChain { link: None, baggage: load },
        journey: Journey::begins_at(node),
    };
    // A refusal comes by the reply as well.
    let _ = node.enter(&id, hash, Box::new(parcel));
    let ended = tokio::time::timeout(limit, receiver).await;
    waiting.over = true;
    let doubt = match ended {
        Ok(Ok(completion)) => return completion,
        Ok(Err(_)) => Doubt::Dropped,
        Err(_) => Doubt::TimedOut(Box::new(Spent { limit: Some(limit), ..Spent::default() })),
    };
    Completion::Failed(Box::new(doubt.into()))
}

/// A client that waits for its call. If it hangs up, the call is cancelled.
struct Waiting<'a> {
    door: &'a Door,
    id: &'a ActorId,
    hash: u64,
    number: u32,
    deadline: Timestamp,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.door.node.abandon_outside(self.number, self.deadline, self.id, self.hash);
        }
    }
}

/// What a call came back with: its value, in `codec`.
fn answer(completion: Completion, codec: Codec) -> Result<Bytes, Problem> {
    let failure = match completion {
        Completion::Wire { status: Status::Ok, payload, .. } => match value(&payload, codec) {
            Ok(value) => return Ok(payload.slice_ref(value)),
            Err(failure) => failure,
        },
        Completion::Wire { status: Status::ActorError, payload, .. } => {
            let in_json = || reply::read_error(&payload).or_else(|| Some((codec::decode(&payload).ok()?, None)));
            match in_json() {
                Some((error, says)) => return Err(Problem::actor_error(error, says)),
                None => Doubt::Unreadable { message: "its error has no JSON".into() }.into(),
            }
        }
        Completion::Wire { payload, .. } => reply::failure(&payload),
        Completion::Failed(failure) => *failure,
        Completion::Value(_) => Doubt::Unreadable { message: format!("it did not come as {codec}") }.into(),
    };
    Err(Problem::of(&failure))
}

/// The value of a reply's payload.
fn value(payload: &[u8], codec: Codec) -> Result<&[u8], Failure> {
    match codec::parse(payload) {
        Ok(payload) if payload.codec == codec => Ok(payload.value),
        Ok(payload) => {
            Err(Doubt::Unreadable { message: format!("it came as {}, not as {codec}", payload.codec) }.into())
        }
        Err(error) => Err(Doubt::Unreadable { message: error.to_string() }.into()),
    }
}

/// How long the call may take: what the client says, if the node allows as much.
fn time_limit(headers: &HeaderMap, max: Duration) -> Result<Duration, Problem> {
    let Some(text) = headers.get(TIMEOUT_HEADER) else { return Ok(max) };
    let limit = text.to_str().ok().and_then(duration::parse).filter(|limit| !limit.is_zero());
    let limit = limit.ok_or_else(Problem::bad_timeout)?;
    Ok(limit.min(max))
}

/// The header by which a client says how long it will wait.
pub(super) const TIMEOUT_HEADER: &str = "greenroom-timeout";
