//! A host in a few lines: it speaks the frames itself, and can misbehave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use greenroom_describe::Description;
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{
    Call, Closing, Decoder, FRAME_LEN_MAX, FieldsWriter, FromHost, FromNode, Hello, HelloMap, Join, JoinMap, OfferMap,
    OfferStatus, TurnEnd, UPGRADE, Welcome,
};
use greenroom_wire::{ExtensionView, Status};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;

/// A connection that speaks frames.
pub(super) struct Line {
    stream: Box<dyn Stream>,
    input: BytesMut,
    decoder: Decoder,
}

/// A socket, or a connection to the door.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Line {
    pub(super) async fn dial(path: &PathBuf, joined: bool) -> Self {
        let stream = UnixStream::connect(path).await.expect("the node has a socket");
        let decoder = if joined { Decoder::joined(FRAME_LEN_MAX) } else { Decoder::new(FRAME_LEN_MAX) };
        Self { stream: Box::new(stream), input: BytesMut::new(), decoder }
    }

    /// A control lane of another user. Only the thread that connects is that user, and only root may be.
    pub(super) async fn of_user(path: &Path, uid: u32) -> std::io::Result<Self> {
        let path = path.to_path_buf();
        let connected = std::thread::spawn(move || {
            // SAFETY: the call takes three numbers. It is the kernel's own, which changes this thread alone.
            let done = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
            if done != 0 {
                return Err(std::io::Error::last_os_error());
            }
            std::os::unix::net::UnixStream::connect(path)
        });
        let stream = connected.join().expect("it does not panic")?;
        stream.set_nonblocking(true)?;
        let stream = Box::new(UnixStream::from_std(stream)?);
        Ok(Self { stream, input: BytesMut::new(), decoder: Decoder::new(FRAME_LEN_MAX) })
    }

    /// A control lane through the HTTP door, with a token.
    pub(super) async fn upgraded(door: &str, token: &str) -> Self {
        let mut stream = TcpStream::connect(door).await.expect("the door listens");
        let request = format!(
            "GET /-/host HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: {UPGRADE}\r\n\
             authorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("the door reads");
        // The node says nothing of its own before it is greeted, so what comes is the answer's head.
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("the door answers"));
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{:?}", String::from_utf8_lossy(&head));
        Self { stream: Box::new(stream), input: BytesMut::new(), decoder: Decoder::new(FRAME_LEN_MAX) }
    }

    pub(super) async fn say(&mut self, frame: &FromHost<'_>) {
        let mut out = BytesMut::new();
        frame.write(&mut out, FRAME_LEN_MAX).expect("it is within its bounds");
        self.bytes(&out).await;
    }

    /// Asks for its lease until its offer is judged.
    pub(super) async fn judged(&mut self) -> (OfferStatus, String) {
        let mut pulse = tokio::time::interval(PULSE);
        let mut number = 0;
        loop {
            tokio::select! {
                _ = pulse.tick() => {
                    number += 1;
                    self.say(&FromHost::Alive { number }).await;
                }
                judged = self.hear(|frame| match frame {
                    FromNode::Offered { status, reason, .. } => Some((status, reason.to_owned())),
                    FromNode::Lease { .. } => None,
                    other => panic!("no Offered but {other:?}"),
                }) => if let Some(judged) = judged.expect("the offer is judged") {
                    return judged;
                }
            }
        }
    }

    pub(super) async fn bytes(&mut self, bytes: &[u8]) {
        // The node may have closed it meanwhile.
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next frame, as `read` sees it; `None` once the node has closed.
    pub(super) async fn hear<R>(&mut self, read: impl FnOnce(FromNode<'_>) -> R) -> Option<R> {
        loop {
            let mut rest = &self.input[..];
            let before = rest.len();
            if let Some(frame) = self.decoder.next::<FromNode<'_>>(&mut rest).expect("the node speaks well") {
                let len = before - rest.len();
                let read = read(frame);
                self.input.advance(len);
                return Some(read);
            }
            if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                return None;
            }
        }
    }
}

