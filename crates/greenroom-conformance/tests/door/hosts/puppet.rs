//! A host that does what a test says, frame by frame.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use greenroom_describe::Description;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{
    Call, Closing, FRAME_LEN_MAX, Fields, FieldsWriter, Form, FromHost, FromNode, Hello, HelloMap, Join, JoinMap,
    OfferMap, OfferStatus, TurnEnd, Welcome,
};
use greenroom_wire::{ExtensionView, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::host::{Line, PULSE};

/// Its control lane asks for its lease by itself; on its user lane to the node's only shard nothing goes by itself.
pub(super) struct Puppet {
    pub(super) offered: (OfferStatus, String),
    lane: Line,
    /// The codecs that its turns are asked in.
    codecs: BTreeMap<u64, Codec>,
    /// The codec of the state that came with a seat last.
    pub(super) stored_in: Option<Codec>,
    /// What the last turn carried along, and the time that it had.
    pub(super) carried: (Vec<u8>, Option<Duration>),
    welcome: Welcome,
    path: PathBuf,
    control: mpsc::UnboundedSender<Order>,
    told: mpsc::UnboundedReceiver<Told>,
    life: tokio::task::JoinHandle<()>,
}

enum Order {
    Drain,
    LaneDropped,
    Goodbye,
}

#[derive(PartialEq, Debug)]
enum Told {
    LaneLost,
    Goodbye,
}

/// What the node says on the user lane.
#[derive(PartialEq, Debug)]
pub(super) enum Heard {
    /// With the state that it brings, if it is stored.
    Activate {
        seat: u64,
        key: String,
        is_carried: bool,
        stored: Option<u64>,
    },
    Turn {
        turn: u64,
        seat: u64,
        method: &'static str,
    },
    Deactivate {
        seat: u64,
        is_carry: bool,
    },
    Reply {
        request: u64,
        status: Status,
    },
    Other,
}

/// The methods of its kind.
const METHODS: [(&str, bool); 3] = [("add", false), ("total", true), ("ask", false)];

impl Puppet {
    /// Comes in, offers `kind`, and joins the lane.
    pub(super) async fn comes(path: &PathBuf, kind: &str, version: u16) -> Self {
        Self::with(path, kind, version, json!({}), |_| ()).await
    }

    pub(super) async fn with(
        path: &PathBuf,
        kind: &str,
        version: u16,
        more: Value,
        say: impl FnOnce(&mut HelloMap),
    ) -> Self {
        let description = described(kind, version, more);
        let mut map = HelloMap::new("puppet");
        let digest = description.digest().to_string();
        map.offers = vec![OfferMap { kind: kind.to_owned(), version, compatible: 1, digest }];
        say(&mut map);
        let mut line = Line::dial(path, false).await;
        line.say(&FromHost::Hello(Hello::new(map))).await;
        let welcome = heard(&mut line, |frame| match frame {
            FromNode::Welcome(welcome) => welcome,
            other => panic!("no Welcome but {other:?}"),
        });
        let welcome = welcome.await;
        if !welcome.map.unknown.is_empty() {
            let json = serde_json::to_vec(description.document()).expect("it is JSON");
            line.say(&FromHost::Describe { kind, version, json: &json }).await;
        }
        // The lane may be joined before the offer is judged.
        let lane = joined(path, &welcome).await;
        let offered = line.judged().await;
        let (control, orders) = mpsc::unbounded_channel();
        let (tells, told) = mpsc::unbounded_channel();
        let life = tokio::spawn(live(line, orders, tells));
        Self {
            offered,
            lane,
            codecs: BTreeMap::new(),
            stored_in: None,
            carried: (Vec::new(), None),
            welcome,
            path: path.clone(),
            control,
            told,
            life,
        }
    }

    /// The next frame on the user lane.
    pub(super) async fn hears(&mut self) -> Heard {
        let (codecs, stored_in, carried) = (&mut self.codecs, &mut self.stored_in, &mut self.carried);
        let heard = self.lane.hear(|frame| match frame {
            FromNode::Activate(activate) => Heard::Activate {
                seat: activate.seat,
                key: activate.key.to_owned(),
                is_carried: activate.carried.is_some(),
                stored: activate.fields.iter().find_map(|(_, form)| match form {
                    Form::Whole(value) => {
                        *stored_in = codec::parse(value).ok().map(|value| value.codec);
                        codec::decode(value).ok()
                    }
                    Form::Entries(_) => None,
                }),
            },
            FromNode::Turn(turn) => {
                *carried = (turn.extension.as_bytes().to_vec(), turn.left);
                codecs.insert(turn.turn, codec::parse(turn.payload).expect("arguments are a payload").codec);
                Heard::Turn { turn: turn.turn, seat: turn.seat, method: METHODS[turn.method as usize].0 }
            }
            FromNode::Deactivate { seat, is_carry, .. } => Heard::Deactivate { seat, is_carry },
            FromNode::Reply { request, status, .. } => Heard::Reply { request, status },
            _ => Heard::Other,
        });
        tokio::time::timeout(PATIENCE, heard).await.expect("the node says something").expect("the lane lasts")
    }

    /// Hears an Activate, and says that it is done: the seat and the actor's key.
    pub(super) async fn seats(&mut self) -> (u64, String) {
        match self.hears().await {
            Heard::Activate { seat, key, .. } => {
                self.has_made(seat).await;
                (seat, key)
            }
            other => panic!("no Activate but {other:?}"),
        }
    }

    /// Hears a turn: its number and method.
    pub(super) async fn turn(&mut self) -> (u64, &'static str) {
        match self.hears().await {
            Heard::Turn { turn, method, .. } => (turn, method),
            other => panic!("no Turn but {other:?}"),
        }
    }

    /// Ends a turn by a number, which becomes the actor's state if it is to be `saved`.
    pub(super) async fn ends(&mut self, turn: u64, reply: u64, saved: bool) {
        let payload = encoded(self.codecs[&turn], reply);
        self.answers(turn, reply, saved, &payload).await;
    }

    /// The codec that a turn was asked in.
    pub(super) fn asked_in(&self, turn: u64) -> Codec {
        self.codecs[&turn]
    }

    /// Ends a turn by any bytes.
    pub(super) async fn answers(&mut self, turn: u64, reply: u64, saved: bool, payload: &[u8]) {
        let mut fields = FieldsWriter::new();
        fields.whole("self", &written(reply)).expect("it fits");
        let changes = saved.then(|| fields.fields());
        self.says_of(turn, Status::Ok, changes, payload).await;
    }

    /// Ends a turn as its handler has raised what it does not mean.
    pub(super) async fn raises(&mut self, turn: u64) {
        let failure = json!({ "Unknown": { "Panicked": { "message": "half done" } } });
        let mut payload = BytesMut::new();
        codec::encode(Codec::MessagePack, 1, &failure, &mut payload).expect("it is a failure");
        self.says_of(turn, Status::Panicked, None, &payload).await;
    }

    async fn says_of(&mut self, turn: u64, status: Status, changes: Option<Fields<'_>>, payload: &[u8]) {
        let end = TurnEnd { turn, status, changes, jump: None, is_halt: false, stream: None, payload };
        self.lane.say(&FromHost::TurnEnd(end)).await;
    }

    /// Calls `total` of an actor of its own kind, for a turn.
    pub(super) async fn calls(&mut self, turn: u64, kind: &str, key: &str) {
        self.defines(kind, "total").await;
        self.asks((1, turn), key, None, ExtensionView::default()).await;
    }

    /// Numbers a method.
    pub(super) async fn defines(&mut self, kind: &str, method: &str) {
        self.lane.say(&FromHost::Define { route: 0, kind, method, version: 1 }).await;
    }

    /// Calls what it has numbered.
    pub(super) async fn asks(
        &mut self,
        (request, turn): (u64, u64),
        key: &str,
        left: Option<Duration>,
        extension: ExtensionView<'_>,
    ) {
        let payload = nothing();
        let call = Call { request, turn, route: 0, key, left, extension, payload: &payload };
        self.lane.say(&FromHost::Call(call)).await;
    }

    /// So many calls in one write, numbered from 1: the node has read all of them before it answers one.
    pub(super) async fn asks_at_once(&mut self, count: usize, key: &str) {
        let (payload, mut out) = (nothing(), BytesMut::new());
        for request in 1..=count as u64 {
            let extension = ExtensionView::default();
            let call = Call { request, turn: 0, route: 0, key, left: None, extension, payload: &payload };
            FromHost::Call(call).write(&mut out, FRAME_LEN_MAX).expect("it is within its bounds");
        }
        self.lane.bytes(&out).await;
    }

    /// The next answer to what it has asked.
    pub(super) async fn answer(&mut self) -> (u64, Status) {
        loop {
            match self.hears().await {
                Heard::Reply { request, status } => return (request, status),
                Heard::Other => {}
                heard => panic!("no Reply but {heard:?}"),
            }
        }
    }

    pub(super) async fn releases(&mut self, seat: u64, carried: &[u8]) {
        self.lane.say(&FromHost::Released { seat, status: Status::Ok, payload: carried }).await;
    }

    /// Its user lane breaks, and the node has seen it.
    pub(super) async fn loses_lane(&mut self) {
        self.lane = Line::dial(&self.path, true).await;
        self.is_told_of_its_lane().await;
    }

    /// Hears on its control lane that the node has given up its user lane.
    pub(super) async fn is_told_of_its_lane(&mut self) {
        assert_eq!(self.hears_of_itself().await, Told::LaneLost);
    }

    /// Joins its lane again, and then says that it has dropped the seats of the last one: what it hears.
    pub(super) async fn rejoins_and_drops(&mut self) -> Heard {
        self.lane = joined(&self.path, &self.welcome).await;
        // So the node has most likely read the first before it hears the second, on another lane.
        tokio::time::sleep(PULSE).await;
        self.drops();
        loop {
            match self.hears().await {
                Heard::Other => {}
                heard => return heard,
            }
        }
    }

    /// Says that a seat is made.
    pub(super) async fn has_made(&mut self, seat: u64) {
        self.lane.say(&FromHost::Activated { seat, status: Status::Ok, payload: &[] }).await;
    }

    /// Drains, which the node has most likely heard when this returns.
    pub(super) async fn drains(&self) {
        self.control.send(Order::Drain).expect("it lives");
        tokio::time::sleep(PULSE).await;
    }

    pub(super) fn drops(&self) {
        self.control.send(Order::LaneDropped).expect("it lives");
    }

    /// Says goodbye, and hears that of the node.
    pub(super) async fn leaves(&mut self) {
        self.control.send(Order::Goodbye).expect("it lives");
        assert_eq!(self.hears_of_itself().await, Told::Goodbye);
    }

    /// Its control lane breaks; the user lane stays.
    pub(super) fn loses_control(&self) {
        self.life.abort();
    }

    async fn hears_of_itself(&mut self) -> Told {
        let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        told.expect("the node says something").expect("the session lasts")
    }
}

impl Drop for Puppet {
    /// Ends as a process does that is killed.
    fn drop(&mut self) {
        self.life.abort();
    }
}

/// No arguments as a payload.
fn nothing() -> BytesMut {
    let mut payload = BytesMut::new();
    codec::encode(Codec::MessagePack, 1, &json!({}), &mut payload).expect("it has an encoding");
    payload
}

/// A number as a payload.
pub(super) fn written(number: u64) -> Vec<u8> {
    encoded(Codec::MessagePack, number)
}

fn encoded(codec: Codec, number: u64) -> Vec<u8> {
    let mut out = BytesMut::new();
    codec::encode(codec, 1, &number, &mut out).expect("it has an encoding");
    out.to_vec()
}

async fn joined(path: &PathBuf, welcome: &Welcome) -> Line {
    let mut lane = Line::dial(path, true).await;
    let map = JoinMap { session: welcome.map.session, secret: welcome.map.secret, shard: 0 };
    lane.say(&FromHost::Join(Join { version: welcome.version, map })).await;
    lane
}

async fn heard<R>(line: &mut Line, read: impl FnOnce(FromNode<'_>) -> R) -> R {
    let heard = tokio::time::timeout(PATIENCE, line.hear(read)).await;
    heard.expect("the node says something").expect("the lane lasts")
}

async fn live(mut line: Line, mut orders: mpsc::UnboundedReceiver<Order>, tells: mpsc::UnboundedSender<Told>) {
    let mut pulse = tokio::time::interval(PULSE);
    let mut number = 0;
    loop {
        tokio::select! {
            _ = pulse.tick() => {
                number += 1;
                line.say(&FromHost::Alive { number }).await;
            }
            order = orders.recv() => match order {
                Some(Order::Drain) => line.say(&FromHost::Drain).await,
                Some(Order::LaneDropped) => line.say(&FromHost::LaneDropped { shard: 0 }).await,
                Some(Order::Goodbye) => line.say(&FromHost::Goodbye { code: Closing::Done, reason: "" }).await,
                None => return,
            },
            told = line.hear(|frame| match frame {
                FromNode::LaneLost { .. } => Some(Told::LaneLost),
                FromNode::Goodbye { .. } => Some(Told::Goodbye),
                _ => None,
            }) => match told {
                Some(told) => told.into_iter().for_each(|told| _ = tells.send(told)),
                None => return,
            },
        }
    }
}

fn described(kind: &str, version: u16, more: Value) -> Description {
    let methods = METHODS.map(|(name, read)| json!({ "name": name, "read": read, "arguments": true }));
    let mut document = json!({
        "greenroom": 1,
        "kind": kind,
        "version": version,
        "compatible": 1,
        "options": { "persistent": false },
        "methods": methods,
        "states": [],
    });
    let members = more.as_object().expect("it is an object").clone();
    document.as_object_mut().expect("it is an object").extend(members);
    Description::of_document(document).expect("it is a description")
}

/// How long a frame that must come is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
