//! What a client at a door of another protocol may do: everything by kind, key, method and bytes.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use greenroom_security::principal::Principal;
use greenroom_security::rules::Target;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;

use super::connections::Seat;
use super::guard::Visitor;
use super::pass::Pass;
use super::problem::Problem;
use super::topic::{Asked, QUEUE_LEN, SUBSCRIBE, broken, event_id, target, terms_of_client, text_of};
use super::watching::{Request, Running};
use super::{Door, FAREWELL, LOOK_EVERY, arguments, body, call, carried, events, inspections, kinds, origins, status};
use crate::actor::error::{Failure, Refusal};
use crate::actor::key::check;
use crate::actor::reply::ReplyForm;
use crate::here::built_in::TOPICS;
use crate::shard::baggage::Load;
use crate::stream::backlog::Held;
use crate::topic::actor::Parcel;
use crate::topic::too_slow;

/// A client at a door. What it asks is let in by the credentials of its connection and of the headers that come with each
/// request, as the configuration's `auth` and `allow` say, and bounded together with all other requests of the node.
#[derive(Clone)]
pub struct Visit {
    door: Arc<Door>,
    seat: Arc<Seat>,
    visitor: Visitor,
    running: Arc<Running>,
}

/// A call as its client says it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The actor's kind.
    pub kind: String,
    /// The actor's key.
    pub key: String,
    /// The method's name.
    pub method: String,
    /// The method's arguments by their names; the reply has the same form.
    pub arguments: Arguments,
    /// How long the client waits; the node's `call_timeout` bounds it.
    pub limit: Option<Duration>,
    /// By which repeats of a call to a reliable actor are known.
    pub idempotency_key: Option<String>,
    /// Pairs of the request context, besides those of the header `baggage`.
    pub context: Vec<(String, String)>,
}

/// A method's arguments by their names; nothing at all means that there are none.
#[derive(Clone, Debug)]
pub enum Arguments {
    /// An object in JSON.
    Json(Bytes),
    /// A map in MessagePack.
    MessagePack(Bytes),
}

/// How a client watches a topic.
#[derive(Clone, Debug, Default)]
pub struct TopicWatch {
    /// The topic's name.
    pub topic: String,
    /// The id of the last event that the client has had, to go on behind it.
    pub after: Option<String>,
    /// Events that may wait for the client, 1 to 4096; `None` for the node's own bound.
    pub queue_len: Option<u32>,
    /// Whether a client that does not keep up is let go; else its oldest events are dropped.
    pub disconnect: bool,
}

/// A body that was read, and the room that it takes until it is dropped.
pub struct Received<'a> {
    held: body::Held<'a>,
}

/// A request that is being worked on, until it is dropped: its connection lies idle when there is none, and a node that leaves
/// waits for them.
pub struct Working {
    visit: Visit,
    _request: Request,
}

/// An item of a stream.
#[derive(Clone, Debug)]
pub enum Item {
    /// A value, in the form of the arguments; an event of a topic is JSON.
    Value {
        /// Its number, or the event's name.
        id: String,
        /// The value.
        value: Bytes,
    },
    /// So many events of a topic did not reach this client; `None` if nobody knows how many.
    Missed(Option<u64>),
}

/// A stream's items, as long as the client may have them. Dropped, it cancels the stream.
///
/// A client that takes nothing for a minute loses its connection, or sooner when the node holds too much for slow clients.
pub struct Items {
    source: Source,
    ending: Pin<Box<dyn Future<Output = Problem> + Send>>,
    request: Request,
    leaving: Held,
    over: bool,
    _permit: OwnedSemaphorePermit,
}

type Source = Pin<Box<dyn Stream<Item = Result<Item, Failure>> + Send>>;

impl Visit {
    pub(super) fn new(door: Arc<Door>, seat: Arc<Seat>, visitor: Visitor) -> Self {
        let running = Running::new(seat.clone(), door.node.config().http_idle_timeout);
        Self { door, seat, visitor, running }
    }

    pub(super) fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// Begins a request.
    pub fn begin(&self) -> Working {
        self.door.node.begin_request();
        Working { _request: self.running.begin(), visit: self.clone() }
    }