/// What a host is to be.
pub(super) struct Plan {
    pub(super) kind: &'static str,
    pub(super) version: u16,
    /// Whether its state is kept by the node.
    pub(super) persistent: bool,
}

/// A host that serves one kind: counters that `add`, are read by `total`, `fail`, `hang`, `relay` to others, say `who` they
/// are, `count`, and `flood`.
pub(super) struct TestHost {
    pub(super) offered: Vec<(OfferStatus, String)>,
    control: mpsc::UnboundedSender<Order>,
    lanes: Vec<tokio::task::JoinHandle<()>>,
    counted: Arc<Counted>,
    life: tokio::task::JoinHandle<()>,
}

/// What its streams do.
#[derive(Default)]
struct Counted {
    made: AtomicU64,
    open: AtomicU64,
}

enum Order {
    Drain,
}

impl TestHost {
    pub(super) async fn serve(path: &PathBuf, plan: Plan) -> Self {
        Self::with(path, plan, |_| ()).await
    }

    /// The same, saying something else of itself.
    pub(super) async fn with(path: &PathBuf, plan: Plan, say: impl FnOnce(&mut HelloMap)) -> Self {
        let description = described(&plan);
        let mut map = HelloMap::new("test");
        say(&mut map);
        map.offers = vec![OfferMap {
            kind: plan.kind.to_owned(),
            version: plan.version,
            compatible: 1,
            digest: description.digest().to_string(),
        }];
        let mut line = Line::dial(path, false).await;
        line.say(&FromHost::Hello(Hello::new(map))).await;
        let welcome: Welcome = line
            .hear(|frame| match frame {
                FromNode::Welcome(welcome) => welcome,
                other => panic!("no Welcome but {other:?}"),
            })
            .await
            .expect("the node answers");
        if !welcome.map.unknown.is_empty() {
            let json = serde_json::to_vec(description.document()).expect("it is JSON");
            line.say(&FromHost::Describe { kind: plan.kind, version: plan.version, json: &json }).await;
        }
        let offered = line.judged().await;
        let (mut lanes, counted) = (Vec::new(), Arc::<Counted>::default());
        for shard in &welcome.map.shards {
            let mut lane = Line::dial(path, true).await;
            let map = JoinMap { session: welcome.map.session, secret: welcome.map.secret, shard: *shard };
            lane.say(&FromHost::Join(Join { version: welcome.version, map })).await;
            lanes.push(tokio::spawn(run(lane, plan.version, plan.persistent, counted.clone())));
        }
        let (control, orders) = mpsc::unbounded_channel();
        let life = tokio::spawn(live(line, orders));
        Self { offered: vec![offered], control, lanes, counted, life }
    }

    /// Items that its streams have made.
    pub(super) fn made(&self) -> u64 {
        self.counted.made.load(Ordering::Relaxed)
    }

    /// Streams that are open.
    pub(super) fn streams(&self) -> u64 {
        self.counted.open.load(Ordering::Relaxed)
    }

    /// Ends as a process does that is killed.
    pub(super) fn kill(self) {
        self.life.abort();
        self.lanes.iter().for_each(tokio::task::JoinHandle::abort);
    }

    /// Drains, and waits until the node says that all seats are left.
    pub(super) async fn drain(self) {
        let _ = self.control.send(Order::Drain);
        self.life.await.expect("the node says goodbye");
    }
}

/// How often a host asks for its lease.
pub(super) const PULSE: Duration = Duration::from_millis(60);

/// In the order of its description.
fn methods(version: u16) -> &'static [&'static str] {
    match version {
        1 => &["add", "total", "fail", "hang", "relay", "who", "count", "flood"],
        _ => &["reset", "add", "total", "fail", "hang", "relay", "who", "count", "flood"],
    }
}

