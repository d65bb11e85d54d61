//! Server-sent events: streams for whoever speaks HTTP.
//!
//! The client's own pace is the stream's: when it takes nothing, nothing is asked of the producer, and when it has taken nothing for
//! [`STALL_MAX`] its connection goes. A client that leaves drops the body, and that cancels the stream.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use greenroom_wire::codec::{self, Codec};
use hyper::Response;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use super::Door;
use super::answer::{Answer, AnswerBody};
use super::connections::Seat;
use super::pass::Pass;
use super::problem::Problem;
use crate::actor::error::{Doubt, Failure};
use crate::actor::reply::ReplyForm;
use crate::here::port::Port;
use crate::stream::backlog::Held;
use crate::stream::handle::{Handle, Written};
use crate::stream::inlet::Inlet;
use crate::stream::pipe::Taken;

/// One event.
pub(super) struct Event {
    pub(super) id: Option<String>,
    /// Its type, if it is not the usual one.
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) data: Bytes,
}

/// Where events come from.
pub(super) type Source = Pin<Box<dyn Stream<Item = Result<Event, Failure>> + Send>>;

/// A body of events.
pub(super) struct Events {
    source: Source,
    /// When the client next hears that the door is still there.
    heartbeat: Pin<Box<Sleep>>,
    /// Why it must end, when it must.
    ending: Pin<Box<dyn Future<Output = Problem> + Send>>,
    seat: Arc<Seat>,
    over: bool,
    /// What is on its way to the client.
    leaving: Held,
    _permit: OwnedSemaphorePermit,
}

/// Whether the client wants events.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| {
        let mut kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.any(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
    })
}

/// An answer of events, for as long as who has this pass may call `method`.
///
/// # Errors
/// The door has as many streams as it may.
pub(super) fn answer(
    door: &Door,
    seat: Arc<Seat>,
    pass: Pass,
    method: String,
    source: Source,
) -> Result<Answer, Problem> {
    let permit = door.stream_permit()?;
    let heartbeat = Box::pin(tokio::time::sleep(HEARTBEAT));
    let ending = Box::pin(async move { pass.over(&method).await });
    seat.watches();
    let leaving = door.node.backlog().hold(0);
    let events = Events { source, heartbeat, ending, seat, over: false, leaving, _permit: permit };
    let mut answer = Response::new(AnswerBody::Events(Box::new(events)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies must not keep events back.
    answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(answer)
}

impl Events {
    /// More of the body; `None` at its end.
    pub(super) fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let bytes = ready!(self.poll_some(context));
        self.leaving.set(bytes.as_ref().map_or(0, Bytes::len));
        if bytes.is_some() {
            // From now on it is the client that the door waits for.
            self.seat.waits(Instant::now() + STALL_MAX);
        }
        Poll::Ready(bytes)
    }

    fn poll_some(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        self.seat.works();
        let mut out = BytesMut::new();
        if let Poll::Ready(problem) = self.ending.as_mut().poll(context) {
            self.over = true;
            Event::error(&problem).write(&mut out);
            return Poll::Ready(Some(out.freeze()));
        }
        while out.len() < CHUNK_LEN {
            let next = match self.source.as_mut().poll_next(context) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(event))) => event,
                Poll::Ready(Some(Err(failure))) => {
                    self.over = true;
                    Event::error(&Problem::of(&failure))
                }
                Poll::Ready(None) => {
                    self.over = true;
                    Event { id: None, name: Some("end".into()), data: Bytes::from_static(b"null") }
                }
            };
            next.write(&mut out);
            if self.over {
                break;
            }
        }
        if out.is_empty() {
            ready!(self.heartbeat.as_mut().poll(context));
            out.put_slice(b":\n\n");
        }
        self.heartbeat.as_mut().reset(tokio::time::Instant::now() + HEARTBEAT);
        Poll::Ready(Some(out.freeze()))
    }
}

impl Event {
    fn error(problem: &Problem) -> Self {
        Self { id: None, name: Some("error".into()), data: problem.document().to_string().into() }
    }

    fn write(&self, out: &mut BytesMut) {
        if let Some(id) = &self.id {
            out.put_slice(b"id: ");
            out.put_slice(id.as_bytes());
            out.put_u8(b'\n');
        }
        if let Some(name) = &self.name {
            out.put_slice(b"event: ");
            out.put_slice(name.as_bytes());
            out.put_u8(b'\n');
        }
        out.put_slice(b"data: ");
        // In JSON a line can end only where a space could be.
        out.extend(self.data.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        out.put_slice(b"\n\n");
    }
}

/// The stream that a reply is, if it is one.
pub(super) fn stream_of(reply: &[u8]) -> Option<Handle> {
    if !reply.starts_with(b"{\"greenroom:stream\":") {
        return None;
    }
    serde_json::from_slice::<Written>(reply).ok()?.stream.parse().ok()
}

/// The stream that a reply in `codec` is, if it is one.
pub(super) fn handle(reply: &[u8], codec: Codec) -> Option<Handle> {
    match codec {
        Codec::Json => stream_of(reply),
        // A map of one member, whose name has 16 bytes.
        Codec::MessagePack => {
            let text = reply.strip_prefix(b"\x81\xb0greenroom:stream")?;
            let payload = [&ReplyForm::PLAIN.head()[..], text].concat();
            codec::decode::<String>(&payload).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// The items of a stream of replies, numbered.
pub(super) fn items(door: &Door, handle: Handle) -> Source {
    let numbered = values(door, handle, Codec::Json).enumerate();
    Box::pin(numbered.map(|(number, data)| Ok(Event { id: Some(number.to_string()), name: None, data: data? })))
}

/// The items of a stream of replies, in `codec`.
pub(super) fn values(
    door: &Door,
    handle: Handle,
    codec: Codec,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send + use<> {
    struct Items(Arc<Inlet>);
    impl Drop for Items {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let inlet = Inlet::open(handle, codec, &Port { node: door.node.clone() });
    let mut reader = inlet.reader();
    let items = Items(inlet);
    futures_util::stream::poll_fn(move |context| {
        let item = match ready!(items.0.pipe.poll_take(context)) {
            Taken::End(end) => return Poll::Ready(end.err().map(Err)),
            Taken::Item(payload, size) => {
                if let Some(total) = reader.took(size) {
                    items.0.tell(total);
                }
                payload
            }
        };
        let value = match codec::parse(&item) {
            Ok(parsed) => Ok(item.slice_ref(parsed.value)),
            Err(error) => Err(Doubt::Unreadable { message: error.to_string() }.into()),
        };
        Poll::Ready(Some(value))
    })
}

/// Lets go of a stream that the client cannot have.
pub(super) fn give_up(door: &Door, handle: Handle) {
    Inlet::give_up(handle, &Port { node: door.node.clone() });
}

/// The media type of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// Silence after which the client hears that the door is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time for which a client may take nothing.
pub(super) const STALL_MAX: Duration = Duration::from_secs(60);
/// Bytes of events that are gathered before they leave.
const CHUNK_LEN: usize = 16 << 10;
