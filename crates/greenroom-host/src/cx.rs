//! What a turn, or a client, asks of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::host::Pulse;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{Ask, Call, FromHost, Operation};
use greenroom_wire::{ExtensionError, Status};
use greenroom_world::World;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::actor::{Ended, payload_as};
use crate::carried::Carried;
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
    /// The extension block of the turn's message.
    pub(crate) came: Bytes,
    pub(crate) carried: Option<Arc<Carried>>,
}

/// A lane, and the right to act on it.
pub(crate) struct Link {
    pub(crate) world: Arc<dyn World>,
    pub(crate) outbox: Outbox,
    pub(crate) pulse: Arc<Mutex<Pulse>>,
    pub(crate) calls: Mutex<Calls>,
    pub(crate) streams: Streams,
    /// Whether the node runs reliable turns twice.
    pub(crate) rerun: bool,
}

#[derive(Default)]
pub(crate) struct Calls {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<(Status, Vec<u8>)>>,
    routes: BTreeMap<(String, String), u32>,
    /// Turns whose actors halt with them.
    halting: BTreeSet<u64>,
    is_closed: bool,
}

/// The parameters of [`Operation::SetTimer`].
#[derive(Serialize)]
struct Timer<'a> {
    name: &'a str,
    method: &'a str,
    after_us: u64,
    arguments: &'a serde_bytes::Bytes,
}

/// The parameters of [`Operation::SetReminder`].
#[derive(Serialize)]
struct Reminder<'a> {
    name: &'a str,
    method: &'a str,
    after_ms: u64,
    arguments: &'a serde_bytes::Bytes,
}

/// The parameters of [`Operation::Migrate`].
#[derive(Serialize)]
struct To<'a> {
    node: &'a str,
}

/// The parameters of [`Operation::Chosen`].
#[derive(Serialize)]
struct Chosen<'a> {
    value: &'a serde_bytes::Bytes,
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
    /// The call is to carry more than it can; nothing was sent.
    #[error(transparent)]
    TooMuch(#[from] ExtensionError),
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
        let extension = self.extension()?;
        let (answer, answered) = oneshot::channel();
        let (request, route) = {
            let mut calls = self.link.calls.lock().expect("no call panics");
            if calls.is_closed {
                return Err(CallError::Fenced);
            }
            let route = self.link.define(&mut calls, kind, method)?;
            calls.last += 1;
            let request = calls.last;
            calls.waiting.insert(request, answer);
            (request, route)
        };
        let call = Call { request, turn: self.turn, route, key, left, extension: extension.view(), payload };
        let sent = self.link.outbox.send_paid(&FromHost::Call(call)).await;
        if let Err(error) = sent {
            self.link.calls.lock().expect("no call panics").waiting.remove(&request);
            return Err(error.into());
        }
        self.answered(answered).await
    }

    /// Sends an actor a one-way message, once there is room on the lane. Of a turn of a reliable actor it leaves with that turn's
    /// commit.
    ///
    /// # Errors
    /// [`CallError`]: it was not sent.
    pub async fn send(&self, kind: &str, key: &str, method: &str, payload: &[u8]) -> Result<(), CallError> {
        if !self.link.may_act() {
            return Err(CallError::Fenced);
        }
        let route = {
            let mut calls = self.link.calls.lock().expect("no call panics");
            if calls.is_closed {
                return Err(CallError::Fenced);
            }
            self.link.define(&mut calls, kind, method)?
        };
        let extension = self.extension()?;
        let call = Call { request: 0, turn: self.turn, route, key, left: None, extension: extension.view(), payload };
        Ok(self.link.outbox.send_paid(&FromHost::Call(call)).await?)
    }

    /// Sends the turn's own actor a message when this time has passed, with the commit of a turn of a reliable actor. A timer of
    /// the same name is replaced.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn after(&self, name: &str, after: Duration, method: &str, arguments: &[u8]) -> Result<(), CallError> {
        let arguments = serde_bytes::Bytes::new(arguments);
        let timer = Timer { name, method, after_us: u64::try_from(after.as_micros()).unwrap_or(u64::MAX), arguments };
        let parameters = payload_as(Codec::MessagePack, &timer).map_err(|_| CallError::Fenced)?;
        self.ask(Operation::SetTimer, &parameters).await.map(drop)
    }

    /// Has the turn's own actor called when this time has passed, whether it is active then or not. A reminder of the same name is replaced.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn remind(&self, name: &str, after: Duration, method: &str, arguments: &[u8]) -> Result<(), CallError> {
        let arguments = serde_bytes::Bytes::new(arguments);
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let parameters = payload_as(Codec::MessagePack, &Reminder { name, method, after_ms, arguments });
        self.ask(Operation::SetReminder, &parameters.map_err(|_| CallError::Fenced)?).await.map(drop)
    }

    /// What `make` gives: chance, the time, whatever neither the message nor what is stored decides. Where a test's node runs reliable
    /// turns twice, the second run gets what the first one got; anywhere else nobody is asked.
    ///
    /// # Errors
    /// [`CallError`]: the turn is over, or the value has no encoding.
    pub async fn choose<T: Serialize + DeserializeOwned>(&self, make: impl FnOnce() -> T) -> Result<T, CallError> {
        let made = make();
        if !self.link.rerun || self.turn == 0 {
            return Ok(made);
        }
        let value = payload_as(Codec::MessagePack, &made).map_err(|_| CallError::Fenced)?;
        let parameters = payload_as(Codec::MessagePack, &Chosen { value: serde_bytes::Bytes::new(&value) });
        let chosen = self.ask(Operation::Chosen, &parameters.map_err(|_| CallError::Fenced)?).await?;
        codec::decode(&chosen).map_err(|_| CallError::Fenced)
    }

    /// Lets the turn's activation go to the node called `node` when the turn is over.
    ///
    /// # Errors
    /// [`CallError`]: it stays. With [`Status::Invalid`] there is no such node, it hosts none of the kind, or the kind does not travel.
    pub async fn migrate(&self, node: &str) -> Result<(), CallError> {
        let parameters = payload_as(Codec::MessagePack, &To { node }).map_err(|_| CallError::Fenced)?;
        self.ask(Operation::Migrate, &parameters).await.map(drop)
    }

    /// Ends the turn's activation when the turn is over.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn deactivate(&self) -> Result<(), CallError> {
        self.ask(Operation::Deactivate, &[]).await.map(drop)
    }

    /// Ends the turn's reliable actor with the turn's commit: nothing of it stays.
    pub fn halt(&self) {
        self.link.calls.lock().expect("no call panics").halting.insert(self.turn);
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

    /// The number of a method on this lane.
    fn define(&self, calls: &mut Calls, kind: &str, method: &str) -> Result<u32, CallError> {
        let next = calls.routes.len() as u32;
        let route = *calls.routes.entry((kind.to_owned(), method.to_owned())).or_insert(next);
        // The first call of a method takes its Define along, before any other can use the number.
        if route == next {
            let define = FromHost::Define { route, kind, method, version: 0 };
            if let Err(error) = self.outbox.send(&define) {
                calls.routes.remove(&(kind.to_owned(), method.to_owned()));
                return Err(error.into());
            }
        }
        Ok(route)
    }

    /// Whether the actor halts with this turn, which has ended.
    pub(crate) fn take_halt(&self, turn: u64) -> bool {
        self.calls.lock().expect("no call panics").halting.remove(&turn)
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
