//! Connections that letters go out on: one to each peer cluster, by one of its gateways, and one to each node of this
//! cluster that letters are handed to.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::NodeId;
use greenroom_wire::{Decoder, EncodeError, Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::{Stage, Timestamp};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::Geo;
use super::word::{ANSWER_CHANNEL, ListAnswer, News};
use crate::here::Here;
use crate::here::parts::Met;
use crate::net::{Answered, OPEN_TIMEOUT, dial, dial_node, say, within};

/// Whom letters are sent to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Peer {
    /// Any gateway of a cluster.
    Cluster(ClusterId),
    /// A node of this cluster.
    Node(NodeId),
}

/// The connections. Each has a queue, and a task that opens it when there is something to send.
pub(super) struct Mesh {
    geo: Weak<Geo>,
    node: Weak<Here>,
    peers: Mutex<BTreeMap<Peer, Queue>>,
    /// Round trips to clusters, as last measured.
    trips: Mutex<BTreeMap<ClusterId, Duration>>,
    /// Why clusters do not answer.
    troubles: Mutex<BTreeMap<ClusterId, String>>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(super) enum Mail {
    /// About an actor, between the machines that keep it single.
    Letter(Bytes),
    /// Between the instances of a versioned state.
    State(Bytes),
}

impl Mail {
    fn bytes(&self) -> &Bytes {
        match self {
            Self::Letter(bytes) | Self::State(bytes) => bytes,
        }
    }
}

struct Queue {
    letters: mpsc::Sender<Mail>,
    /// Bytes that wait.
    room: Arc<tokio::sync::Semaphore>,
}

impl Mesh {
    pub(super) fn new(geo: &Arc<Geo>, node: &Arc<Here>) -> Arc<Self> {
        Arc::new(Self {
            geo: Arc::downgrade(geo),
            node: Arc::downgrade(node),
            peers: Mutex::default(),
            trips: Mutex::default(),
            troubles: Mutex::default(),
        })
    }

    /// Sends a letter; false if it does not fit. What does not arrive is lost.
    pub(super) fn send(self: &Arc<Self>, to: Peer, letter: Mail) -> bool {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |queue: &&Queue| !queue.letters.is_closed();
        if peers.get(&to).filter(open).is_none() {
            let (letters, receiver) = mpsc::channel(QUEUE_LEN_MAX);
            let room = Arc::new(tokio::sync::Semaphore::new(QUEUE_BYTES_MAX));
            peers.insert(to, Queue { letters, room: room.clone() });
            let Some(node) = self.node.upgrade() else { return false };
            let this = self.clone();
            node.world().spawn(Stage::Control, Box::pin(async move { this.serve(to, receiver, room).await }));
        }
        let Some(queue) = peers.get(&to) else { return false };
        let len = letter.bytes().len();
        // States that change often leave room for what keeps actors single.
        let is_half_full =
            queue.letters.capacity() <= QUEUE_LEN_MAX / 2 || queue.room.available_permits() < len + QUEUE_BYTES_MAX / 2;
        if is_half_full && matches!(letter, Mail::State(_)) {
            return false;
        }
        let Ok(permits) = queue.room.try_acquire_many(len as u32) else { return false };
        permits.forget();
        let sent = queue.letters.try_send(letter);
        if sent.is_err() {
            queue.room.add_permits(len);
        }
        sent.is_ok()
    }

    /// Keeps a connection to each of `clusters`.
    pub(super) fn keep(self: &Arc<Self>, clusters: impl Iterator<Item = ClusterId>) {
        for cluster in clusters {
            // An empty letter is none: it opens the connection.
            self.send(Peer::Cluster(cluster), Mail::Letter(Bytes::new()));
        }
    }

