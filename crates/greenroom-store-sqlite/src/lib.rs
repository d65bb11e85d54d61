//! The embedded store and journal: one SQLite file on a local disk, shared by any number of processes of one machine.
//!
//! Writes and commits go through one thread that puts into one transaction whatever waits (one device sync for all of
//! it, [`SqliteStore::stats`] counts them); reads go through another, on a connection of their own, and never wait
//! behind writes. The file is in WAL mode, which puts two more beside it while it is open (`-wal`, `-shm`); an empty third
//! (`-turn`) gives processes that write at the same time their turn. A process that is killed leaves nothing locked.
//!
//! # Limits
//!
//! - The file must be on a local disk: WAL needs shared memory, which network file systems do not give.
//! - A process that is *stopped* (SIGSTOP, a debugger) in the middle of a commit keeps the file's write lock: the
//!   others' writes are refused when their timeout ends, until it goes on or is killed. Reads go on.
//! - Timeouts use the clock of the tokio runtime that awaits them; they make no sense under a paused one.

mod apply;
mod counters;
mod fault;
mod file;
#[cfg(feature = "floor")]
pub mod floor;
mod read;
mod request;
mod schema;
mod turn;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::journal::{Limits, Write};
use greenroom_store::{Commit, Committed, DiskUsage, Entry, Journal, Page, Result, Store, Version, Versioned, key};

pub use counters::Stats;

use counters::Counters;
use file::File;
use read::{Answer, Read};
use request::Lane;
use write::{Ordered, Outcome, Writer};

/// A store in an SQLite file. Clones share it; when the last one is dropped, the file is closed.
///
/// ```no_run
/// use greenroom_store_sqlite::SqliteStore;
///
/// let store = SqliteStore::open("/var/lib/greenroom/cluster.db")?;
/// # Ok::<(), greenroom_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    lanes: Arc<Lanes>,
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What an acknowledged write survives; [`Durability::Full`] by default.
    pub durability: Durability,
    /// How long opening waits for other processes that open or close the file at this moment; 5 s by default.
    pub open_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { durability: Durability::Full, open_timeout: Duration::from_secs(5) }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: each commit is synced to the device (`synchronous=FULL`).
    Full,
    /// The death of any process, but not of the operating system: after a loss of power the last writes may be gone,
    /// though what remains is a consistent earlier state (`synchronous=NORMAL`). For tests and scratch data.
    Normal,
}

#[derive(Debug)]
struct Lanes {
    // Fields drop in order: reads close first, so that the writer's connection is the last and tidies the file.
    reads: Lane<Read>,
    writes: Lane<Ordered>,
    counters: Arc<Counters>,
}

impl SqliteStore {
    /// Opens the store in the file `path`, creating it if nothing is there, with the default [`Options`].
    ///
    /// Blocks the calling thread for a few device syncs.
    ///
    /// # Errors
    ///
    /// [`StoreError::Format`](greenroom_store::StoreError::Format) if something else is there (a directory, another
    /// program's file, a newer format), `Denied` or `Unavailable` if the file cannot be opened, `Full` if there is no room to create it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &Options::default())
    }

    /// Opens the store in the file `path` as `options` say; otherwise as [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let (file, writer) = schema::open(path.as_ref(), options)?;
        Self::start(file, writer)
    }

    fn start(file: File, writer: Writer) -> Result<Self> {
        let reader = schema::connect_reader(&file)?;
        let counters = writer.counters.clone();
        let writes = Lane::start("store-write", file.clone(), move |queue| write::run(writer, queue))?;
        let reads = Lane::start("store-read", file, move |queue| read::run(reader, queue))?;
        Ok(Self { lanes: Arc::new(Lanes { reads, writes, counters }) })
    }

    /// The file, as it was named when the store was opened.
    pub fn path(&self) -> PathBuf {
        self.lanes.writes.file().path().to_owned()
    }

    /// What this store, with its clones, has committed since it was opened, and with how many device syncs.
    pub fn stats(&self) -> Stats {
        self.lanes.counters.stats()
    }

    async fn write(&self, write: Write, timeout: Duration) -> Result<Option<Version>> {
        let committed = self.commit_now(Commit::new().write(write), timeout).await?;
        Ok(committed.versions.into_iter().next().flatten())
    }

    async fn put(&self, write: Write, timeout: Duration) -> Result<Version> {
        let version = self.write(write, timeout).await?;
        Ok(version.expect("every write with a value answers a version"))
    }

    async fn commit_now(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        commit.check(&Limits::default(), &self.lanes.writes.file().name())?;
        if commit.operations() == 0 {
            return Ok(Committed::default());
        }
        match self.lanes.writes.ask(Ordered::Commit(commit), timeout).await? {
            Outcome::Committed(committed) => Ok(committed),
            Outcome::Trimmed { .. } => unreachable!("a commit is answered as one"),
        }
    }

    async fn page(&self, read: Read, timeout: Duration) -> Result<Page> {
        match self.lanes.reads.ask(read, timeout).await? {
            Answer::Page(page) => Ok(page),
            Answer::Entries(_) | Answer::End(_) => unreachable!("a key or a scan is answered by a page"),
        }
    }
}

impl Store for SqliteStore {
    fn disk_usage(&self) -> Option<DiskUsage> {
        let mut usage = self.lanes.writes.file().disk_usage()?;
        usage.since_checkpoint = self.lanes.counters.since_checkpoint();
        Some(usage)
    }

    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            let page = self.page(Read::Key(key.to_owned()), timeout).await?;
            Ok(page.items.into_iter().next().map(|item| item.versioned))
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
        let write = Write::Delete { key: key.to_owned(), expected: expected.clone() };
        self.write(write, timeout).map(|answer| answer.map(|_| ())).boxed()
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
            let after = after.filter(|after| *after >= prefix).map(str::to_owned);
            self.page(Read::Scan { prefix: prefix.to_owned(), after, limit }, timeout).await
        }
        .boxed()
    }
}

impl Journal for SqliteStore {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        self.commit_now(commit, timeout).boxed()
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        async move {
            key::check(log)?;
            match self.lanes.reads.ask(Read::Entries { log: log.to_owned(), from, limit }, timeout).await? {
                Answer::Entries(entries) => Ok(entries),
                Answer::Page(_) | Answer::End(_) => unreachable!("entries are answered by entries"),
            }
        }
        .boxed()
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move {
            key::check(log)?;
            match self.lanes.reads.ask(Read::End { log: log.to_owned() }, timeout).await? {
                Answer::End(end) => Ok(end),
                Answer::Page(_) | Answer::Entries(_) => unreachable!("an end is answered by an end"),
            }
        }
        .boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(log)?;
            let deadline = Instant::now() + timeout;
            loop {
                let ordered = Ordered::Trim { log: log.to_owned(), through };
                let left = deadline.saturating_duration_since(Instant::now());
                match self.lanes.writes.ask(ordered, left).await? {
                    Outcome::Trimmed { more: true } => {}
                    Outcome::Trimmed { more: false } => return Ok(()),
                    Outcome::Committed(_) => unreachable!("a trim is answered as one"),
                }
            }
        }
        .boxed()
    }
}

/// Largest value: 64 MiB. A value is read and written whole, and every commit waits for all of it.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
