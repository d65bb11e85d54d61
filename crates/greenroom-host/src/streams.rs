//! Streams: those that turns give, and those that are consumed of others.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::{Stream, StreamExt};
use greenroom_wire::Status;
use greenroom_wire::host::{FromHost, Operation};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use crate::actor::{Ended, payload};
use crate::cx::{CallError, Cx, Link};

/// What a turn gives as its stream: payloads, until the first error.
pub(crate) type Items = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Ended>> + Send>>;

/// The streams of a lane.
#[derive(Default)]
pub(crate) struct Streams(Mutex<State>);

#[derive(Default)]
struct State {
    /// What turns that have not ended give as their streams.
    given: BTreeMap<u64, Items>,
    /// Whose items go as there is room, by the room.
    produced: BTreeMap<u64, (u64, watch::Sender<Room>)>,
    consumed: BTreeMap<u64, mpsc::UnboundedSender<Heard>>,
}

/// Items that a consumer has room for since the beginning; `None` once it wants no more.
type Room = Option<u64>;

enum Heard {
    Item(Vec<u8>),
    End(Status, Vec<u8>),
}

impl Streams {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no stream panics")
    }

    /// Takes what the turn gives as its stream, if it does.
    pub(crate) fn take_given(&self, turn: u64) -> Option<Items> {
        self.state().given.remove(&turn)
    }

    /// The consumer's word on its room.
    pub(crate) fn credit(&self, stream: u64, window: u32, consumed: u64) {
        if let Some((_, room)) = self.state().produced.get(&stream) {
            room.send_modify(|room| match (window, &room) {
                (0, _) => *room = None,
                (window, Some(until)) => *room = Some((*until).max(consumed + u64::from(window))),
                (_, None) => {}
            });
        }
    }

    /// A seat is left: its streams end.
    pub(crate) fn end_of(&self, seat: u64) {
        self.state().produced.retain(|_, (of, _)| *of != seat);
    }

    pub(crate) fn item(&self, stream: u64, payload: &[u8]) {
        if let Some(consumer) = self.state().consumed.get(&stream) {
            let _ = consumer.send(Heard::Item(payload.to_vec()));
        }
    }

    pub(crate) fn end(&self, stream: u64, status: Status, payload: &[u8]) {
        if let Some(consumer) = self.state().consumed.remove(&stream) {
            let _ = consumer.send(Heard::End(status, payload.to_vec()));
        }
    }

    /// Nothing comes and goes any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.produced.clear();
        state.consumed.clear();
    }
}

impl Link {
    /// Begins to bring a stream of a seat to its consumer, as that has room; its number, and what brings it.
    pub(crate) fn produce(self: &Arc<Self>, seat: u64, items: Items) -> (u64, impl Future<Output = ()> + use<>) {
        let number = self.number();
        let (sender, room) = watch::channel(Some(0));
        self.streams.state().produced.insert(number, (seat, sender));
        (number, self.clone().bring(number, items, room))
    }

    async fn bring(self: Arc<Self>, stream: u64, mut items: Items, mut room: watch::Receiver<Room>) {
        let mut number = 0;
        let (status, payload) = loop {
            // Without a seat or a consumer there is nobody to be told.
            match room.wait_for(|room| room.is_none_or(|until| number < until)).await.as_deref() {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
            let item = items.next().await;
            if !self.may_act() {
                return;
            }
            match item {
                None => break (Status::Ok, Vec::new()),
                Some(Ok(payload)) => {
                    let item = FromHost::StreamItem { stream, number, payload: &payload };
                    if let Err(error) = self.outbox.send_paid(&item).await {
                        break crate::lane::failed(&error.to_string());
                    }
                    number += 1;
                }
                Some(Err(Ended::Error(error))) => break (Status::ActorError, error),
                Some(Err(Ended::Invalid(why) | Ended::Failed(why))) => break crate::lane::failed(&why),
            }
        };
        self.streams.state().produced.remove(&stream);
        let _ = self.outbox.send(&FromHost::StreamEnd { stream, number, status, payload: &payload });
    }
}

/// The parameters of [`Operation::OpenStream`].
#[derive(Serialize)]
struct Open<'a> {
    name: &'a str,
    stream: u64,
    window: u32,
}

/// A reply that is a stream.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "greenroom:stream")]
    name: String,
}

impl Cx {
    /// Gives the turn's caller a stream of payloads, each written by [`reply`](Self::reply), in place of the reply that the turn ends with. It runs
    /// beside later turns as its consumer has room, and ends with the seat.
    pub fn give(&self, items: impl Stream<Item = Result<Vec<u8>, Ended>> + Send + 'static) {
        self.link.streams.state().given.insert(self.turn, Box::pin(items));
    }

    /// Opens the stream that the `reply` of a call is.
    ///
    /// # Errors
    /// [`CallError`]: it is no stream, or the stream is gone.
    pub async fn open(&self, reply: &[u8]) -> Result<Incoming, CallError> {
        let named = greenroom_wire::codec::decode::<Named>(reply);
        let name = named.map_err(|error| CallError::Failed(Status::Invalid, error.to_string().into_bytes()))?.name;
        let stream = self.link.number();
        let (sender, heard) = mpsc::unbounded_channel();
        self.link.streams.state().consumed.insert(stream, sender);
        let incoming = Incoming { link: self.link.clone(), stream, heard, taken: 0, told: 0, is_over: false };
        let parameters = payload(&Open { name: &name, stream, window: WINDOW });
        let parameters = parameters.map_err(|_| CallError::Fenced)?;
        self.ask(Operation::OpenStream, &parameters).await?;
        Ok(incoming)
    }
}

/// A stream that is consumed here. Dropped, it is given up.
pub struct Incoming {
    link: Arc<Link>,
    stream: u64,
    heard: mpsc::UnboundedReceiver<Heard>,
    taken: u64,
    told: u64,
    is_over: bool,
}

impl Incoming {
    /// The next item, a payload; `None` at the end.
    ///
    /// # Errors
    /// [`CallError`]: it has broken off.
    ///
    /// # Cancel safety
    /// Safe: no item is lost.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, CallError>> {
        if self.is_over {
            return None;
        }
        let heard = self.heard.recv().await;
        if heard.is_none() || !self.link.may_act() {
            self.is_over = true;
            return Some(Err(CallError::Fenced));
        }
        match heard? {
            Heard::Item(payload) => {
                self.taken += 1;
                if self.taken - self.told >= u64::from(WINDOW) / 2 {
                    self.credit(WINDOW);
                }
                Some(Ok(payload))
            }
            Heard::End(status, payload) => {
                self.is_over = true;
                match status {
                    Status::Ok => None,
                    Status::ActorError => Some(Err(CallError::Actor(payload))),
                    status => Some(Err(CallError::Failed(status, payload))),
                }
            }
        }
    }

    fn credit(&mut self, window: u32) {
        self.told = self.taken;
        let credit = FromHost::StreamCredit { stream: self.stream, window, consumed: self.taken };
        // It is within all bounds.
        let _ = self.link.outbox.send(&credit);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.link.streams.state().consumed.remove(&self.stream).is_some() {
            self.credit(0);
        }
    }
}

/// Items that may be under way to a consumer.
const WINDOW: u32 = 64;
