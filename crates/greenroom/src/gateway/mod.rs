//! The doors. The HTTP door: every actor's methods for whoever speaks HTTP and JSON, and what operators ask of a node.
//!
//! `POST /{kind}/{key}/{method}` with a JSON object of the method's arguments is a call; the door hands its bytes to the
//! actor's shard as a node's connection would, so it needs to know no types. Errors are RFC 9457 problem documents.
//!
//! Strangers may hold what they like: connections, bodies and calls are each bounded, and a client that the door waits
//! for has a time to answer in. When all connections are taken, the one that has kept the door waiting longest goes.
//!
//! Doors of other [protocols](protocol::Protocol) share its guard, its rules and its bounds: the same [`Door`], at another port.
//!
//! A door listens on the system's own sockets, on the door's stage of the world; a simulated world has none.

mod actors;
mod admin;
mod answer;
mod asked;
mod body;
mod call;
mod carried;
mod clusters;
mod connections;
mod console;
mod events;
mod fetch;
mod findings;
mod guard;
mod happened;
mod hidden;
mod host;
mod hosts;
mod inspect;
mod kinds;
mod live;
mod methods;
mod metrics;
mod origins;
mod overview;
mod pages;
mod pass;
mod path;
mod problem;
mod protocol;
mod reliable;
mod reminders;
mod service;
mod socket;
mod stage;
mod state;
mod status;
mod support;
mod tail;
#[cfg(test)]
mod tests;
mod topic;
mod topics;
mod turns;
mod visit;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use greenroom_world::Stage;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::connections::{Connections, Seat};
use self::guard::{Entered, Guard, Visitor};
use self::host::Hosts;
use self::origins::Origins;
use self::protocol::Connection;
use crate::cluster::table::Health;
use crate::here::Here;
use crate::node::Config;
use crate::node::error::Error;

pub use self::problem::Problem;
pub use self::protocol::{Connection as DoorConnection, Protocol};
pub use self::visit::{Arguments, Call, Item, Items, Received, TopicWatch, Visit, Working};

/// Doors that are not open yet: their ports are taken, so that the membership table can name them.
pub(crate) struct Bound {
    ports: Vec<(TcpListener, Speech)>,
    guard: Guard,
    hosts: Hosts,
    origins: Origins,
}

/// What is spoken at a port.
#[derive(Clone)]
enum Speech {
    Http,
    Other(Arc<dyn Protocol>),
}

impl Bound {
    /// Takes the ports that `config` asks for, and names them there as clients are told. `grpc` is what the door called so
    /// speaks.
    pub(crate) async fn take(
        mut config: Config,
        grpc: Option<Arc<dyn Protocol>>,
    ) -> Result<(Config, Option<Bound>), Error> {
        if config.http.is_none() && config.grpc.is_none() {
            return Ok((config, None));
        }
        let (guard, origins) = (Guard::open(&config)?, Origins::of(&config)?);
        let (mut ports, mut hosts) = (Vec::new(), Hosts::default());
        if let Some(address) = config.http.clone() {
            let (bound, listener) = bind("HTTP", address).await?;
            hosts = Hosts::of(&config, bound)?;
            config.http = Some(config.advertised_http(&bound.to_string()));
            ports.push((listener, Speech::Http));
        }
        if let Some(address) = config.grpc.clone() {
            let missing = || std::io::Error::other(GRPC_MISSING);
            let speech =
                grpc.ok_or_else(|| Error::Listen { what: "gRPC", address: address.clone(), error: missing() })?;
            let (bound, listener) = bind("gRPC", address).await?;
            config.grpc = Some(config.advertised_http(&bound.to_string()));
            ports.push((listener, Speech::Other(speech)));
        }
        Ok((config, Some(Bound { ports, guard, hosts, origins })))
    }

    /// Opens them, until the node stops.
    pub(crate) fn open(self, node: &Arc<Here>, table: Arc<Health>) {
        let door = Arc::new(Door::new(node.clone(), table, self.guard, (self.hosts, self.origins)));
        for (listener, speech) in self.ports {
            let (door, counted) = (door.clone(), node.count_entrance());
            let accepting = async move {
                accept(door, listener, speech).await;
                drop(counted);
            };
            node.world().spawn(Stage::Door, Box::pin(accepting));
        }
        node.world().spawn(Stage::Door, Box::pin(look_after(door)));
    }
}

