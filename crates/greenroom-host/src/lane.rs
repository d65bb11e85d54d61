//! A user lane: seats, turns, and what these call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use greenroom_protocols::host::Pulse;
use greenroom_wire::Status;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{
    ABANDONED, Activate, Decoder, FieldsWriter, Form, FromHost, FromNode, Join, JoinMap, TurnEnd, Welcome,
};
use greenroom_world::{Stage, World};
use serde::Serialize;
use tokio::io::ReadHalf;
use tokio::sync::{mpsc, watch};

use crate::actor::{Actor, Ended, Kind, payload};
use crate::cx::{Cx, Link};
use crate::outbox::Outbox;
use crate::session::{Error, Incoming, broken};
use crate::streams::{Items, Streams};
use crate::{Connection, Dial};

/// What a lane is joined with.
pub(crate) struct Joining {
    pub(crate) world: Arc<dyn World>,
    pub(crate) dial: Dial,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) pulse: Arc<Mutex<Pulse>>,
    pub(crate) welcome: Welcome,
    pub(crate) shard: u32,
}

/// A lane that was joined.
pub(crate) struct Lane {
    link: Arc<Link>,
    /// Told `true` when all is to be dropped.
    stop: watch::Sender<bool>,
    /// Ends when nothing of the lane runs any more.
    running: mpsc::Receiver<()>,
}

impl Lane {
    /// The way to all actors, for who runs no turn.
    pub(crate) fn client(&self) -> Cx {
        Cx { link: self.link.clone(), turn: 0, codec: Codec::MessagePack, came: Bytes::new(), carried: None }
    }

    /// Drops all seats; afterwards nothing of them runs.
    pub(crate) async fn drop_all(mut self) {
        self.stop.send_replace(true);
        self.link.close();
        while self.running.recv().await.is_some() {}
    }
}

/// What every task of a lane holds, so that its end is known.
#[derive(Clone)]
struct Running {
    stopped: watch::Receiver<bool>,
    _running: mpsc::Sender<()>,
}

impl Running {
    async fn stopped(&mut self) {
        let _ = self.stopped.wait_for(|stopped| *stopped).await;
    }
}

pub(crate) async fn join(joining: Joining) -> Result<Lane, Error> {
    let Joining { world, dial, kinds, pulse, welcome, shard } = joining;
    let (read, write) = tokio::io::split(dial().await?);
    let outbox = Outbox::new(welcome.map.frame_len_max, welcome.map.window);
    let map = JoinMap { session: welcome.map.session, secret: welcome.map.secret, shard };
    let first = FromHost::Join(Join { version: welcome.version, map });
    outbox.send(&first).map_err(|error| Error::Broken(error.to_string()))?;
    let link = Arc::new(Link {
        world: world.clone(),
        outbox,
        pulse,
        calls: Mutex::default(),
        streams: Streams::default(),
        rerun: welcome.map.rerun,
    });
    let (stop, stopped) = watch::channel(false);
    let (sender, running) = mpsc::channel(1);
    let mut writing = Running { stopped, _running: sender };
    let reading = writing.clone();
    let written = link.clone();
    world.spawn(
        Stage::Door,
        Box::pin(async move {
            tokio::select! {
                () = written.outbox.drain(write) => {}
                () = writing.stopped() => {}
            }
        }),
    );
    let mut seats = Seats { link: link.clone(), kinds, seats: BTreeMap::new(), running: reading };
    let frame_len_max = welcome.map.frame_len_max;
    world.spawn(
        Stage::Door,
        Box::pin(async move {
            let mut running = seats.running.clone();
            tokio::select! {
                // A lane that breaks drops its seats; that it has, it says when it is asked.
                _ = seats.read(read, frame_len_max) => {}
                () = running.stopped() => {}
            }
            seats.seats.clear();
            seats.link.close();
        }),
    );
    Ok(Lane { link, stop, running })
}

struct Seats {
    link: Arc<Link>,
    kinds: Vec<Kind>,
    seats: BTreeMap<u64, mpsc::UnboundedSender<Order>>,
    running: Running,
}

/// What an instance is told, in order. The node bounds how many turns are open.
enum Order {
    Turn { turn: u64, method: u32, came: Bytes, arguments: Vec<u8> },
    Leave { is_carry: bool },
}

