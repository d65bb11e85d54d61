//! One connection: HTTP/2, whose requests run beside each other.

use std::convert::Infallible;
use std::time::Duration;

use greenroom::door::{Connection, Visit};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::{Grpc, route};

/// Answers the requests that come on `connection`, to its end.
pub(crate) async fn serve(visit: Visit, door: Grpc, connection: Connection) {
    let asked = visit.clone();
    let service = service_fn(move |request| {
        let (visit, door) = (asked.clone(), door.clone());
        async move { Ok::<_, Infallible>(route::answer(visit, door, request).await) }
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADERS_LEN_MAX)
        .max_send_buf_size(SEND_BUFFER_LEN)
        .serve_connection(TokioIo::new(connection), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = visit.idle() => {
            // A request that is on its way is still answered; the node's bound on idle connections holds for the rest.
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served => ended,
                () = visit.halted() => return,
            }
        }
        () = visit.closing() => {
            // What runs is answered; what comes now goes to another node.
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served => ended,
                () = visit.halted() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a gRPC connection broke");
    }
}

/// Time between two pings, and for their answers: a client that is gone leaves its place.
const PING_EVERY: Duration = Duration::from_secs(20);
/// Requests that may run at once on a connection.
const STREAMS_MAX: u32 = 256;
/// Largest head of a request, in bytes.
const HEADERS_LEN_MAX: u32 = 32 << 10;
/// Bytes of one answer that may wait for its client.
const SEND_BUFFER_LEN: usize = 64 << 10;