    /// Reads a request's body, within the node's bounds of size, of time, and of all bodies together.
    ///
    /// # Errors
    /// Which bound it was. Nothing ran.
    pub async fn receive(&self, body: Incoming) -> Result<Received<'_>, Problem> {
        body::read(&self.door, &[], body).await.map(|held| Received { held })
    }

    /// Calls a method; what it returns, in the form of the arguments.
    ///
    /// # Errors
    /// Why not, and whether a turn may have run.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    pub async fn call(&self, headers: &HeaderMap, call: Call) -> Result<Bytes, Problem> {
        let (ready, payload, form, limit) = self.prepare(headers, call).await?;
        let reply = ready.call(&self.door, payload, form, limit).await?;
        match events::handle(&reply, form.codec) {
            None => Ok(reply),
            Some(stream) => {
                events::give_up(&self.door, stream);
                Err(Problem::only_events())
            }
        }
    }

    /// Sends a message, and waits for no turn.
    ///
    /// # Errors
    /// Why it is not on its way. Nothing ran.
    pub async fn send(&self, headers: &HeaderMap, call: Call) -> Result<(), Problem> {
        let (ready, payload, ..) = self.prepare(headers, call).await?;
        ready.send(&self.door, payload)
    }

    /// Calls a method; the items of the stream that it answers with, or else its one value.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn stream(&self, headers: &HeaderMap, call: Call) -> Result<Items, Problem> {
        let (kind, key, method) = (call.kind.clone(), call.key.clone(), call.method.clone());
        let pass = Pass::new(&self.door, headers, Some(&self.visitor), &kind, &key);
        let (ready, payload, form, limit) = self.prepare(headers, call).await?;
        let reply = ready.call(&self.door, payload, form, limit).await?;
        let values: Pin<Box<dyn Stream<Item = Result<Bytes, Failure>> + Send>> =
            match events::handle(&reply, form.codec) {
                None => Box::pin(futures_util::stream::iter([Ok(reply)])),
                Some(stream) => Box::pin(events::values(&self.door, stream, form.codec)),
            };
        let numbered = values.enumerate();
        let items = numbered.map(|(number, value)| Ok(Item::Value { id: number.to_string(), value: value? }));
        self.items(pass, method, Box::pin(items))
    }

    /// Watches a topic; its events are JSON.
    ///
    /// # Errors
    /// Why not.
    pub async fn watch(&self, headers: &HeaderMap, watch: TopicWatch) -> Result<Items, Problem> {
        let TopicWatch { topic, after, queue_len, disconnect } = watch;
        self.let_in(headers)?;
        let visitor = Some(&self.visitor);
        let principal = self.door.guard.check(target(&topic, SUBSCRIBE), headers, visitor).await?;
        if let Some(why) = status::refuses(&self.door.node) {
            return Err(Problem::not_ready(why));
        }
        check(&topic)?;
        let invalid =
            |field: &str, message: &str| Refusal::Invalid { field: field.to_owned(), message: message.to_owned() };
        let mut terms = terms_of_client(disconnect);
        if let Some(len) = queue_len {
            let fits = QUEUE_LEN.contains(&len).then_some(len);
            terms.queue_len = fits.ok_or_else(|| invalid("queue", "it is a number of events, 1 to 4096"))?;
        }
        if let Some(after) = after {
            let id = event_id(&after).ok_or_else(|| invalid("after", "it is not the id of an event of a topic"))?;
            terms.from = Some(id.following());
        }
        let load = carried::baggage(headers, principal)?;
        let pass = Pass::new(&self.door, headers, visitor, TOPICS, &topic);
        let parcels = Asked::new(&self.door, topic, load).follow(terms).await?;
        let items = parcels.filter_map(|parcel| std::future::ready(item(parcel)));
        self.items(pass, SUBSCRIBE.to_owned(), Box::pin(items))
    }

    /// What the kinds of the cluster say of themselves, or `kind` alone, as a JSON document: as `/-/kinds` and `/-/kinds/{kind}`
    /// of the HTTP door say it, for everybody with credentials.
    ///
    /// # Errors
    /// Who asks may not know, or there is no such kind on this node.
    pub async fn describe(&self, headers: &HeaderMap, kind: Option<&str>) -> Result<String, Problem> {
        self.let_in(headers)?;
        let principal = self.door.guard.check_known(headers, &self.visitor).await?;
        let (door, kind) = (self.door.clone(), kind.map(str::to_owned));
        let look = async move {
            match kind {
                None => Ok(kinds::list(&door).to_string()),
                Some(kind) => kinds::one(&door, &kind).map(|said| said.to_string()),
            }
        };
        inspections::inspect(&self.door, principal.as_ref().map_or("", Principal::name), look).await?
    }

    /// Lets who has credentials pass; everybody, where there are none.
    ///
    /// # Errors
    /// What is wrong with the credentials.
    pub async fn check_known(&self, headers: &HeaderMap) -> Result<(), Problem> {
        self.let_in(headers)?;
        self.door.guard.check_known(headers, &self.visitor).await.map(drop)
    }

    /// A place among the node's streams, for as long as it is kept.
    ///
    /// # Errors
    /// There are as many as may be.
    pub fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.door.stream_permit()
    }

    /// Why the node should not be sent requests now, if so.
    pub fn not_ready(&self) -> Option<Cow<'static, str>> {
        status::not_ready(&self.door.node)
    }

    /// Resolves when the node's readiness may have changed.
    pub async fn readiness(&self) {
        tokio::time::sleep(LOOK_EVERY).await;
    }

    /// Resolves when the node takes no calls from outside any more: what runs on the connection may end, and then it closes.
    pub async fn closing(&self) {
        let mut closed = self.door.closed.subscribe();
        // An error means that the door itself is gone.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Resolves when no request has run on the connection for the node's `http_idle_timeout`: then it is to be closed in order.
    pub async fn idle(&self) {
        self.running.idle().await;
    }

    /// Resolves a moment after the node has stopped, when answers have had their time to leave.
    pub async fn halted(&self) {
        self.door.node.halted().await;
        tokio::time::sleep(FAREWELL).await;
    }

    /// Refuses web pages, and those who have only a place to ask how the node is.
    fn let_in(&self, headers: &HeaderMap) -> Result<(), Problem> {
        origins::refuse_other_sites(headers)?;
        match self.seat.is_reserved() {
            true => Err(Problem::busy("the door serves as many connections as it may").closing()),
            false => Ok(()),
        }
    }

    async fn prepare(
        &self,
        headers: &HeaderMap,
        call: Call,
    ) -> Result<(call::Ready, Bytes, ReplyForm, Duration), Problem> {
        let Call { kind, key, method, arguments, limit, idempotency_key, context } = call;
        self.let_in(headers)?;
        let asked = Target { kind: &kind, key: &key, method: &method };
        let principal = self.door.guard.check(asked, headers, Some(&self.visitor)).await?;
        let max = self.door.node.config().call_timeout;
        let target = call::Target { kind, key, method };
        let load = || -> Result<Load, Problem> {
            let load = carried::baggage(headers, principal)?;
            if context.is_empty() && idempotency_key.is_none() {
                return Ok(load);
            }
            let pairs = context.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            carried::with(load, pairs, idempotency_key.as_deref())
        };
        let ready = call::Ready::new(&self.door, &target, load)?;
        let (form, payload) = arguments.payload()?;
        Ok((ready, payload, form, limit.unwrap_or(max).min(max)))
    }

    fn items(&self, pass: Pass, method: String, source: Source) -> Result<Items, Problem> {
        let permit = self.door.stream_permit()?;
        let request = self.running.begin();
        request.watches();
        let ending = Box::pin(async move { pass.over(&method).await });
        let leaving = self.door.node.backlog().hold(0);
        Ok(Items { source, ending, request, leaving, over: false, _permit: permit })
    }
}

