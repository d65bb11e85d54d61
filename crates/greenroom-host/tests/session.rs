//! A host against a node that says line by line what it wants: rules that real nodes do not let one see.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use greenroom_describe::Description;
use greenroom_host::{Actor, CallError, Connection, Cx, Dial, Ended, Host, Kind, Turning, payload};
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::host::{
    Activate, Closing, Decoder, FRAME_LEN_MAX, Fields, FieldsWriter, FromHost, FromNode, Leave, Secret, Turn, Welcome,
    WelcomeMap,
};
use greenroom_wire::{ExtensionView, Status};
use greenroom_world::real::RealWorld;
use greenroom_world::{BoxFuture, Listener, Stage, Stream, ThreadBody, Timestamp, World};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Mutex, mpsc, oneshot};

/// Counts its turns, saves the count, and calls another actor if it is told to.
struct Room {
    turns: u8,
    /// Hears of each turn, and of its end, how many turns it has had.
    seen: mpsc::UnboundedSender<u8>,
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.seen.send(self.turns);
    }
}

/// The real world, on a machine that can be suspended: then its clock jumps, and nothing that waits is woken for that.
struct Suspended {
    real: Arc<RealWorld>,
    ms: AtomicU64,
}

impl World for Suspended {
    fn now(&self) -> Timestamp {
        self.real.now() + Duration::from_millis(self.ms.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        self.real.wall()
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<()> {
        self.real.sleep_until(at)
    }

    fn spawn(&self, stage: Stage, task: BoxFuture<()>) {
        self.real.spawn(stage, task);
    }

    fn start_shard(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.real.start_shard(name, body)
    }

    fn start_blocking(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.real.start_blocking(name, body)
    }

    fn listen(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Listener>>> {
        self.real.listen(address)
    }

    fn connect(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Stream>>> {
        self.real.connect(address)
    }

    fn spin(&self) -> Duration {
        self.real.spin()
    }
}

impl Actor for Room {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, _: &'a [u8]) -> Turning<'a> {
        Box::pin(async move {
            self.turns += 1;
            let _ = self.seen.send(self.turns);
            if method == "count" {
                let turns = self.turns;
                cx.give(futures_util::stream::iter((0..3).map(move |n| payload(&(turns + n)))));
                return Ok(Vec::new());
            }
            if method == "sum" {
                let wrong = |error: CallError| Ended::Failed(error.to_string());
                let reply = cx.call("numbers", "all", "count", &payload(&())?).await.map_err(wrong)?;
                let mut items = cx.open(&reply).await.map_err(wrong)?;
                let mut sum = 0;
                while let Some(item) = items.next().await {
                    sum += codec::decode::<u64>(&item.map_err(wrong)?)
                        .map_err(|error| Ended::Failed(error.to_string()))?;
                }
                return cx.reply(&sum);
            }
            if method == "ask" {
                match cx.call("user", "ada", "may", &payload(&())?).await {
                    Err(CallError::Fenced) => return Err(Ended::Failed("fenced".to_owned())),
                    answer => drop(answer),
                }
            }
            cx.reply(&self.turns)
        })
    }

    fn state(&self) -> Option<Vec<u8>> {
        payload(&self.turns).ok()
    }

    fn load(&mut self, state: &[u8]) -> Result<(), String> {
        self.turns = codec::decode(state).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// One end of a lane, as the node has it.
struct Lane {
    stream: DuplexStream,
    decoder: Decoder,
    buffer: BytesMut,
}

impl Lane {
    async fn say(&mut self, frame: FromNode<'_>) {
        let mut batch = BytesMut::new();
        frame.write(&mut batch, FRAME_LEN_MAX).unwrap();
        self.stream.write_all(&batch).await.unwrap();
    }

    /// The next frame, as text, but Alives; `None` at the end.
    async fn hear(&mut self) -> Option<String> {
        loop {
            let bytes = self.buffer.split().freeze();
            let mut rest = &bytes[..];
            let frame = self.decoder.next::<FromHost<'_>>(&mut rest).unwrap().map(|frame| format!("{frame:?}"));
            self.buffer.extend_from_slice(rest);
            match frame {
                Some(frame) if frame.starts_with("Alive") => {}
                Some(frame) => return Some(frame),
                None => {
                    if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                        return None;
                    }
                }
            }
        }
    }

    async fn hears(&mut self, beginning: &str) -> String {
        let frame = self.hear().await.unwrap_or_default();
        assert!(frame.starts_with(beginning), "{beginning} was expected: {frame}");
        frame
    }
}

/// A host that runs, and the lanes that it opens.
struct Node {
    lanes: mpsc::UnboundedReceiver<DuplexStream>,
    /// The host's.
    world: Arc<Suspended>,
}

impl Node {
    async fn lane(&mut self) -> Lane {
        let stream = self.lanes.recv().await.unwrap();
        Lane { stream, decoder: Decoder::new(FRAME_LEN_MAX), buffer: BytesMut::new() }
    }

    /// Welcomes the next session with this lease, and lets it join shard 0.
    async fn welcome(&mut self, session: u64, lease: Duration) -> (Lane, Lane, String) {
        let mut control = self.lane().await;
        let hello = control.hears("Hello").await;
        let mut map = WelcomeMap::new("music", 1, session, Secret([7; 16]), lease.as_millis() as u64);
        map.shards = vec![0];
        control.say(FromNode::Welcome(Welcome { version: 1, map })).await;
        let mut lane = self.lane().await;
        lane.hears("Join").await;
        (control, lane, hello)
    }
}

/// A node, and how hosts dial it.
fn node() -> (Node, Dial) {
    let (opened, lanes) = mpsc::unbounded_channel();
    let dial: Dial = Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let sent = opened.send(theirs);
        Box::pin(async move {
            sent.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(ours) as Box<dyn Connection>)
        })
    });
    let world = Arc::new(Suspended { real: RealWorld::start().unwrap(), ms: AtomicU64::new(0) });
    (Node { lanes, world }, dial)
}

fn serve() -> Node {
    serve_seen().0
}

/// A host that runs at a node, and what is seen of its actors.
fn serve_seen() -> (Node, mpsc::UnboundedReceiver<u8>) {
    let (node, dial) = node();
    let (sees, seen) = mpsc::unbounded_channel();
    let document = json!({ "greenroom": 1, "kind": "room", "methods": [{"name": "post"}, {"name": "ask"}, {"name": "count"}, {"name": "sum"}] });
    let make = move |_: &str| Room { turns: 0, seen: sees.clone() };
    let kind = Kind::new(Description::of_document(document).unwrap(), make);
    let world = node.world.clone();
    tokio::spawn(async move { Host::new("test").offer(kind).serve(world, &dial).await });
    (node, seen)
}

fn activate(seat: u64, fields: Fields<'_>) -> FromNode<'_> {
    FromNode::Activate(Activate { seat, offer: 0, epoch: 1, state: None, carried: None, key: "lobby", fields })
}

fn turn(number: u64, seat: u64, method: u32, payload: &[u8]) -> FromNode<'_> {
    let extension = ExtensionView::EMPTY;
    FromNode::Turn(Turn {
        turn: number,
        seat,
        method,
        is_awaited: true,
        is_read: false,
        is_tick: false,
        left: None,
        extension,
        payload,
    })
}

const NOTHING: &[u8] = &[1, 1, 0x80];
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_turn_ends_with_its_state_in_one_frame_and_in_its_arguments_codec() {
    let mut node = serve();
    let (_control, mut lane, _) = node.welcome(1, LONG).await;
    let mut stored = FieldsWriter::new();
    stored.whole("self", &payload(&40_u8).unwrap()).unwrap();
    lane.say(activate(1, stored.fields())).await;
    lane.hears("Activated").await;
    let mut json = BytesMut::new();
    codec::encode(Codec::Json, 1, &json!({}), &mut json).unwrap();
    lane.say(turn(1, 1, 0, &json)).await;
    let end = lane.hears("TurnEnd").await;
    assert!(end.contains("changes: Some"), "{end}");
    assert!(end.contains(&format!("payload: {:?}", b"\x02\x0141")), "it is JSON: {end}");
    lane.say(FromNode::Deactivate { seat: 1, why: Leave::Idle, is_carry: false, is_abandon: false }).await;
    lane.hears("Released").await;
}

#[tokio::test]
async fn l2_what_is_read_after_the_lease_does_not_begin_and_l5_all_is_dropped_before_the_next_hello() {
    let mut node = serve();
    let (mut control, mut lane, first) = node.welcome(1, Duration::from_millis(400)).await;
    assert!(first.contains("ended: None"), "{first}");
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    // No Alive is answered: the lease is over when the host says so, and what comes then is not begun.
    control.hears("Goodbye { code: LeaseOver").await;
    let _ = lane.stream.write_all(b"").await;
    assert_eq!(lane.hear().await, None, "the lane is closed, and nothing was said on it");
    let (_control, mut lane, second) = node.welcome(2, LONG).await;
    assert!(second.contains("session: 1"), "it names what it has dropped: {second}");
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    lane.say(turn(1, 1, 0, NOTHING)).await;
    let end = lane.hears("TurnEnd").await;
    assert!(end.contains("payload: [1, 1, 1]"), "the instance is another: {end}");
}

#[tokio::test]
async fn l2_a_host_that_wakes_after_its_lease_begins_nothing_that_it_had_not_begun() {
    let (mut node, mut seen) = serve_seen();
    let (_control, mut lane, _) = node.welcome(1, LONG).await;
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    // Nothing of the host is told that the time has passed, but its clock.
    node.world.ms.store(LONG.as_millis() as u64, Ordering::Relaxed);
    lane.say(turn(1, 1, 0, NOTHING)).await;
    assert_eq!(seen.recv().await, Some(0), "its actor has gone without a turn");
}

#[tokio::test]
async fn a_turn_that_waits_is_dropped_with_its_lane_and_that_is_said_once_it_was_asked() {
    let mut node = serve();
    let (mut control, mut lane, _) = node.welcome(1, LONG).await;
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    lane.say(turn(1, 1, 1, NOTHING)).await;
    lane.hears("Define { route: 0, kind: \"user\", method: \"may\"").await;
    lane.hears("Call(Call { request: 1, turn: 1,").await;
    drop(lane);
    control.say(FromNode::LaneLost { shard: 0 }).await;
    control.hears("LaneDropped { shard: 0 }").await;
    let mut lane = node.lane().await;
    lane.hears("Join").await;
    lane.say(activate(2, Fields::NONE)).await;
    lane.hears("Activated { seat: 2").await;
    lane.say(turn(2, 2, 1, NOTHING)).await;
    lane.hears("Define").await;
    lane.hears("Call(Call { request: 1, turn: 2,").await;
    lane.say(FromNode::Reply { request: 1, status: Status::Ok, payload: NOTHING }).await;
    let end = lane.hears("TurnEnd").await;
    assert!(end.contains("turn: 2, status: Ok"), "{end}");
}

#[tokio::test]
async fn a_stream_goes_as_its_consumer_has_room_and_l19_ends_with_its_seat() {
    let mut node = serve();
    let (_control, mut lane, _) = node.welcome(1, LONG).await;
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    lane.say(turn(1, 1, 2, NOTHING)).await;
    assert!(lane.hears("TurnEnd").await.contains("stream: Some(1)"));
    lane.say(FromNode::StreamCredit { stream: 1, window: 1, consumed: 0 }).await;
    lane.hears("StreamItem { stream: 1, number: 0, payload: [1, 1, 1] }").await;
    // Turns go on beside it; it waits for room.
    lane.say(turn(2, 1, 0, NOTHING)).await;
    lane.hears("TurnEnd").await;
    lane.say(FromNode::StreamCredit { stream: 1, window: 64, consumed: 1 }).await;
    lane.hears("StreamItem { stream: 1, number: 1, payload: [1, 1, 2] }").await;
    lane.hears("StreamItem { stream: 1, number: 2, payload: [1, 1, 3] }").await;
    lane.hears("StreamEnd { stream: 1, number: 3, status: Ok").await;
    lane.say(turn(3, 1, 2, NOTHING)).await;
    assert!(lane.hears("TurnEnd").await.contains("stream: Some(2)"));
    lane.say(FromNode::Deactivate { seat: 1, why: Leave::Idle, is_carry: false, is_abandon: false }).await;
    lane.say(FromNode::StreamCredit { stream: 2, window: 64, consumed: 0 }).await;
    lane.hears("Released").await;
    lane.say(activate(2, Fields::NONE)).await;
    lane.hears("Activated { seat: 2").await;
}

#[tokio::test]
async fn a_stream_is_opened_by_its_name_and_its_end_is_heard() {
    let mut node = serve();
    let (_control, mut lane, _) = node.welcome(1, LONG).await;
    lane.say(activate(1, Fields::NONE)).await;
    lane.hears("Activated").await;
    lane.say(turn(1, 1, 3, NOTHING)).await;
    lane.hears("Define").await;
    lane.hears("Call(Call { request: 1").await;
    let name = payload(&json!({ "greenroom:stream": "7.0.1.2.0000000000000003" })).unwrap();
    lane.say(FromNode::Reply { request: 1, status: Status::Ok, payload: &name }).await;
    lane.hears("Ask(Ask { request: 3, turn: 1, seat: 0, operation: OpenStream").await;
    lane.say(FromNode::Reply { request: 3, status: Status::Ok, payload: NOTHING }).await;
    for number in 0..40 {
        lane.say(FromNode::StreamItem { stream: 2, number, payload: &payload(&number).unwrap() }).await;
    }
    lane.hears("StreamCredit { stream: 2, window: 64, consumed: 32 }").await;
    lane.say(FromNode::StreamEnd { stream: 2, number: 40, status: Status::Ok, payload: b"" }).await;
    let end = lane.hears("TurnEnd").await;
    let sum = payload(&(0..40).sum::<u64>()).unwrap();
    assert!(end.contains(&format!("payload: {sum:?}")), "{end}");
}

#[tokio::test]
async fn a_client_calls_without_a_turn() {
    let (mut node, dial) = node();
    let (give, given) = oneshot::channel();
    let give = Mutex::new(Some(give));
    let world = node.world.clone();
    tokio::spawn(async move {
        let give = give.lock().await.take().unwrap();
        Host::new("client").session(world, &dial, &mut None, |cx| drop(give.send(cx))).await
    });
    let (mut control, mut lane, hello) = node.welcome(1, LONG).await;
    assert!(hello.contains("offers: []"), "{hello}");
    let cx = given.await.unwrap_or_else(|_| panic!("it was not welcomed"));
    let call = tokio::spawn(async move { cx.call("room", "lobby", "post", NOTHING).await });
    lane.hears("Define").await;
    lane.hears("Call(Call { request: 1, turn: 0,").await;
    lane.say(FromNode::Reply { request: 1, status: Status::ActorError, payload: b"why" }).await;
    assert_eq!(call.await.unwrap(), Err(CallError::Actor(b"why".to_vec())));
    control.say(FromNode::Goodbye { code: Closing::Stopping, reason: "" }).await;
}
