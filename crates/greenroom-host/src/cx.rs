//! What a turn, or a client, asks of the cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_protocols::host::Pulse;
use greenroom_wire::codec::Codec;
use greenroom_wire::host::{Ask, Call, FromHost, Operation};
use greenroom_wire::{ExtensionView, Status};
use greenroom_world::World;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::actor::{Ended, payload_as};
use crate::outbox::Outbox;
use crate::streams::Streams;

/// The way from a turn, or from a client, to all actors of the cluster.
#[derive(Clone)]
pub struct Cx {
    pub(crate) link: Arc<Link>,
    /// The turn that calls; 0 for a client.
    pub(crate) turn: u64,
    /// How the turn's arguments are written.
    pub(crate) codec: Codec,
}

/// A lane, and the right to act on it.
pub(crate) struct Link {
    pub(crate) world: Arc<dyn World>,
    pub(crate) outbox: Outbox,
    pub(crate) pulse: Arc<Mutex<Pulse>>,
    pub(crate) calls: Mutex<Calls>,
    pub(crate) streams: Streams,
}

#[derive(Default)]
pub(crate) struct Calls {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<(Status, Vec<u8>)>>,
    routes: BTreeMap<(String, String), u32>,
    is_closed: bool,
}

/// What became of a call that has no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The called method's own error: its payload.
    #[error("the called method has answered with its own error")]
    Actor(Vec<u8>),
    /// The status and what is said with it. With [`Status::Refused`], [`Status::Invalid`] and [`Status::Expired`] nothing has run.
    #[error("the call came to nothing: {0:?}")]
    Failed(Status, Vec<u8>),
    /// The host has lost its right to act, or its lane: the call may have run.
    #[error("the host has lost its lease or its lane; all that it had begun is abandoned")]
    Fenced,
    /// The call is over a bound of the protocol; nothing was sent.
    #[error("the call cannot be sent: {0}")]
    TooLarge(#[from] greenroom_wire::EncodeError),
}

impl Cx {
    /// Writes a turn's reply, or its own error, as a payload in the codec that its arguments came in (L17).
    ///
    /// # Errors
    /// [`Ended::Failed`] if it has no encoding.
    pub fn reply<T: Serialize + ?Sized>(&self, value: &T) -> Result<Vec<u8>, Ended> {
        payload_as(self.codec, value)
    }

    /// Calls an actor with a payload of arguments, and gives the payload of its reply. A turn's call has the turn's deadline.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call(&self, kind: &str, key: &str, method: &str, payload: &[u8]) -> Result<Vec<u8>, CallError> {
        self.call_by(kind, key, method, payload, None).await
    }

    /// The same, with so much time at most.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call_by(
        &self,
        kind: &str,
        key: &str,
        method: &str,
        payload: &[u8],
        left: Option<Duration>,
    ) -> Result<Vec<u8>, CallError> {
        if !self.link.may_act() {
            return Err(CallError::Fenced);
        }
        let (answer, answered) = oneshot::channel();
        let (request, route) = {
            let mut calls = self.link.calls.lock().expect("no call panics");
            if calls.is_closed {
                return Err(CallError::Fenced);
            }
            let next = calls.routes.len() as u32;
            let route = *calls.routes.entry((kind.to_owned(), method.to_owned())).or_insert(next);
            // The first call of a method takes its Define along, before any other can use the number.
            if route == next {
                let define = FromHost::Define { route, kind, method, version: 0 };
                if let Err(error) = self.link.outbox.send(&define) {
                    calls.routes.remove(&(kind.to_owned(), method.to_owned()));
                    return Err(error.into());
                }
            }
            calls.last += 1;
            let request = calls.last;
            calls.waiting.insert(request, answer);
            (request, route)
        };
        let extension = ExtensionView::EMPTY;
        let call = Call { request, turn: self.turn, route, key, left, extension, payload };
        let sent = self.link.outbox.send_paid(&FromHost::Call(call)).await;
        if let Err(error) = sent {
            self.link.calls.lock().expect("no call panics").waiting.remove(&request);
            return Err(error.into());
        }
        self.answered(answered).await
    }

    /// Asks the node for what is no call.
    pub(crate) async fn ask(&self, operation: Operation, payload: &[u8]) -> Result<Vec<u8>, CallError> {
        let (answer, answered) = oneshot::channel();
        let request = self.link.number();
        self.link.calls.lock().expect("no call panics").waiting.insert(request, answer);
        let ask = Ask { request, turn: self.turn, seat: 0, operation, payload };
        if let Err(error) = self.link.outbox.send_paid(&FromHost::Ask(ask)).await {
            self.link.calls.lock().expect("no call panics").waiting.remove(&request);
            return Err(error.into());
        }
        self.answered(answered).await
    }

    async fn answered(&self, answered: oneshot::Receiver<(Status, Vec<u8>)>) -> Result<Vec<u8>, CallError> {
        let (status, payload) = answered.await.map_err(|_| CallError::Fenced)?;
        match status {
            _ if !self.link.may_act() => Err(CallError::Fenced),
            Status::Ok => Ok(payload),
            Status::ActorError => Err(CallError::Actor(payload)),
            status => Err(CallError::Failed(status, payload)),
        }
    }
}

impl Link {
    /// Whether the host may act: looked at before each turn, and after whatever a turn has waited for.
    pub(crate) fn may_act(&self) -> bool {
        self.pulse.lock().expect("no pulse panics").may_act(self.world.now())
    }

    pub(crate) fn answer(&self, request: u64, status: Status, payload: &[u8]) {
        let waiting = self.calls.lock().expect("no call panics").waiting.remove(&request);
        if let Some(waiting) = waiting {
            let _ = waiting.send((status, payload.to_vec()));
        }
    }

    /// The next number of a request or a stream.
    pub(crate) fn number(&self) -> u64 {
        let mut calls = self.calls.lock().expect("no call panics");
        calls.last += 1;
        calls.last
    }

    /// Nobody is answered any more.
    pub(crate) fn close(&self) {
        let mut calls = self.calls.lock().expect("no call panics");
        calls.is_closed = true;
        calls.waiting.clear();
        drop(calls);
        self.streams.close();
        self.outbox.close();
    }
}
