//! A request's body, in bounds.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::SemaphorePermit;

use super::Door;
use super::problem::Problem;

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
    body: Incoming,
    patience: Duration,
) -> Result<Held<'a>, Problem> {
    let max = door.node.config().http_body_len_max;
    if body.size_hint().lower() > max as u64 {
        return Err(Problem::too_large(max));
    }
    match tokio::time::timeout(patience, collect(door, head, body, max)).await {
        Ok(read) => read,
        Err(_) => Err(Problem::slow_body(patience)),
    }
}

async fn collect<'a>(door: &'a Door, head: &[u8], mut body: Incoming, max: usize) -> Result<Held<'a>, Problem> {
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