impl Seats {
    async fn read(&mut self, mut read: ReadHalf<Box<dyn Connection>>, frame_len_max: u32) -> Result<(), Error> {
        let mut incoming = Incoming { decoder: Decoder::joined(frame_len_max), buffer: BytesMut::new() };
        loop {
            incoming.fill(&mut read).await?;
            let bytes = incoming.buffer.split().freeze();
            let mut rest = &bytes[..];
            while let Some(frame) = incoming.decoder.next::<FromNode<'_>>(&mut rest).map_err(broken)? {
                if let FromNode::Goodbye { reason, .. } = frame {
                    return Err(Error::Broken(reason.to_owned()));
                }
                self.take(frame);
            }
            incoming.buffer.extend_from_slice(rest);
        }
    }

    fn take(&mut self, frame: FromNode<'_>) {
        match frame {
            FromNode::Activate(activate) => self.activate(&activate),
            FromNode::Turn(turn) => {
                let came = Bytes::copy_from_slice(turn.extension.as_bytes());
                let order =
                    Order::Turn { turn: turn.turn, method: turn.method, came, arguments: turn.payload.to_vec() };
                if let Some(seat) = self.seats.get(&turn.seat) {
                    let _ = seat.send(order);
                }
            }
            FromNode::Deactivate { seat, is_carry, .. } => {
                self.link.streams.end_of(seat);
                if let Some(seat) = self.seats.remove(&seat) {
                    let _ = seat.send(Order::Leave { is_carry });
                }
            }
            FromNode::Reply { request, status, payload } => self.link.answer(request, status, payload),
            FromNode::StreamItem { stream, payload, .. } => self.link.streams.item(stream, payload),
            FromNode::StreamEnd { stream, status, payload, .. } => self.link.streams.end(stream, status, payload),
            FromNode::StreamCredit { stream, window, consumed } => self.link.streams.credit(stream, window, consumed),
            FromNode::Credit { granted } => self.link.outbox.grant(granted),
            FromNode::OperationRefused { actor, operation, reason, .. } => {
                tracing::error!(actor, operation, reason, "the node refuses an operation of this host");
            }
            _ => {}
        }
    }

    fn activate(&mut self, activate: &Activate<'_>) {
        if !self.link.may_act() {
            return;
        }
        let seat = activate.seat;
        let Some(kind) = self.kinds.get(activate.offer as usize).cloned() else {
            return self.not_made(seat, "the offer is none of this host's");
        };
        let mut actor = (kind.make)(activate.key);
        let is_reliable = kind.description.options.reliable;
        let mut saved = BTreeMap::new();
        for (name, form) in activate.fields.iter() {
            let Form::Whole(value) = form else { continue };
            let loaded = if is_reliable { actor.load_field(name, value) } else { actor.load(value) };
            if let Err(why) = loaded {
                return self.not_made(seat, &why);
            }
            saved.insert(name.to_owned(), value.to_vec());
        }
        if let Some(Err(why)) = activate.carried.map(|carried| actor.load(carried)) {
            return self.not_made(seat, &why);
        }
        let (orders, ordered) = mpsc::unbounded_channel();
        self.seats.insert(seat, orders);
        let _ = self.link.outbox.send(&FromHost::Activated { seat, status: Status::Ok, payload: b"" });
        let mut running = self.running.clone();
        let (link, beside) = (self.link.clone(), self.running.clone());
        let instance = Instance { seat, actor, kind, saved, link, running: beside };
        let world = self.link.world.clone();
        world.spawn(
            Stage::Door,
            Box::pin(async move {
                tokio::select! {
                    () = instance.live(ordered) => {}
                    () = running.stopped() => {}
                }
            }),
        );
    }

    fn not_made(&self, seat: u64, why: &str) {
        let error = panicked(why);
        let _ = self.link.outbox.send(&FromHost::Activated { seat, status: Status::Panicked, payload: &error });
    }
}

/// An actor in its seat.
struct Instance {
    seat: u64,
    actor: Box<dyn Actor>,
    kind: Kind,
    /// What is stored of it, by name.
    saved: BTreeMap<String, Vec<u8>>,
    link: Arc<Link>,
    running: Running,
}

