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

mod accepting;
mod actors;
mod admin;
mod answer;
mod arguments;
mod asked;
mod body;
mod call;
mod carried;
mod client_stream;
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
mod inspections;
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
mod shares;
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

use greenroom_world::Stage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::connections::Connections;
use self::guard::Guard;
use self::host::Hosts;
use self::inspections::Inspections;
use self::kinds::OpenApi;
use self::origins::Origins;
use self::shares::CallShares;
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

/// Refuses names of hosts and origins that are none, also at a node without a door.
///
/// # Errors
/// [`Error::Config`]: the setting, and what to write.
pub(crate) fn check_names(config: &Config) -> Result<(), Error> {
    Origins::of(config)?;
    Hosts::of(config, SocketAddr::from(([127, 0, 0, 1], 0))).map(drop)
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
                accepting::accept(door, listener, speech).await;
                drop(counted);
            };
            node.world().spawn(Stage::Door, Box::pin(accepting));
        }
        node.world().spawn(Stage::Door, Box::pin(accepting::look_after(door)));
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
    calls: CallShares,
    inspections: Arc<Inspections>,
    /// The OpenAPI document, with the digests of the kinds that it is of.
    openapi: Mutex<Option<Arc<OpenApi>>>,
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
    /// One permit a client beyond all places that is heard out.
    turned_away: Arc<Semaphore>,
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
            calls: CallShares::new(config.http_requests_max),
            inspections: Arc::default(),
            openapi: Mutex::default(),
            // Half of the connections are left to calls.
            streams: Arc::new(Semaphore::new(connections_max.div_ceil(2))),
            bodies: Semaphore::new(bodies_len_max),
            remote_methods: Mutex::default(),
            closed: watch::Sender::new(false),
            answers: Mutex::default(),
            refused: AtomicU64::new(0),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            stalled: AtomicU64::new(0),
            table,
            guard,
            hosts,
            origins,
            node,
        }
    }

    /// Returns the time by which a client that connects now must have sent the head of its first request.
    fn head_until(&self) -> Instant {
        Instant::now() + self.node.config().http_head_timeout
    }

    /// Resolves when the node drains and its clients have had their time to finish the bodies that they were sending.
    async fn drained(&self) {
        let mut closed = self.closed.subscribe();
        // An error means that the endpoint itself is gone.
        let _ = closed.wait_for(|closed| *closed).await;
        tokio::time::sleep(self.node.config().http_drain_timeout).await;
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
        let now = Instant::now();
        let stalled_since = now.checked_sub(STALL_MIN).unwrap_or(now);
        let gone = self.connections.dismiss_watchers(stalled_since);
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
/// Longest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 32 << 10;
/// Different methods of remote kinds that may be asked for.
const REMOTE_METHODS_MAX: usize = 8192;
/// Time between two looks whether the node closes its door: far below the time that it then still answers.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a watcher may take nothing, whatever waits.
const STALL_MIN: Duration = Duration::from_secs(1);
/// Clients beyond all places that are heard out at a time.
const TURNED_AWAY_MAX: usize = 64;
/// Time for answers to leave when the node has stopped.
const FAREWELL: Duration = Duration::from_secs(1);
const GRPC_MISSING: &str = "this program has no gRPC door; give its `Builder` one with `grpc_door`, or build `greenroom` with \
    the feature `grpc`";
