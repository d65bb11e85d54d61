//! Topics at the door: published by a POST, watched as server-sent events or over a WebSocket.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use greenroom_security::principal::Principal;
use greenroom_security::rules::Target;
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::Door;
use super::answer::Answer;
use super::body::RequestBody;
use super::connections::Seat;
use super::events::{self, Event, Source};
use super::guard::Visitor;
use super::pass::Pass;
use super::path::decode;
use super::problem::Problem;
use super::shares::CallPlace;
use super::{arguments, body, carried, service, socket, status};
use crate::actor::error::{CallError, Doubt, Failure, Refusal};
use crate::actor::key::{check, stable_hash};
use crate::here::built_in::TOPICS;
use crate::here::port::Port;
use crate::node::Node;
use crate::shard::baggage::Load;
use crate::stream::reply_stream::ReplyStream;
use crate::topic::actor::{Parcel, Terms, TopicsRef};
use crate::topic::{EventId, Slow, too_slow};

/// A topic, as a client asks for it.
#[derive(Clone)]
pub(super) struct Asked {
    door: Arc<Door>,
    topic: TopicsRef,
    /// What the client's calls carry.
    load: Load,
}

/// What a client that watches a topic gets.
pub(super) type Parcels = Pin<Box<dyn Stream<Item = Result<Parcel, CallError>> + Send>>;

/// What rules are asked about `method` of the topic called `name`.
pub(super) fn target<'a>(name: &'a str, method: &'a str) -> Target<'a> {
    Target { kind: TOPICS, key: name, method }
}

/// Answers a request for the topic called `name`.
///
/// # Errors
/// The problem that the client is told.
pub(super) async fn answer(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    name: String,
    request: Request<RequestBody>,
) -> Result<Answer, Problem> {
    if let Some(why) = status::refuses(&door.node) {
        return Err(Problem::not_ready(why));
    }
    check(&name)?;
    let load = carried::baggage(request.headers(), request.extensions().get::<Principal>().cloned())?;
    let pass = Pass::new(door, request.headers(), request.extensions().get::<Visitor>(), TOPICS, &name);
    let asked = Asked::new(door, name, load);
    if socket::is_wanted(request.headers()) {
        let terms = terms(&request)?;
        return socket::open(door, seat, asked, pass, terms, request);
    }
    match *request.method() {
        Method::POST => {
            let held = body::read(door, &[], request.into_body()).await?;
            seat.works();
            let published = asked.publish(&held.bytes).await?;
            Ok(service::json(StatusCode::OK, &published))
        }
        Method::GET if events::wanted(request.headers()) => {
            let terms = terms(&request)?;
            seat.works();
            let parcels = asked.follow(terms).await?;
            events::answer(door, seat.clone(), pass, SUBSCRIBE.to_owned(), source(parcels))
        }
        Method::GET => Err(Problem::only_events()),
        _ => Err(Problem::wrong_method("GET, POST")),
    }
}

impl Asked {
    /// The topic called `name`, for calls that carry `load`.
    pub(super) fn new(door: &Arc<Door>, name: String, load: Load) -> Self {
        let topic = TopicsRef::of(&Node::at(Arc::new(Port { node: door.node.clone() })), name);
        Self { door: door.clone(), topic, load }
    }

    /// Publishes a JSON text; what its publisher is told.
    pub(super) async fn publish(&self, text: &[u8]) -> Result<Value, Problem> {
        let event: Value = serde_json::from_slice(arguments::without_mark(text)).map_err(|error| {
            let message = format!("the event is not JSON: {error}");
            Refusal::Invalid { field: String::new(), message }
        })?;
        self.door.node.topics().check(self.topic.key())?;
        let _place = self.working()?;
        let call = self.topic.publish(event.to_string()).carrying(&self.load);
        let published = call.await.map_err(|error| problem(&error))?;
        Ok(json!({ "id": text_of(published.id), "subscribers": published.subscribers }))
    }

    /// Subscribes, and does so again where it was when the topic has moved.
    pub(super) async fn follow(&self, terms: Terms) -> Result<Parcels, Problem> {
        let state = (self.clone(), self.subscribe(terms).await?, terms);
        Ok(Box::pin(stream::unfold(Some(state), |state| async move {
            let (this, mut parcels, mut terms) = state?;
            loop {
                match parcels.next().await? {
                    Ok(parcel) => {
                        match &parcel {
                            Parcel::Began(next) => _ = terms.from.get_or_insert(*next),
                            Parcel::Event(id, _) => terms.from = Some(id.following()),
                            Parcel::Missed(_) | Parcel::TooSlow => {}
                        }
                        return Some((Ok(parcel), Some((this, parcels, terms))));
                    }
                    Err(error) if is_over(&error) => match this.subscribe_again(terms).await {
                        Some(again) => parcels = again,
                        None => return Some((Err(error), None)),
                    },
                    Err(error) => return Some((Err(error), None)),
                }
            }
        })))
    }

    /// Subscribes to a topic that may be on its way to another node. `None` if it does not get anywhere.
    async fn subscribe_again(&self, terms: Terms) -> Option<ReplyStream<Parcel>> {
        let until = Instant::now() + FOLLOW_MAX;
        loop {
            match self.subscribe(terms).await {
                Ok(parcels) => return Some(parcels),
                Err(_) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                Err(_) => return None,
            }
        }
    }