async fn bind(what: &'static str, address: String) -> Result<(SocketAddr, TcpListener), Error> {
    let bound = async {
        let listener = tokio::net::TcpListener::bind(&address).await?.into_std()?;
        Ok((listener.local_addr()?, listener))
    };
    bound.await.map_err(|error| Error::Listen { what, address: address.clone(), error })
}

/// What the requests of one node share, at whichever of its doors they come.
struct Door {
    node: Arc<Here>,
    guard: Guard,
    hosts: Hosts,
    origins: Origins,
    /// How the membership table's store is.
    table: Arc<Health>,
    opened: Instant,
    connections: Connections,
    /// One permit a call.
    calls: Semaphore,
    /// One permit a stream of events or WebSocket.
    streams: Arc<Semaphore>,
    /// One permit a byte of a body that is being read.
    bodies: Semaphore,
    /// Methods of kinds that other nodes host which have been called here. Bounded, as each costs a place in the tables of
    /// routes between the nodes, and strangers choose their names.
    remote_methods: Mutex<BTreeSet<(String, String)>>,
    /// Whether streams must end.
    closed: watch::Sender<bool>,
    answers: Mutex<BTreeMap<u16, u64>>,
    refused: AtomicU64,
    /// Watchers that were let go as they took nothing, to make room.
    stalled: AtomicU64,
}

impl Door {
    fn new(node: Arc<Here>, table: Arc<Health>, guard: Guard, (hosts, origins): (Hosts, Origins)) -> Self {
        let config = node.config();
        let connections_max = config.http_connections_max.min(open_files_max() / 2).max(1);
        let bodies_len_max = config.http_body_len_max.clamp(BODIES_LEN_MAX, Semaphore::MAX_PERMITS);
        Self {
            opened: Instant::now(),
            connections: Connections::new(connections_max),
            calls: Semaphore::new(config.http_requests_max.min(Semaphore::MAX_PERMITS)),
            // Half of the connections are left to calls.
            streams: Arc::new(Semaphore::new(connections_max.div_ceil(2))),
            bodies: Semaphore::new(bodies_len_max),
            remote_methods: Mutex::default(),
            closed: watch::Sender::new(false),
            answers: Mutex::default(),
            refused: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            table,
            guard,
            hosts,
            origins,
            node,
        }
    }

    /// How long a client may keep the door waiting: for the head of its request, for its body, for its next request.
    fn patience(&self) -> Duration {
        self.node.config().http_read_timeout
    }

    /// A place for a stream of events or a WebSocket. If there is none, those who have taken nothing for longest make some for
    /// who comes next.
    fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.streams.clone().try_acquire_owned().map_err(|_| {
            self.let_watchers_go();
            Problem::busy("the door has as many streams as it may")
        })
    }

    /// Has some watchers leave who have taken nothing for longest, if for a second; how many.
    fn let_watchers_go(&self) -> usize {
        let gone = self.connections.dismiss_watchers(Instant::now() + events::STALL_MAX - STALL_MIN);
        self.stalled.fetch_add(gone as u64, Ordering::Relaxed);
        gone
    }

    fn count_answer(&self, status: u16) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    fn answers(&self) -> BTreeMap<u16, u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether `method` of a kind hosted elsewhere may be asked for.
    fn admits_remote(&self, kind: &str, method: &str) -> bool {
        let mut known = self.remote_methods.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (kind.to_owned(), method.to_owned());
        known.contains(&name) || (known.len() < REMOTE_METHODS_MAX && known.insert(name))
    }
}

/// Does what the doors need done beside their connections, until the node takes no calls any more.
async fn look_after(door: Arc<Door>) {
    tokio::select! {
        () = door.guard.look_after(&door.node) => {}
        () = make_room(&door) => {}
        _ = door.node.halted() => {}
        () = closing(&door) => {}
    }
    door.closed.send_replace(true);
}

