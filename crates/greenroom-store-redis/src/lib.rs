//! Redis and Valkey as a store and journal: keys under one prefix in a server that many nodes share.
//!
//! A write is a script: it checks its conditions and applies all of itself while nothing else runs. A task sends
//! whatever waits together, so that a server that syncs each write (`appendfsync always`) syncs once for all of it.
//! Reads go over a connection of their own. A connection that has ended is made anew; no write is ever repeated.
//!
//! The connections' tasks run in the tokio runtime in which the store was opened; its methods may be called from any.
//!
//! # Durability
//!
//! **Redis keeps what it acknowledges only if it is told to**: with `appendonly yes` and `appendfsync always`
//! ([`Durability::Full`]) nothing acknowledged is lost when this server crashes. With any other setting a crash takes
//! acknowledged writes back; [`RedisStore::status`] says which, and a warning is logged. A fail-over to a replica may
//! take some back with every setting, as replicas follow later; [`Options::replicas`] makes that unlikely, not
//! impossible. Versions are not reused even then.
//!
//! # Limits
//!
//! - Redis 6.2 or newer, or Valkey, not in cluster mode (refused); `maxmemory-policy` must not be an `allkeys` one.
//! - Everything is in the server's memory. Values have at most [`VALUE_BYTES_MAX`].
//!
//! The guide to operating it is docs/guide/redis.md.

mod fault;
#[cfg(feature = "floor")]
pub mod floor;
mod journal;
mod read;
mod script;
mod session;
mod status;
mod target;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::journal::{Committed, Limits, Write};
use greenroom_store::network::{Lane, Link};
use greenroom_store::url::Remote;
use greenroom_store::{Commit, Page, Result, Store, Version, Versioned, key};
use tokio::runtime::Handle;

use read::Reader;
use session::Session;
use target::Target;

pub use status::{Durability, Status};

/// A store in a Redis server. Clones share its connections, which end with the last of them.
///
/// ```no_run
/// use greenroom_store::url::StoreUrl;
/// use greenroom_store_redis::{Options, RedisStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let StoreUrl::Redis(remote) = "rediss://cache.internal/0?password_file=/run/secrets/redis".parse()? else {
///     unreachable!("it says rediss")
/// };
/// let store = RedisStore::open(&remote, &Options::default()).await?;
/// println!("{}", store.status().durability);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What all keys in Redis begin with, unless the URL says `?prefix=`; "greenroom:" by default. Clusters with
    /// prefixes of their own do not meet.
    pub prefix: String,
    /// Replicas that must have received a write before it is acknowledged (`WAIT`), unless the URL says `?replicas=`;
    /// none by default. A write that fewer confirm in time is unknown.
    pub replicas: u32,
    /// How long one attempt to connect may take; 5 s by default.
    pub connect_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { prefix: "greenroom:".to_owned(), replicas: 0, connect_timeout: Duration::from_secs(5) }
    }
}

struct Shared {
    target: Arc<Target>,
    status: Status,
    lane: Lane,
    reader: Reader,
}

impl RedisStore {
    /// Opens the store that `remote` names: connects, checks what the server is and how it is set, what the user may do
    /// and the format of what is there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] for a parameter that does not exist, a cluster or a policy that evicts,
    /// [`StoreError::Denied`] for a wrong password or missing rights, [`StoreError::Format`] for a newer format,
    /// [`StoreError::Unavailable`] if the server cannot be reached. Each says what helps, and none shows a password.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// [`StoreError::Configuration`]: greenroom_store::StoreError::Configuration
    /// [`StoreError::Denied`]: greenroom_store::StoreError::Denied
    /// [`StoreError::Format`]: greenroom_store::StoreError::Format
    /// [`StoreError::Unavailable`]: greenroom_store::StoreError::Unavailable
    pub async fn open(remote: &Remote, options: &Options) -> Result<Self> {
        let (home, target) = (Handle::current(), Arc::new(Target::new(remote, options)?));
        let first = Session::open(&target, true).await?;
        let status = first.status.clone();
        if status.durability != Durability::Full {
            tracing::warn!(store = target.name, "{}; set appendonly yes and appendfsync always", status.durability);
        }
        let (lane, queue) = Lane::new(&target.name);
        home.spawn(write::run(target.clone(), Link::new(home.clone(), target.clone(), Some(first)), queue));
        let reader = Reader::new(target.clone(), Link::new(home.clone(), target.clone(), None));
        Ok(Self { shared: Arc::new(Shared { target, status, lane, reader }) })
    }

    /// What the server said of itself when the store was opened, above all what an acknowledged write survives.
    pub fn status(&self) -> &Status {
        &self.shared.status
    }

    async fn commit_checked(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        commit.check(&Limits::default(), &self.shared.target.name)?;
        if commit.operations() == 0 {
            return Ok(Committed::default());
        }
        self.shared.lane.ask(commit, timeout).await
    }

    async fn write(&self, write: Write, timeout: Duration) -> Result<Option<Version>> {
        let committed = self.commit_checked(Commit::new().write(write), timeout).await?;
        Ok(committed.versions.into_iter().next().flatten())
    }

    async fn put(&self, write: Write, timeout: Duration) -> Result<Version> {
        let version = self.write(write, timeout).await?;
        Ok(version.expect("every write but a deletion answers a version"))
    }
}

impl Store for RedisStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            self.shared.reader.key(key, timeout).await
        }
        .boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.put(Write::Create { key: key.to_owned(), value }, timeout).boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.put(Write::Replace { key: key.to_owned(), value, expected: expected.clone() }, timeout).boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let delete = Write::Delete { key: key.to_owned(), expected: expected.clone() };
        self.write(delete, timeout).map(|answer| answer.map(|_| ())).boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        async move {
            key::check_prefix(prefix)?;
            self.shared.reader.scan(prefix, after.unwrap_or_default(), limit, timeout).await
        }
        .boxed()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("target", &self.shared.target).finish_non_exhaustive()
    }
}

/// Largest value or entry: 64 MiB. It is sent whole, and everybody waits while it is.
pub const VALUE_BYTES_MAX: usize = greenroom_store::memory::VALUE_BYTES_MAX;

/// The format that this program reads and writes.
const FORMAT: &str = "1";
