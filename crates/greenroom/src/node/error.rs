//! Why a node could not start, or has stopped.

use std::time::Duration;
use std::{fmt, io};

use crate::actor::error::CallError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong with a node as a whole. A `main` that returns it prints its sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The same kind was registered twice. The program is at fault.
    #[error("actor kind {kind:?} is registered twice; give one of the types another name with #[actor(kind = \"..\")]")]
    Repeated {
        /// The kind.
        kind: &'static str,
    },
    /// A kind has the name of one that the runtime brings itself. The program is at fault.
    #[error(
        "actor kind {kind:?} has a name of the runtime's own, as do all that begin with `greenroom.`; give the type another name with \
         #[actor(kind = \"..\")]"
    )]
    Reserved {
        /// The kind.
        kind: &'static str,
    },
    /// A port could not be had.
    #[error("cannot listen for {what} at {address}: {error}; choose another address, or port 0 for a free one")]
    Listen {
        /// Who was to connect there.
        what: &'static str,
        /// The address.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// A cluster or a kind has a name for which stores have no room.
    #[error("{what} {name:?} cannot be called so: {reason}")]
    Name {
        /// What it is the name of.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it, and what helps.
        reason: String,
    },
    /// The configuration asks to listen beyond loopback, where something that keeps strangers out is missing.
    #[error(
        "{what} would listen at {address}, which is not a loopback address, without {missing}; {remedy}, or listen at \
         127.0.0.1, or set `insecure_listen = true` (--insecure-listen) where the network itself is closed"
    )]
    Exposed {
        /// Which port.
        what: &'static str,
        /// The address.
        address: String,
        /// What is missing.
        missing: &'static str,
        /// What helps.
        remedy: &'static str,
    },
    /// Other nodes would be told to dial an address of all interfaces, which is nobody's.
    #[error(
        "other nodes cannot dial {address}, which stands for all interfaces; say where they find this node with `advertise` \
         (--advertise HOST:PORT), or listen at an address of its own"
    )]
    Undialable {
        /// The address that they would be told.
        address: String,
    },
    /// Certificates, credentials or rules cannot be used.
    #[error("{0}")]
    Security(#[from] greenroom_security::error::Error),
    /// The lease is shorter or longer than what nodes can keep.
    #[error("a lease of {lease:?} cannot be kept: set `lease` (--lease) to 1 to 300 seconds; without it it is 4")]
    Lease {
        /// What the configuration says.
        lease: Duration,
    },
    /// The membership table's store could not be opened.
    #[error("cannot use the membership table at {url:?}: {reason}")]
    Table {
        /// The store's URL, without a password.
        url: String,
        /// What it said.
        reason: String,
    },
    /// A store of actors' states could not be opened.
    #[error("cannot use the store{} of actors' states at {url:?}: {reason}", Named(name))]
    Store {
        /// Its name in the configuration; empty for the one of all kinds that name none.
        name: String,
        /// Its URL, without a password.
        url: String,
        /// What it said.
        reason: String,
    },
    /// A kind keeps its states in a store that the node does not know.
    #[error(
        "actor kind {kind:?} keeps its states in a store called {store:?}, which this node does not have{}; name its URL \
         in the configuration's `stores`",
        near.first().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
    )]
    NoStore {
        /// The kind.
        kind: &'static str,
        /// The store's name, as the kind says it.
        store: String,
        /// Names like it that the node has.
        near: Vec<String>,
    },
    /// The list of clusters cannot be used.
    #[error("cannot use the multi-cluster that is configured (`geo`): {reason}")]
    Geo {
        /// What is wrong, and what helps.
        reason: String,
    },
    /// A kind's versioned states have a protocol that the node does not know.
    #[error(
        "the versioned states of actor kind {kind:?} have a protocol called {protocol:?}, which this node does not know{}; it \
         knows bcas, vlb, log, and what is given to Builder::protocol",
        near.first().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
    )]
    NoProtocol {
        /// The kind.
        kind: &'static str,
        /// The protocol's name, as the kind or the configuration says it.
        protocol: String,
        /// Names like it that the node knows.
        near: Vec<String>,
    },
    /// A kind keeps logs in a store that has none.
    #[error(
        "the versioned states of actor kind {kind:?} are logs of updates (protocol = \"log\"), which its store{} cannot keep; give it \
         one that is a journal: sqlite, postgres, redis, etcd or kafka",
        Named(store)
    )]
    NoLogs {
        /// The kind.
        kind: &'static str,
        /// The store's name, as the kind says it.
        store: &'static str,
    },
    /// A reliable kind is registered on a node that has no journal.
    #[error(
        "actor kind {kind:?} is reliable, and this node has no journal; name one with `journal(\"sqlite:PATH\")`, or as \
         `journal` under `[reliable]` in its configuration file"
    )]
    NoJournal {
        /// The kind.
        kind: &'static str,
    },
    /// The journal of reliable actors cannot be used.
    #[error("cannot use the journal of reliable actors at {url:?}: {reason}")]
    Journal {
        /// Its URL, without a password.
        url: String,
        /// What is wrong, and what helps.
        reason: String,
    },
    /// An outlet of reliable actors cannot be used.
    #[error("cannot use outlet {name:?} at {url:?}: {reason}")]
    Outlet {
        /// Its name.
        name: String,
        /// Its URL, without a password.
        url: String,
        /// What is wrong, and what helps.
        reason: String,
    },
    /// A configuration file could not be used.
    #[error("cannot use the configuration {path}: {reason}")]
    Config {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The system refused something that every node needs.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The node has stopped, for a reason that is not the program's own.
    #[error("the node has stopped: {why}; start it again, it will join as a new generation")]
    Halted {
        /// Why.
        why: &'static str,
    },
    /// The node has left its cluster, and a turn still kept the thread of one of its shards: it was cut, as its process ends. The
    /// program is at fault.
    #[error(
        "the node has left without its shard {shard}, which had not finished a round for {seconds} s: a turn keeps its thread. Put what \
         blocks or computes for long on a thread of its own: `#[blocking]` before the method, or `cx.blocking`"
    )]
    Stuck {
        /// The shard's place among those of the node.
        shard: usize,
        /// Seconds since its last round ended.
        seconds: u64,
    },
    /// Another node has this one's name, and lives: it renews its lease. Nothing has changed for it. Who starts a node
    /// anew that has died need not wait: it joins as soon as the dead one's lease has run out.
    #[error(
        "a node called {name:?} is alive in cluster {cluster:?} already, at {address}; give this one another name (`name`, --name), \
         or stop the other one first"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The cluster.
        cluster: String,
        /// Where the other one is.
        address: String,
    },
    /// The node did not become a member in time.
    #[error("the node could not join cluster {cluster:?} within {seconds} s; {hint}")]
    NotJoined {
        /// The cluster.
        cluster: String,
        /// How long it tried.
        seconds: u64,
        /// What may be the cause.
        hint: String,
    },
    /// A call failed in a place that does not tell failures apart, such as a `main` with `?`.
    #[error("a call failed: {message}")]
    Call {
        /// What the call's error said.
        message: String,
    },
}

// Rust prints what `main` returns, and what `unwrap` meets, by `Debug`: people read that.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A name, if there is one.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " {:?}", self.0) }
    }
}

impl<E: fmt::Display> From<CallError<E>> for Error {
    fn from(error: CallError<E>) -> Self {
        Error::Call { message: error.to_string() }
    }
}