async fn accept(door: Arc<Door>, listener: TcpListener, speech: Speech) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "a door cannot be opened"),
    };
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match door.connections.seat(Instant::now() + door.patience()) {
                    Some(seat) => {
                        tokio::spawn(attend(door.clone(), speech.clone(), stream, seat));
                    }
                    None => turn_away(&door, &speech, &stream),
                },
                Err(error) => {
                    // The usual cause is too many open files: make room.
                    tracing::debug!(%error, "a connection could not be accepted");
                    door.connections.dismiss_longest_waiting();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = door.node.halted() => {}
        () = closing(&door) => {
            // Who has connected is answered; who comes now is refused by the system, and knows that nothing ran.
            while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
                if let Some(seat) = door.connections.seat(Instant::now() + door.patience()) {
                    tokio::spawn(attend(door.clone(), speech.clone(), stream, seat));
                }
            }
        }
    }
}

/// Waits until the node takes no calls from outside any more.
async fn closing(door: &Door) {
    while !door.node.is_closing() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Lets those watchers go that have taken nothing for longest, as long as more waits than may, for as long as the door is open.
async fn make_room(door: &Door) {
    loop {
        door.node.backlog().overflow().await;
        let gone = door.let_watchers_go();
        if gone > 0 {
            tracing::warn!(gone, "too much waits for slow watchers: those that took nothing for longest were let go");
        }
        // What they held is given back meanwhile.
        tokio::time::sleep(ROOM_PAUSE).await;
    }
}

/// Says in one packet, if it fits, that there is no room.
fn turn_away(door: &Door, speech: &Speech, stream: &TcpStream) {
    door.refused.fetch_add(1, Ordering::Relaxed);
    if let Speech::Http = speech {
        // Nobody waits for a client that does not take it.
        let _ = stream.try_write(NO_ROOM);
    }
}

/// Serves one connection to its end.
async fn attend(door: Arc<Door>, speech: Speech, stream: TcpStream, seat: Arc<Seat>) {
    let _ = stream.set_nodelay(true);
    // Beyond this the system takes nothing for a client that reads slowly: it costs no memory, and pages that it is told are not old.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
    let serving = async {
        // A connection that says nothing costs no buffer.
        if stream.readable().await.is_err() {
            return;
        }
        match (door.guard.enter(stream, speech.name()).await, &speech) {
            (Ok((entered, visitor)), Speech::Other(protocol)) => {
                let visit = Visit::new(door.clone(), seat.clone(), visitor);
                protocol.attend(visit, Connection::new(entered)).await;
            }
            (Ok((Entered::Plain(stream), visitor)), Speech::Http) => serve(&door, &seat, visitor, stream).await,
            (Ok((Entered::Secure(stream), visitor)), Speech::Http) => serve(&door, &seat, visitor, stream).await,
            (Err(error), _) => {
                door.refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a client was not let in");
            }
        }
    };
    tokio::select! {
        () = serving => {}
        () = seat.outstayed() => {}
    }
}

/// Answers the requests that come on `stream`.
async fn serve<S>(door: &Arc<Door>, seat: &Arc<Seat>, visitor: Visitor, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|mut request| {
        let (door, seat) = (door.clone(), seat.clone());
        request.extensions_mut().insert(visitor.clone());
        async move { Ok::<_, std::convert::Infallible>(service::answer(&door, &seat, request).await) }
    });
    let connection = http1::Builder::new()
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = door.node.halted() => {
            // What was being answered still is.
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection broke");
    }
}

impl Speech {
    /// Its name in ALPN.
    fn name(&self) -> &'static [u8] {
        match self {
            Self::Http => b"http/1.1",
            Self::Other(protocol) => protocol.alpn(),
        }
    }
}

/// Files that this process may have open.
fn open_files_max() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// Bytes of bodies that may be held at once, for all clients together.
const BODIES_LEN_MAX: usize = 64 << 20;
/// Header fields of a request.
const HEADERS_MAX: usize = 64;
/// Longest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 32 << 10;
/// Different methods of remote kinds that may be asked for.
const REMOTE_METHODS_MAX: usize = 8192;
/// Time between two looks whether the node closes its door: far below the time that it then still answers.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a watcher may take nothing, whatever waits.
const STALL_MIN: Duration = Duration::from_secs(1);
/// Time for those who leave to give back what they held.
const ROOM_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Bytes of a connection that the system keeps and has not sent yet.
const UNSENT_MAX: u32 = 128 << 10;
/// Time for answers to leave when the node has stopped.
const FAREWELL: Duration = Duration::from_secs(1);
const GRPC_MISSING: &str = "this program has no gRPC door; give its `Builder` one with `grpc_door`, or build `greenroom` with \
    the feature `grpc`";
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-length: 0\r\n\r\n";