fn described(plan: &Plan) -> Description {
    let method = |name: &&str| {
        let is_read = matches!(*name, "total" | "who" | "count" | "flood");
        json!({ "name": name, "read": is_read, "arguments": true })
    };
    let methods: Vec<Value> = methods(plan.version).iter().map(method).collect();
    let states = if plan.persistent { json!([{ "name": "self", "version": 1 }]) } else { json!([]) };
    Description::of_document(json!({
        "greenroom": 1,
        "kind": plan.kind,
        "version": plan.version,
        "compatible": 1,
        "options": { "persistent": plan.persistent },
        "methods": methods,
        "states": states,
    }))
    .expect("it is a description")
}

async fn live(mut line: Line, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut number = 0;
    loop {
        number += 1;
        line.say(&FromHost::Alive { number }).await;
        let pulse = tokio::time::sleep(PULSE);
        tokio::pin!(pulse);
        loop {
            tokio::select! {
                () = &mut pulse => break,
                order = orders.recv() => match order {
                    Some(Order::Drain) => line.say(&FromHost::Drain).await,
                    None => return,
                },
                goodbye = line.hear(|frame| matches!(frame, FromNode::Goodbye { code: Closing::Done, .. })) => {
                    if goodbye.is_none_or(|goodbye| goodbye) {
                        return;
                    }
                }
            }
        }
    }
}

/// What a lane does with a turn, once its frame is read.
struct Asked {
    turn: u64,
    seat: u64,
    method: String,
    arguments: Value,
    codec: Codec,
}