impl Arguments {
    /// The arguments as a message's payload.
    fn payload(&self) -> Result<(ReplyForm, Bytes), Refusal> {
        let (form, value, nothing, is_map) = match self {
            Self::Json(text) => {
                let text = arguments::normal(text)?;
                let is_object = text.trim_ascii_start().first() == Some(&b'{');
                (ReplyForm::DOOR, text, &b"{}"[..], is_object)
            }
            Self::MessagePack(bytes) => {
                let is_map = matches!(bytes.first(), Some(0x80..=0x8f | 0xde | 0xdf));
                (ReplyForm::PLAIN, Cow::Borrowed(&bytes[..]), &[0x80][..], is_map)
            }
        };
        let value = value.trim_ascii_start();
        if !value.is_empty() && !is_map {
            let message = format!("this is not a map in {} with the method's arguments by name", form.codec);
            return Err(Refusal::Invalid { field: String::new(), message });
        }
        let value = if value.is_empty() { nothing } else { value };
        Ok((form, [&form.head()[..], value].concat().into()))
    }
}

impl Received<'_> {
    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.held.bytes
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.visit.door.node.end_request();
    }
}

impl Stream for Items {
    type Item = Result<Item, Problem>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.request.is_taken();
        this.leaving.set(0);
        if this.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(problem) = this.ending.as_mut().poll(context) {
            this.over = true;
            return Poll::Ready(Some(Err(problem)));
        }
        let next = ready!(this.source.as_mut().poll_next(context));
        this.over = !matches!(next, Some(Ok(_)));
        if let Some(Ok(Item::Value { value, .. })) = &next {
            this.leaving.set(value.len());
        }
        if next.is_some() {
            // From now on it is the client that the door waits for.
            this.request.is_full();
        }
        Poll::Ready(next.map(|item| item.map_err(|failure| Problem::of(&failure))))
    }
}

/// A topic's parcel as a client sees it.
fn item(parcel: Result<Parcel, crate::CallError>) -> Option<Result<Item, Failure>> {
    Some(match parcel {
        Ok(Parcel::Began(_)) => return None,
        Ok(Parcel::Event(id, text)) => Ok(Item::Value { id: text_of(id), value: text.into() }),
        Ok(Parcel::Missed(count)) => Ok(Item::Missed(count)),
        Ok(Parcel::TooSlow) => Err(too_slow().into()),
        Err(error) => Err(broken(error)),
    })
}
