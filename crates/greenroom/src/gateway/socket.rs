//! Topics over a WebSocket: each text from the client is an event to publish, each text to it says what has come.
//!
//! To the client: `{"id": "1-7", "event": ..}`, `{"missed": 3}`, `{"published": {..}}` for each event of its own, and
//! `{"error": {..}}`, a problem document, before the socket closes or when an event was refused.
//!
//! A socket has one subscription, so strangers who want many need as many connections, which are counted.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Door;
use super::answer::{Answer, AnswerBody};
use super::body::RequestBody;
use super::connections::Seat;
use super::events::STALL_MAX;
use super::pass::Pass;
use super::problem::Problem;
use super::topic::{self, Asked, PUBLISH, Parcels, SUBSCRIBE};
use crate::actor::error::{CallError, Doubt};
use crate::topic::actor::{Parcel, Terms};
use crate::topic::too_slow;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Whether the client wants a WebSocket.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Lets the client have one.
///
/// # Errors
/// The request is not a handshake of a WebSocket, or the door has as many streams as it may.
pub(super) fn open(
    door: &Arc<Door>,
    seat: &Arc<Seat>,
    topic: Asked,
    pass: Pass,
    terms: Terms,
    mut request: Request<RequestBody>,
) -> Result<Answer, Problem> {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let key = header("sec-websocket-key").filter(|_| request.method() == Method::GET);
    let Some(key) = key.filter(|_| header("sec-websocket-version") == Some(b"13")) else {
        return Err(Problem::bad_request("this is not the handshake of a WebSocket of version 13"));
    };
    let accept = derive_accept_key(key);
    let permit = door.stream_permit()?;
    let upgrading = hyper::upgrade::on(&mut request);
    let (door, seat) = (door.clone(), seat.clone());
    tokio::spawn(async move {
        let serving = async {
            let upgraded = match upgrading.await {
                Ok(upgraded) => upgraded,
                Err(error) => return tracing::debug!(%error, "a WebSocket was not opened"),
            };
            let len_max = text_len_max(&door);
            let config = WebSocketConfig::default()
                .max_message_size(Some(len_max))
                .max_frame_size(Some(len_max))
                .read_buffer_size(BUFFER_LEN)
                .write_buffer_size(0);
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
            serve(&door, &seat, (&topic, &pass), terms, socket).await;
        };
        let halted = async {
            door.node.halted().await;
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            () = serving => {}
            () = seat.outstayed() => {}
            () = halted => {}
        }
        drop(permit);
    });
    let mut answer = Response::new(AnswerBody::whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert("sec-websocket-accept", accept);
    }
    Ok(answer)
}

/// Longest text that a client may send. As many as there may be sockets are held at once.
fn text_len_max(door: &Door) -> usize {
    door.node.config().http_body_len_max.min(TEXT_LEN_MAX)
}

async fn serve(door: &Door, seat: &Seat, asked: (&Asked, &Pass), terms: Terms, mut socket: Socket) {
    let end = match asked.0.follow(terms).await {
        Ok(mut parcels) => exchange(door, seat, asked, &mut parcels, &mut socket).await,
        Err(problem) => End::Problem(problem),
    };
    // Nobody waits for a client that does not take it.
    let _ = tokio::time::timeout(FAREWELL, part(&mut socket, end)).await;
    // The client gets to read why; an error means that it is gone.
    let _ = socket.get_mut().shutdown().await;
}

/// Why a socket closes.
enum End {
    /// The client has closed it, or is gone.
    Left,
    /// The client does not keep to the protocol.
    Broken(CloseCode, &'static str),
    /// The client has answered nothing for too long.
    Silent,
    Problem(Problem),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::Utf8(_) => Self::Broken(CloseCode::Invalid, "a text is not UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Left,
            Error::Protocol(_) => Self::Broken(CloseCode::Protocol, "a frame is none of RFC 6455"),
            _ => Self::Left,
        }
    }
}

