//! A request's body, in bounds.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::SemaphorePermit;

use super::Door;
use super::problem::Problem;
use crate::actor::error::Refusal;

/// The body of an HTTP request, which notes when it has been read to its end.
pub(super) struct RequestBody {
    incoming: Incoming,
    unread: Arc<AtomicBool>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming) -> Self {
        let unread = Arc::new(AtomicBool::new(!incoming.is_end_stream()));
        Self { incoming, unread }
    }

    /// Returns a flag that is true as long as some of the body has not been read.
    pub(super) fn unread(&self) -> Arc<AtomicBool> {
        self.unread.clone()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.incoming).poll_frame(context));
        if frame.is_none() || this.incoming.is_end_stream() {
            this.unread.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// A body, and the room that it takes until it is dropped.
pub(super) struct Held<'a> {
    pub(super) bytes: Vec<u8>,
    _room: Option<SemaphorePermit<'a>>,
}

/// Reads `body` behind `head`, which the bytes will begin with.
///
/// # Errors
/// The problem that the client is told.
pub(super) async fn read<'a>(
    door: &'a Door,
    head: &[u8],
    body: impl Body<Data = Bytes, Error = hyper::Error> + Unpin,
) -> Result<Held<'a>, Problem> {
    let config = door.node.config();
    let (max, patience) = (config.http_body_len_max, config.http_body_timeout);
    if body.size_hint().lower() > max as u64 {
        return Err(Problem::too_large(max));
    }
    tokio::select! {
        read = collect(door, head, body, max) => read,
        () = tokio::time::sleep(patience) => Err(Problem::slow_body(patience)),
        () = door.drained() => Err(Problem::from(Refusal::Stopping).closing()),
    }
}

async fn collect<'a>(
    door: &'a Door,
    head: &[u8],
    mut body: impl Body<Data = Bytes, Error = hyper::Error> + Unpin,
    max: usize,
) -> Result<Held<'a>, Problem> {
    let mut bytes = head.to_vec();
    let mut room: Option<SemaphorePermit<'a>> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::broken_body(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() - head.len() + data.len() > max {
            return Err(Problem::too_large(max));
        }
        let more = u32::try_from(data.len()).ok().and_then(|len| door.bodies.try_acquire_many(len).ok());
        match (more, &mut room) {
            (Some(more), Some(room)) => room.merge(more),
            (Some(more), None) => room = Some(more),
            (None, _) => return Err(Problem::busy("the door holds as many bytes of requests as it may")),
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Held { bytes, _room: room })
}