    async fn subscribe(&self, terms: Terms) -> Result<ReplyStream<Parcel>, Problem> {
        let _place = self.working()?;
        self.topic.subscribe(terms).carrying(&self.load).await.map_err(|error| problem(&error))
    }

    fn working(&self) -> Result<CallPlace<'_>, Problem> {
        let principal = self.load.as_deref().and_then(|baggage| baggage.principal.as_ref());
        self.door.calls.enter(stable_hash(TOPICS, self.topic.key()), principal.map(Principal::name))
    }
}

fn problem(error: &CallError<String>) -> Problem {
    let failure = match error {
        CallError::Actor(why) => return Problem::busy(why),
        CallError::Refused(refusal) => refusal.clone().into(),
        CallError::Unknown(doubt) => doubt.clone().into(),
        CallError::Cycle(path) => Failure::Cycle(path.clone()),
    };
    Problem::of(&failure)
}

/// A subscriber's parcels as events.
fn source(parcels: Parcels) -> Source {
    Box::pin(parcels.filter_map(|parcel| std::future::ready(event(parcel))))
}

fn event(parcel: Result<Parcel, CallError>) -> Option<Result<Event, Failure>> {
    Some(match parcel {
        Ok(Parcel::Began(_)) => return None,
        Ok(Parcel::Event(id, text)) => Ok(Event { id: Some(text_of(id)), name: None, data: text.into() }),
        Ok(Parcel::Missed(count)) => {
            let data = Bytes::from(json!({ "count": count }).to_string());
            Ok(Event { id: None, name: Some("missed".into()), data })
        }
        Ok(Parcel::TooSlow) => Err(too_slow().into()),
        Err(error) => Err(broken(error)),
    })
}

/// Whether it is the topic's activation that has gone, and not the subscription.
fn is_over(error: &CallError) -> bool {
    matches!(error, CallError::Unknown(Doubt::Ended { .. } | Doubt::Disconnected { .. } | Doubt::Fenced))
}

/// Why a subscription broke off.
pub(super) fn broken(error: CallError) -> Failure {
    match error {
        CallError::Actor(never) => match never {},
        CallError::Refused(refusal) => refusal.into(),
        CallError::Unknown(doubt) => doubt.into(),
        CallError::Cycle(path) => Failure::Cycle(path),
        // More kinds of errors are more doubts.
        #[allow(unreachable_patterns)]
        _ => Doubt::Dropped.into(),
    }
}

/// An event's name, as clients say it.
pub(super) fn text_of(id: EventId) -> String {
    format!("{}-{}", id.epoch, id.number)
}

/// The event that clients call so.
pub(super) fn event_id(text: &str) -> Option<EventId> {
    let (epoch, number) = text.split_once('-')?;
    Some(EventId { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
}

/// Returns how clients of endpoints subscribe, whatever they speak: they hold no publishers back. One that does not keep up is let go if
/// `disconnects`; else its oldest events are dropped.
pub(super) fn terms_of_client(disconnects: bool) -> Terms {
    let slow = if disconnects { Slow::Disconnect } else { Slow::DropOldest };
    Terms { slow, ..Terms::default() }
}

/// How the client subscribes: `?slow=drop-oldest|disconnect&queue=100`, and where it was, in `Last-Event-ID`.
fn terms(request: &Request<RequestBody>) -> Result<Terms, Problem> {
    let mut terms = terms_of_client(false);
    for pair in request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).map_err(|why| Problem::bad_request(&why))?;
        match (name, value.as_str()) {
            ("slow", "drop-oldest") => terms.slow = terms_of_client(false).slow,
            ("slow", "disconnect") => terms.slow = terms_of_client(true).slow,
            ("queue", len) => {
                let len = len.parse().ok().filter(|len| QUEUE_LEN.contains(len));
                terms.queue_len = len.ok_or_else(|| Problem::bad_request("queue is a number of events, 1 to 4096"))?;
            }
            ("slow", _) => return Err(Problem::bad_request("slow is drop-oldest or disconnect")),
            // What others add for themselves, such as against caches.
            _ => {}
        }
    }
    // Browsers send an empty one where no event had an id.
    if let Some(last) = request.headers().get("last-event-id").filter(|last| !last.is_empty()) {
        let id = last.to_str().ok().and_then(event_id);
        let id = id.ok_or_else(|| Problem::bad_request("Last-Event-ID is not the id of an event of a topic"))?;
        terms.from = Some(id.following());
    }
    Ok(terms)
}

/// How many events may wait for a client.
pub(super) const QUEUE_LEN: RangeInclusive<u32> = 1..=4096;
/// Time for a topic that has moved to be found again.
const FOLLOW_MAX: Duration = Duration::from_secs(30);
/// Time between two looks for it.
const PAUSE: Duration = Duration::from_millis(100);
/// The method that subscribes.
pub(super) const SUBSCRIBE: &str = "subscribe";
/// The method that publishes.
pub(super) const PUBLISH: &str = "publish";