/// Brings events both ways, until the client leaves or the subscription must end.
async fn exchange(
    door: &Door,
    seat: &Seat,
    (topic, pass): (&Asked, &Pass),
    parcels: &mut Parcels,
    socket: &mut Socket,
) -> End {
    let mut over = pin!(pass.over(SUBSCRIBE));
    let mut heard = Instant::now();
    seat.works();
    seat.watches();
    loop {
        seat.works();
        let quiet = tokio::time::sleep(HEARTBEAT);
        let said = tokio::select! {
            problem = &mut over => return End::Problem(problem),
            parcel = parcels.next() => match parcel.unwrap_or(Err(CallError::Unknown(Doubt::Dropped))) {
                Ok(Parcel::Began(_)) => continue,
                Ok(Parcel::Event(id, text)) => {
                    Message::text(format!("{{\"id\":\"{}\",\"event\":{text}}}", topic::text_of(id)))
                }
                Ok(Parcel::Missed(count)) => Message::text(json!({ "missed": count }).to_string()),
                Ok(Parcel::TooSlow) => return End::Problem(too_slow().into()),
                Err(error) => return End::Problem(Problem::of(&topic::broken(error))),
            },
            message = socket.next() => {
                heard = Instant::now();
                match message.unwrap_or(Err(Error::ConnectionClosed)) {
                    Ok(Message::Text(text)) => Message::text(published(topic, pass, text.as_bytes()).await.to_string()),
                    Ok(Message::Binary(bytes)) => Message::text(published(topic, pass, &bytes).await.to_string()),
                    Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                    Err(Error::Capacity(_)) => return End::Problem(Problem::too_large(text_len_max(door))),
                    Ok(Message::Close(_)) => return End::Left,
                    Err(error) => return error.into(),
                }
            }
            () = quiet => {
                if heard.elapsed() >= STALL_MAX {
                    return End::Silent;
                }
                Message::Ping(Bytes::new())
            }
        };
        let _leaving = door.node.backlog().hold(said.len());
        if say(seat, socket, said).await.is_none() {
            return End::Left;
        }
    }
}

/// Publishes what the client has said, if it may; what it is told.
async fn published(topic: &Asked, pass: &Pass, text: &[u8]) -> Value {
    let published = match pass.check(PUBLISH).await {
        Ok(()) => topic.publish(text).await,
        Err(problem) => Err(problem),
    };
    match published {
        Ok(published) => json!({ "published": published }),
        Err(problem) => json!({ "error": problem.document() }),
    }
}

/// Says something to the client, who has a time to take it in. `None` if it did not.
async fn say(seat: &Seat, socket: &mut Socket, message: Message) -> Option<()> {
    seat.waits(Instant::now() + STALL_MAX);
    socket.send(message).await.ok()
}

/// Closes the socket, with a reason if it is not the client who did.
async fn part(socket: &mut Socket, end: End) -> Result<(), Error> {
    let (code, reason) = match end {
        // The answer to the client's own farewell waits to be sent, with its code.
        End::Left => return socket.flush().await,
        End::Broken(code, reason) => (code, reason),
        End::Silent => (CloseCode::Error, "no answer to a ping"),
        End::Problem(problem) => {
            socket.send(Message::text(json!({ "error": problem.document() }).to_string())).await?;
            (code_of(problem.name()), problem.name())
        }
    };
    socket.close(Some(CloseFrame { code, reason: reason.into() })).await
}

/// What a problem is among the reasons of RFC 6455 and its registry.
fn code_of(problem: &str) -> CloseCode {
    match problem {
        "stopping" => CloseCode::Away,
        "unauthenticated" | "forbidden" | "denied" => CloseCode::Policy,
        "too-large" => CloseCode::Size,
        "overloaded" | "unavailable" | "incompatible-version" | "expired" => CloseCode::Again,
        _ => CloseCode::Error,
    }
}

/// Silence after which the client is asked whether it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time for the client to take in why the socket closes.
const FAREWELL: Duration = Duration::from_secs(1);
/// Longest text from a client, in bytes.
const TEXT_LEN_MAX: usize = 64 << 10;
/// Bytes that are read at a time.
const BUFFER_LEN: usize = 4 << 10;