    /// Closes the connection to a cluster that is listed no more: one that is listed again is dialled, and heard, anew.
    pub(super) fn leave(&self, cluster: ClusterId) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&Peer::Cluster(cluster));
        self.trips.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }

    /// The last round trip to a cluster.
    pub(super) fn trip(&self, cluster: ClusterId) -> Option<Duration> {
        self.trips.lock().unwrap_or_else(PoisonError::into_inner).get(&cluster).copied()
    }

    /// Why a cluster does not answer.
    pub(super) fn trouble(&self, cluster: ClusterId) -> Option<String> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).get(&cluster).cloned()
    }

    async fn serve(self: Arc<Self>, to: Peer, mut queue: mpsc::Receiver<Mail>, room: Arc<tokio::sync::Semaphore>) {
        let (Some(geo), Some(node)) = (self.geo.upgrade(), self.node.upgrade()) else { return };
        let served = self.connected(&geo, &node, to, &mut queue, &room).await;
        let Err(error) = served else { return };
        // Who was left is dialled anew, if at all: what this came to says nothing of that.
        let left = queue.is_closed();
        queue.close();
        if left {
            return;
        }
        match to {
            Peer::Cluster(cluster) => {
                let list = geo.clusters();
                let name = list.name(cluster).unwrap_or("?");
                tracing::debug!(cluster = name, %error, "no connection to a cluster");
                self.troubles.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, error.to_string());
                geo.heard(&node, cluster, false);
            }
            Peer::Node(to) => tracing::debug!(%to, %error, "letters for a node are lost"),
        }
    }

    async fn connected(
        &self,
        geo: &Arc<Geo>,
        node: &Arc<Here>,
        to: Peer,
        queue: &mut mpsc::Receiver<Mail>,
        room: &tokio::sync::Semaphore,
    ) -> io::Result<()> {
        let Met { mut stream, mut decoder, mut input } = open_any(geo, node, to).await?;
        if queue.is_closed() {
            return Ok(());
        }
        if let Peer::Cluster(cluster) = to {
            self.troubles.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
            geo.heard(node, cluster, true);
        }
        let world = node.world();
        let encoder = Encoder::default();
        let mut batch = BytesMut::new();
        let mut asked: Option<Timestamp> = None;
        let mut answer: Option<ListAnswer> = None;
        let mut look_at = world.now();
        loop {
            tokio::select! {
                biased;
                letter = queue.recv() => {
                    let Some(letter) = letter else { return Ok(()) };
                    put(&encoder, &mut batch, &letter, room);
                    while batch.len() < BATCH_LEN && let Ok(letter) = queue.try_recv() {
                        put(&encoder, &mut batch, &letter, room);
                    }
                }
                read = stream.read_buf(&mut input) => {
                    if read? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    while let Some(frame) = decoder.decode(&mut input).map_err(io::Error::other)? {
                        match frame {
                            Frame::Control(control) if control.channel == ANSWER_CHANNEL => {
                                answer = ListAnswer::decode(&control.payload);
                            }
                            Frame::Pong(_) => {
                                let (asked, by) = (asked.take(), answer.take());
                                if let (Some(asked), Peer::Cluster(cluster)) = (asked, to) {
                                    geo.answered(node, cluster, asked, by);
                                }
                                let trip = asked.map(|asked| world.now().since(asked));
                                if let (Some(trip), Peer::Cluster(cluster)) = (trip, to) {
                                    self.trips.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, trip);
                                }
                            }
                            Frame::Goodbye(reason) => return Err(io::Error::other(reason.as_str().to_owned())),
                            _ => {}
                        }
                    }
                }
                () = world.sleep_until(look_at) => {
                    if node.is_stopped() {
                        return Err(io::Error::other("the node has stopped"));
                    }
                    let now = world.now();
                    look_at = now + PING_EVERY;
                    match asked {
                        Some(asked) if now.since(asked) >= SILENCE_MAX => return Err(io::ErrorKind::TimedOut.into()),
                        Some(_) => {}
                        None => {
                            asked = Some(now);
                            encoder.ping(&mut batch, 0);
                            if let Peer::Cluster(_) = to {
                                News::of(geo, node).put(&encoder, &mut batch);
                            }
                        }
                    }
                }
            }
            if !batch.is_empty() {
                let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
                within(timeout, say(&mut stream, &batch)).await?;
                batch.clear();
            }
        }
    }
}

/// Opens a connection to `to`: by the first of its doors that answers, beginning with any.
async fn open_any(geo: &Geo, node: &Here, to: Peer) -> io::Result<Met> {
    let doors: Vec<String> = match to {
        Peer::Cluster(cluster) => geo.clusters().gateways(cluster).to_vec(),
        Peer::Node(id) => node.member(id).map(|member| member.address).into_iter().collect(),
    };
    let first = node.world().random().checked_rem(doors.len() as u64).unwrap_or(0) as usize;
    let mut failed =
        io::Error::new(io::ErrorKind::NotFound, "it has no gateway in the list of clusters; name one there");
    for door in doors.iter().cycle().skip(first).take(doors.len()) {
        match open(geo, node, to, door).await {
            Ok(opened) => return Ok(opened),
            Err(error) => failed = io::Error::new(error.kind(), format!("{door}: {error}")),
        }
    }
    Err(failed)
}

async fn open(geo: &Geo, node: &Here, to: Peer, door: &str) -> io::Result<Met> {
    let world = node.world();
    let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
    let hello = HelloBody::new(geo.name(), node.me().0, node.name(), Lane::Geo);
    let hello = Hello::new(match to {
        Peer::Node(node) => hello.expecting(node.0),
        Peer::Cluster(_) => hello,
    });
    within(timeout, async {
        let world = &**world;
        let Peer::Cluster(cluster) = to else {
            return Ok(dial_node(world, node.links(), door, &hello, Decoder::default()).await?.met);
        };
        let Answered { hello: theirs, shown, met } =
            dial(world, geo.links(node), door, &hello, Decoder::default()).await?;
        let list = geo.clusters();
        let name = list.name(cluster).unwrap_or_default();
        let other = (theirs.body.cluster != name).then(|| {
            format!("cluster {:?} answers where {name:?} should; correct the list of clusters", theirs.body.cluster)
        });
        let stranger = other.or_else(|| shown.not_node_of(name, &theirs.body.name));
        stranger.map_or(Ok(met), |reason| Err(io::Error::other(reason)))
    })
    .await
}

fn put(encoder: &Encoder, batch: &mut BytesMut, letter: &Mail, room: &tokio::sync::Semaphore) {
    let bytes = letter.bytes();
    room.add_permits(bytes.len());
    if bytes.is_empty() {
        return;
    }
    let write = |batch: &mut BytesMut| {
        batch.extend_from_slice(bytes);
        Ok::<(), EncodeError>(())
    };
    let written = match letter {
        Mail::Letter(_) => encoder.letter(batch, write),
        Mail::State(_) => encoder.state_letter(batch, write),
    };
    if let Err(error) = written {
        tracing::error!(%error, "a letter is too large");
    }
}

/// Letters that may wait for one peer.
const QUEUE_LEN_MAX: usize = 4096;
/// Bytes that may wait for one peer.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Bytes that are gathered before they are written.
const BATCH_LEN: usize = 256 << 10;
/// Time between two looks at whether a peer answers.
const PING_EVERY: Duration = Duration::from_secs(1);
/// Silence after which a connection is given up.
const SILENCE_MAX: Duration = Duration::from_secs(3);