async fn run(mut lane: Line, version: u16, persistent: bool, counted: Arc<Counted>) {
    let mut totals: BTreeMap<u64, u64> = BTreeMap::new();
    let mut relayed: BTreeMap<u64, u64> = BTreeMap::new();
    let mut routes = 0;
    let mut streams: BTreeMap<u64, Counting> = BTreeMap::new();
    loop {
        enum Heard {
            Turn(Asked),
            Reply(u64, Status, Vec<u8>),
            Activate(u64, u64),
            Deactivate(u64),
            Room(u64, u32, u64),
            Other,
        }
        let names = methods(version);
        let heard = lane.hear(|frame| match frame {
            FromNode::Turn(turn) => {
                let payload = codec::parse(turn.payload).expect("arguments are a payload");
                let method = names[turn.method as usize].to_owned();
                let arguments = codec::decode(turn.payload).expect("they are data");
                Heard::Turn(Asked { turn: turn.turn, seat: turn.seat, method, arguments, codec: payload.codec })
            }
            FromNode::Reply { request, status, payload } => Heard::Reply(request, status, payload.to_vec()),
            FromNode::Activate(activate) => {
                let stored = activate.fields.iter().next().map(|(_, form)| match form {
                    greenroom_wire::host::Form::Whole(value) => codec::decode::<u64>(value).expect("it is a number"),
                    other => panic!("{other:?}"),
                });
                Heard::Activate(activate.seat, stored.unwrap_or_default())
            }
            FromNode::Deactivate { seat, .. } => Heard::Deactivate(seat),
            FromNode::StreamCredit { stream, window, consumed } => Heard::Room(stream, window, consumed),
            _ => Heard::Other,
        });
        match heard.await {
            None => return,
            Some(Heard::Activate(seat, total)) => {
                totals.insert(seat, total);
                lane.say(&FromHost::Activated { seat, status: Status::Ok, payload: &[] }).await;
            }
            Some(Heard::Room(stream, window, consumed)) => {
                let Some(counting) = streams.get_mut(&stream) else { continue };
                counting.until = consumed + u64::from(window) + counting.beyond;
                if window == 0 || counting.send(&mut lane, stream, &counted).await {
                    streams.remove(&stream);
                    counted.open.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Some(Heard::Deactivate(seat)) => {
                totals.remove(&seat);
                lane.say(&FromHost::Released { seat, status: Status::Ok, payload: &[] }).await;
            }
            Some(Heard::Reply(request, status, payload)) => {
                if let Some(turn) = relayed.remove(&request) {
                    lane.say(&ended(turn, status, &payload)).await;
                }
            }
            Some(Heard::Turn(asked)) => {
                let Asked { turn, seat, method, arguments, codec } = asked;
                let total = totals.get_mut(&seat).expect("the seat was made");
                let reply = |value: &Value| written(codec, value);
                match &*method {
                    "add" => {
                        *total += arguments["n"].as_u64().unwrap_or(1);
                        let mut changes = FieldsWriter::new();
                        if persistent {
                            changes.whole("self", &written(Codec::MessagePack, &json!(*total))).expect("it fits");
                        }
                        let payload = reply(&json!(*total));
                        let changes = persistent.then(|| changes.fields());
                        lane.say(&FromHost::TurnEnd(TurnEnd { changes, ..end(turn, Status::Ok, &payload) })).await;
                    }
                    "total" => lane.say(&ended(turn, Status::Ok, &reply(&json!(*total)))).await,
                    "who" => lane.say(&ended(turn, Status::Ok, &reply(&json!(version)))).await,
                    "fail" => {
                        let error = reply(&json!({ "Broke": { "at": *total } }));
                        lane.say(&ended(turn, Status::ActorError, &error)).await;
                    }
                    "relay" => {
                        let (kind, to) = (arguments["kind"].as_str().unwrap_or_default(), &arguments["method"]);
                        let method = to.as_str().unwrap_or_default();
                        lane.say(&FromHost::Define { route: routes, kind, method, version: 1 }).await;
                        let key = arguments["key"].as_str().unwrap_or_default();
                        let payload = written(codec, &arguments["arguments"]);
                        let request = u64::from(routes) + 1;
                        let (left, extension) = (None, ExtensionView::default());
                        let call = Call { request, turn, route: routes, key, left, extension, payload: &payload };
                        lane.say(&FromHost::Call(call)).await;
                        relayed.insert(request, turn);
                        routes += 1;
                    }
                    "count" | "flood" => {
                        let upto = arguments["upto"].as_u64().unwrap_or(u64::MAX);
                        let beyond = if method == "flood" { 1 } else { 0 };
                        streams.insert(turn, Counting { upto, sent: 0, until: 0, beyond, codec });
                        counted.open.fetch_add(1, Ordering::Relaxed);
                        let end = TurnEnd { stream: Some(turn), ..end(turn, Status::Ok, &[]) };
                        lane.say(&FromHost::TurnEnd(end)).await;
                    }
                    "hang" => {}
                    other => panic!("{other}"),
                }
            }
            Some(Heard::Other) => {}
        }
    }
}

/// A stream of numbers.
struct Counting {
    upto: u64,
    sent: u64,
    until: u64,
    /// Items that it sends although there is no room.
    beyond: u64,
    codec: Codec,
}

impl Counting {
    /// Sends what there is room for; whether it is over.
    async fn send(&mut self, lane: &mut Line, stream: u64, counted: &Counted) -> bool {
        while self.sent < self.until.min(self.upto) {
            let payload = written(self.codec, &json!(self.sent));
            lane.say(&FromHost::StreamItem { stream, number: self.sent, payload: &payload }).await;
            self.sent += 1;
            counted.made.fetch_add(1, Ordering::Relaxed);
        }
        if self.sent == self.upto {
            lane.say(&FromHost::StreamEnd { stream, number: self.sent, status: Status::Ok, payload: &[] }).await;
        }
        self.sent == self.upto
    }
}

fn end(turn: u64, status: Status, payload: &[u8]) -> TurnEnd<'_> {
    TurnEnd { turn, status, changes: None, jump: None, is_halt: false, stream: None, payload }
}

fn ended(turn: u64, status: Status, payload: &[u8]) -> FromHost<'_> {
    FromHost::TurnEnd(end(turn, status, payload))
}

fn written(codec: Codec, value: &Value) -> Vec<u8> {
    let mut out = BytesMut::new();
    codec::encode(codec, 1, value, &mut out).expect("it has an encoding");
    out.to_vec()
}