impl Instance {
    async fn live(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            // What was read before the lease was over does not begin after it (L2).
            if !self.link.may_act() {
                return;
            }
            match order {
                Order::Turn { turn, method, came, arguments } => {
                    let codec = codec::parse(&arguments).map_or(Codec::MessagePack, |payload| payload.codec);
                    let cx = Cx { link: self.link.clone(), turn, codec, came, carried: None };
                    let method = self.kind.description.methods.get(method as usize);
                    let is_read = method.is_some_and(|method| method.read);
                    let result = match method.map(|method| method.name.clone()) {
                        Some(name) => self.actor.turn(&cx, &name, &arguments).await,
                        None => Err(Ended::Invalid("the kind has no such method".to_owned())),
                    };
                    if self.link.may_act() {
                        self.end(turn, is_read, result);
                    }
                }
                Order::Leave { is_carry } => {
                    let is_carried = is_carry && self.kind.description.options.migrate;
                    let carried = self.actor.state().filter(|_| is_carried).unwrap_or_default();
                    let released = FromHost::Released { seat: self.seat, status: Status::Ok, payload: &carried };
                    let _ = self.link.outbox.send(&released);
                    return;
                }
            }
        }
    }

    /// Has a stream brought to its consumer; its number.
    fn give(&self, items: Items) -> u64 {
        let (number, brings) = self.link.produce(self.seat, items);
        let mut running = self.running.clone();
        let world = self.link.world.clone();
        world.spawn(
            Stage::Door,
            Box::pin(async move {
                tokio::select! {
                    () = brings => {}
                    () = running.stopped() => {}
                }
            }),
        );
        number
    }

    /// Says how a turn has ended, with what is to be saved of it: one frame (L4).
    fn end(&mut self, turn: u64, is_read: bool, result: Result<Vec<u8>, Ended>) {
        let (status, reply) = match result {
            Ok(reply) => (Status::Ok, reply),
            Err(Ended::Error(error)) => (Status::ActorError, error),
            Err(Ended::Invalid(why)) => (Status::Invalid, invalid(&why)),
            Err(Ended::Failed(why)) => (Status::Panicked, panicked(&why)),
        };
        let options = &self.kind.description.options;
        let kept = match options.reliable {
            // What a failed turn has half changed is not kept (L21).
            _ if !matches!(status, Status::Ok | Status::ActorError) => Vec::new(),
            // What an actor begins with is written with its first change.
            true if is_read => Vec::new(),
            true => self.actor.fields(),
            // It goes along, and is not stored.
            false if options.migrate && !options.persistent => Vec::new(),
            false => self.actor.state().map(|state| (STATE, state)).into_iter().collect(),
        };
        let is_changed = |(name, value): &(&str, Vec<u8>)| self.saved.get(*name) != Some(value);
        let changed: Vec<_> = kept.into_iter().filter(is_changed).collect();
        let mut fields = FieldsWriter::new();
        let written = !changed.is_empty() && changed.iter().all(|(name, value)| fields.whole(name, value).is_ok());
        let changes = written.then(|| fields.fields());
        let is_halt = self.link.take_halt(turn);
        let given = self.link.streams.take_given(turn).filter(|_| status == Status::Ok);
        let stream = given.map(|items| self.give(items));
        let end = TurnEnd { turn, status, changes, jump: None, is_halt, stream, payload: &reply };
        if self.link.outbox.send(&FromHost::TurnEnd(end)).is_err() {
            // The reply is over the bound of a frame: it is not there, and what was to be saved is not either.
            let end = TurnEnd { status: ABANDONED, changes: None, payload: b"", ..end };
            let _ = self.link.outbox.send(&FromHost::TurnEnd(end));
        } else if is_halt {
            self.saved.clear();
        } else if written {
            self.saved.extend(changed.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
    }
}

/// What failures look like on the wire.
#[derive(Serialize)]
enum Failure<'a> {
    Unknown(Doubt<'a>),
    Refused(Refusal<'a>),
}

#[derive(Serialize)]
enum Doubt<'a> {
    Panicked { message: &'a str },
}

#[derive(Serialize)]
enum Refusal<'a> {
    Invalid { field: &'a str, message: &'a str },
}

fn panicked(message: &str) -> Vec<u8> {
    payload(&Failure::Unknown(Doubt::Panicked { message })).unwrap_or_default()
}

/// How a stream ends that has failed.
pub(crate) fn failed(why: &str) -> (Status, Vec<u8>) {
    (Status::Panicked, panicked(why))
}

fn invalid(message: &str) -> Vec<u8> {
    payload(&Failure::Refused(Refusal::Invalid { field: ".", message })).unwrap_or_default()
}

/// The state that the actor as a whole is.
const STATE: &str = "self";
