//! Connections: let in, turned away, served to their end.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::body::RequestBody;
use super::client_stream::ClientStream;
use super::connections::Seat;
use super::guard::{Entered, Visitor};
use super::protocol::Connection;
use super::visit::Visit;
use super::{Door, FAREWELL, HEAD_LEN_MAX, LOOK_EVERY, Speech, service};
use crate::net::Lingering;

/// Does what the doors need done beside their connections, until the node takes no calls any more.
pub(super) async fn look_after(door: Arc<Door>) {
    tokio::select! {
        () = door.guard.look_after(&door.node) => {}
        () = make_room(&door) => {}
        _ = door.node.halted() => {}
        () = closing(&door) => {}
    }
    door.closed.send_replace(true);
}

pub(super) async fn accept(door: Arc<Door>, listener: TcpListener, speech: Speech) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "a door cannot be opened"),
    };
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match door.connections.seat(door.head_until()) {
                    Some(seat) => {
                        tokio::spawn(attend(door.clone(), speech.clone(), stream, seat));
                    }
                    None => turn_away(&door, &speech, stream),
                },
                Err(error) => {
                    // The usual cause is too many open files: make room.
                    tracing::debug!(%error, "a connection could not be accepted");
                    door.connections.dismiss_longest_waiting();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = door.node.halted() => {}
        () = closing(&door) => {
            // Who has connected is answered; who comes now is refused by the system, and knows that nothing ran.
            while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
                if let Some(seat) = door.connections.seat(door.head_until()) {
                    tokio::spawn(attend(door.clone(), speech.clone(), stream, seat));
                }
            }
        }
    }
}

/// Waits until the node takes no calls from outside any more.
async fn closing(door: &Door) {
    while !door.node.is_closing() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Lets those watchers go that have taken nothing for longest, as long as more waits than may, for as long as the door is open.
async fn make_room(door: &Door) {
    loop {
        door.node.backlog().overflow().await;
        let gone = door.let_watchers_go();
        if gone > 0 {
            tracing::warn!(gone, "too much waits for slow watchers: those that took nothing for longest were let go");
        }
        // What they held is given back meanwhile.
        tokio::time::sleep(ROOM_PAUSE).await;
    }
}

/// Says in one packet, if it fits, that there is no room. A few clients at a time are heard out, so that they get to read it.
fn turn_away(door: &Door, speech: &Speech, stream: TcpStream) {
    door.refused.fetch_add(1, Ordering::Relaxed);
    if let Speech::Http = speech {
        // Nobody waits for a client that does not take it.
        let _ = stream.try_write(NO_ROOM);
        if let Ok(permit) = door.turned_away.clone().try_acquire_owned() {
            tokio::spawn(async move {
                // It ends within the bounds of every close; an error means that the client is gone.
                let _ = Lingering::new(stream).shutdown().await;
                drop(permit);
            });
        }
    }
}

/// Serves one connection to its end.
async fn attend(door: Arc<Door>, speech: Speech, stream: TcpStream, seat: Arc<Seat>) {
    let _ = stream.set_nodelay(true);
    // Beyond this the system takes nothing for a client that reads slowly: it costs no memory, and pages that it is told are not old.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
    let serving = async {
        // A connection that says nothing costs no buffer.
        if stream.readable().await.is_err() {
            return;
        }
        let stream = ClientStream::new(stream, seat.clone(), door.node.config().http_head_timeout);
        match (door.guard.enter(stream, speech.name()).await, &speech) {
            (Ok((entered, visitor)), Speech::Other(protocol)) => {
                let visit = Visit::new(door.clone(), seat.clone(), visitor);
                let connection = Connection::new(entered, &visit);
                protocol.attend(visit, connection).await;
            }
            (Ok((Entered::Plain(stream), visitor)), Speech::Http) => serve(&door, &seat, visitor, stream).await,
            (Ok((Entered::Secure(stream), visitor)), Speech::Http) => serve(&door, &seat, visitor, stream).await,
            (Err(error), _) => {
                door.refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a client was not let in");
            }
        }
    };
    tokio::select! {
        () = serving => {}
        () = seat.outstayed() => {}
    }
}

/// Answers the requests that come on `stream`.
async fn serve<S>(door: &Arc<Door>, seat: &Arc<Seat>, visitor: Visitor, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|mut request| {
        let (door, seat) = (door.clone(), seat.clone());
        request.extensions_mut().insert(visitor.clone());
        let request = request.map(RequestBody::new);
        async move { Ok::<_, std::convert::Infallible>(service::answer(&door, &seat, request).await) }
    });
    let connection = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = door.node.halted() => {
            // What was being answered still is.
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection broke");
    }
}

/// Header fields of a request.
const HEADERS_MAX: usize = 64;
/// Time for those who leave to give back what they held.
const ROOM_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Bytes of a connection that the system keeps and has not sent yet.
const UNSENT_MAX: u32 = 128 << 10;
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-length: 0\r\n\r\n";
