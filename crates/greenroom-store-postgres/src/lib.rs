//! PostgreSQL as a store and journal: one schema in a database that many nodes share.
//!
//! Writes go through a few connections, each served by a task that commits together whatever waits: one statement, one
//! device sync for all of it. No lock is held while a client thinks, so a node that is stopped in the middle of a write
//! blocks nobody. Reads are sent at once over connections of their own. A connection that has ended is made anew.
//!
//! The connections' tasks run in the tokio runtime in which the store was opened; its methods may be called from any.
//!
//! # Limits
//!
//! - PostgreSQL 12 or newer, a database in UTF-8, the primary (a standby is refused).
//! - A pooler in between must give each connection a server session of its own (PgBouncer: `pool_mode = session`).
//! - A restore from a backup sets versions back: stop all nodes first, and let none keep state from before.
//!
//! The guide to operating it is docs/guide/postgres.md.

mod batch;
mod fault;
#[cfg(feature = "floor")]
pub mod floor;
mod journal;
mod read;
mod schema;
mod session;
mod target;
mod tls;
mod write;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// A store in a PostgreSQL database. Clones share its connections, which end with the last of them.
///
/// ```no_run
/// use greenroom_store::url::StoreUrl;
/// use greenroom_store_postgres::{Options, PostgresStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "postgres://greenroom@db.internal/greenroom?password_file=/run/secrets/db&sslmode=verify-full".parse()?;
/// let StoreUrl::Postgres(remote) = url else { unreachable!("it says postgres") };
/// let store = PostgresStore::open(&remote, &Options::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The schema that holds the tables, unless the URL says `?schema=`; "greenroom" by default. Clusters with schemas
    /// of their own do not meet.
    pub schema: String,
    /// Connections for writes, and as many for reads, from 1 to 16, unless the URL says `?connections=`; 1 by default,
    /// as what waits for one is committed with fewer device syncs than what is spread over several. More help where the
    /// server's processor, not its disk, is the limit.
    pub connections: usize,
    /// How long one attempt to connect may take; 5 s by default.
    pub connect_timeout: Duration,
    /// After which the server stops a statement, so that none outlives its caller by much; 30 s by default.
    pub statement_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "greenroom".to_owned(),
            connections: 1,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

/// What an acknowledged write survives, as the server is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power (`fsync` and `full_page_writes` are on): PostgreSQL's default.
    Full,
    /// The death of the server's processes, but not of its operating system: after a loss of power the database may be
    /// damaged. For tests.
    ProcessCrash,
}

struct Shared {
    target: Arc<Target>,
    durability: Durability,
    lanes: Vec<Lane>,
    readers: Vec<Reader>,
    next_reader: AtomicUsize,
}

impl PostgresStore {
    /// Opens the store that `remote` names: connects, creates the schema and its tables if they are not there, and
    /// checks their format and the user's rights.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] for a parameter or database that does not exist, [`StoreError::Denied`] for a wrong
    /// password or missing rights, [`StoreError::Format`] for a newer format, [`StoreError::Unavailable`] if the server
    /// cannot be reached. Each says what helps, and none shows a password.
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
        let durability = first.durability;
        if durability != Durability::Full {
            let store = &target.name;
            tracing::warn!(store, "fsync or full_page_writes is off in the server: acknowledged writes may be lost");
        }
        let mut first = Some(first);
        let mut link = || Link::new(home.clone(), target.clone(), first.take());
        let mut lanes = Vec::new();
        for _ in 0..target.options.connections {
            let (lane, queue) = Lane::new(&target.name);
            home.spawn(write::run(target.clone(), link(), queue));
            lanes.push(lane);
        }
        let readers = (0..target.options.connections).map(|_| Reader::new(target.clone(), link())).collect();
        let next_reader = AtomicUsize::new(0);
        Ok(Self { shared: Arc::new(Shared { target, durability, lanes, readers, next_reader }) })
    }

    /// What an acknowledged write survives, as the server was set when the store was opened.
    pub fn durability(&self) -> Durability {
        self.shared.durability
    }

    async fn commit_checked(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        commit.check(&Limits::default(), &self.shared.target.name)?;
        if commit.operations() == 0 {
            return Ok(Committed::default());
        }
        // By its key or log, so that writes of the same thing meet in one statement and not in the server's locks.
        let mut hasher = DefaultHasher::new();
        commit.name().hash(&mut hasher);
        let lanes = &self.shared.lanes;
        let lane = usize::try_from(hasher.finish() % lanes.len() as u64).unwrap_or_default();
        lanes[lane].ask(commit, timeout).await
    }

    async fn write(&self, write: Write, timeout: Duration) -> Result<Option<Version>> {
        let committed = self.commit_checked(Commit::new().write(write), timeout).await?;
        Ok(committed.versions.into_iter().next().flatten())
    }

    async fn put(&self, write: Write, timeout: Duration) -> Result<Version> {
        let version = self.write(write, timeout).await?;
        Ok(version.expect("every write but a deletion answers a version"))
    }

    /// Of the connections for reads, each in turn.
    fn reader(&self) -> &Reader {
        let (next, readers) = (self.shared.next_reader.fetch_add(1, Ordering::Relaxed), &self.shared.readers);
        &readers[next % readers.len()]
    }
}

impl Store for PostgresStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            self.reader().key(key, timeout).await
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
            // Every key comes after the empty text, and none that comes before a NUL is left out.
            let after = after.unwrap_or_default();
            self.reader().scan(prefix, after.split('\0').next().unwrap_or_default(), limit, timeout).await
        }
        .boxed()
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("target", &self.shared.target).finish_non_exhaustive()
    }
}

/// Largest value or entry: 64 MiB. It is sent and stored whole, and every commit beside it waits for all of it.
pub const VALUE_BYTES_MAX: usize = greenroom_store::memory::VALUE_BYTES_MAX;
