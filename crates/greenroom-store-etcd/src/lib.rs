//! Greenroom's store in etcd: for clusters that run one already, as every Kubernetes does.
//!
//! Every write is one etcd transaction that compares the key's modification revision; that revision, which etcd counts
//! over all keys and never uses twice, is the [`Version`]. Reads are linearizable. [`Journal`] commits are one
//! transaction too, so they are for small things: etcd takes 128 operations and 1.5 MiB in one.
//!
//! The client is tonic with the few messages it needs written down by hand, so that nobody needs `protoc`.
//!
//! # Limits
//!
//! - A value has at most about 1.5 MiB (etcd's `--max-request-bytes`), the whole etcd 2 GiB unless told otherwise.
//! - Every write is replicated and synced by a majority of the members, so a store of etcd is no faster than that.
//! - Restoring etcd from a snapshot takes its revisions back: stop all nodes first, and restore with
//!   `etcdutl snapshot restore --bump-revision`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use greenroom_store_etcd::EtcdStore;
//!
//! let store = EtcdStore::open("etcd://greenroom@a:2379,b:2379,c:2379/prod?password_file=/run/secrets/etcd").await?;
//! # Ok(())
//! # }
//! ```

mod connection;
mod fault;
#[cfg(feature = "floor")]
pub mod floor;
mod journal;
mod layout;
mod proto;
mod range;
mod settings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
#[cfg(doc)]
use greenroom_store::Journal;
use greenroom_store::scan::PageBuilder;
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store::{Found, Item, Page, Result, Store, StoreError, Version, Versioned, key};

use connection::{Connection, Effect, deadline};
use journal::Heads;
use layout::{Layout, revision, version};
use proto::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, Request, Response};
use proto::{RANGE, TXN, TxnRequest, TxnResponse};
use settings::Settings;

/// A store in an etcd cluster, and a journal for small things. Clones share the connections.
///
/// The connections belong to the tokio runtime in which the store was opened, and are of no use after it; calls may come
/// from any runtime with a timer.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    layout: Layout,
    request_bytes_max: usize,
    operations_max: usize,
    /// What this process last knew of the logs' heads.
    heads: Heads,
}

impl EtcdStore {
    /// Opens the store that `url` names, as [`open_remote`](Self::open_remote) does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if it is no URL of an etcd; otherwise as [`open_remote`](Self::open_remote).
    pub async fn open(url: &str) -> Result<Self> {
        let configuration =
            |reason: String| StoreError::Configuration { store: greenroom_store::url::redact(url), reason };
        match url.parse::<StoreUrl>() {
            Ok(StoreUrl::Etcd(remote)) => Self::open_remote(&remote).await,
            Ok(_) => Err(configuration("it is no etcd; write \"etcd://host:2379\"".to_owned())),
            Err(error) => Err(configuration(error.to_string())),
        }
    }

    /// Connects to `remote` and makes sure that what is there is of a known format. Answers within 10 s.
    ///
    /// Its path is a prefix for everything in etcd, `greenroom` by default. Its parameters: `ca`, `cert` and `key` name
    /// PEM files (any of them switches TLS on), `request_bytes_max` and `operations_max` repeat the server's settings
    /// `--max-request-bytes` and `--max-txn-ops` where these are not the defaults.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if the URL is at fault, [`StoreError::Unavailable`] if no endpoint answers,
    /// [`StoreError::Denied`] for a wrong password or a missing right, [`StoreError::Format`] if a newer Greenroom has
    /// written there.
    pub async fn open_remote(remote: &Remote) -> Result<Self> {
        let settings = Settings::of(remote)?;
        let store = Self {
            inner: Arc::new(Inner {
                connection: Connection::new(remote, &settings.endpoints),
                layout: Layout { root: settings.root },
                request_bytes_max: settings.request_bytes_max,
                operations_max: settings.operations_max,
                heads: Heads::new(),
            }),
        };
        store.inner.check_format().await?;
        Ok(store)
    }

    /// Largest value of a single write: 1.5 MiB less 4 KiB, unless the URL says otherwise.
    pub fn value_bytes_max(&self) -> usize {
        self.inner.value_bytes_max()
    }
}

impl Inner {
    /// Reads the mark of the format, or sets it if there is none.
    async fn check_format(&self) -> Result<()> {
        let by = deadline("format", OPEN_TIMEOUT)?;
        let name = self.layout.format();
        let put = Request::Put(PutRequest { key: name.clone(), value: FORMAT.into() });
        let read = RangeRequest { key: name.clone(), ..RangeRequest::default() };
        let read = TxnRequest { failure: vec![Request::Range(read).into()], ..TxnRequest::default() };
        let set = TxnRequest { compare: vec![Compare::is_at(name, 0)], success: vec![put.into()], ..read };
        // May be made twice: the second time it reads what the first has set.
        let answer = self.connection.ask(TXN, set, Effect::Reads, ANSWER_BYTES_MAX, by).await;
        let answer: TxnResponse =
            answer.map_err(|failure| unopened(self.read_error(failure, "format"), &self.connection.name()))?;
        match kvs(&answer).next() {
            None => Ok(()),
            Some(found) if found.value == FORMAT => Ok(()),
            Some(found) => {
                let found = String::from_utf8_lossy(&found.value).into_owned();
                let reason = format!("it is of format {found:?}, this version knows {FORMAT:?}; use a newer Greenroom");
                Err(StoreError::Format { store: self.connection.name(), reason })
            }
        }
    }

    fn value_bytes_max(&self) -> usize {
        self.request_bytes_max - REQUEST_OVERHEAD_BYTES
    }

    async fn read(&self, key: &str, timeout: Duration) -> Result<Option<Versioned>> {
        key::check(key)?;
        let by = deadline(key, timeout)?;
        let range = RangeRequest { key: self.layout.key(key), ..RangeRequest::default() };
        let answer = self.connection.ask(RANGE, range, Effect::Reads, ANSWER_BYTES_MAX, by).await;
        let answer: RangeResponse = answer.map_err(|failure| self.read_error(failure, key))?;
        let found = answer.kvs.into_iter().next();
        Ok(found.map(|found| Versioned { value: found.value, version: version(found.mod_revision) }))
    }

    /// Puts or deletes, if the key was last changed at revision `expected`; 0 if there is to be none.
    async fn write(&self, key: &str, expected: i64, value: Option<Bytes>, timeout: Duration) -> Result<Version> {
        key::check(key)?;
        let by = deadline(key, timeout)?;
        let bytes = value.as_ref().map_or(0, Bytes::len);
        if bytes > self.value_bytes_max() {
            let (key, store) = (key.to_owned(), self.connection.name());
            return Err(StoreError::TooLarge { key, store, bytes, bytes_max: self.value_bytes_max() });
        }
        let name = self.layout.key(key);
        let change = match value {
            Some(value) => Request::Put(PutRequest { key: name.clone(), value }),
            None => Request::DeleteRange(DeleteRangeRequest { key: name.clone(), range_end: Bytes::new() }),
        };
        let look = RangeRequest { key: name.clone(), keys_only: true, ..RangeRequest::default() };
        let txn = TxnRequest {
            compare: vec![Compare::is_at(name, expected)],
            success: vec![change.into()],
            failure: vec![Request::Range(look).into()],
        };
        let answer = self.txn(txn, key, bytes, by).await?;
        if answer.succeeded {
            return Ok(version(answer.header.unwrap_or_default().revision));
        }
        let found = kvs(&answer).next().map_or(Found::Absent, |found| Found::Version(version(found.mod_revision)));
        Err(StoreError::Conflict { key: key.to_owned(), found })
    }

    async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize, timeout: Duration) -> Result<Page> {
        key::check_prefix(prefix)?;
        let by = deadline(prefix, timeout)?;
        let (from, end) = self.layout.keys(prefix, after);
        let mut page = PageBuilder::new(limit);
        let mut more = false;
        self.walk(from, end, prefix, by, limit, |found| {
            // What is no text was not put here by a store.
            let Some(key) = self.layout.key_of(&found.key) else { return true };
            if page.is_full() {
                more = true;
                return false;
            }
            let versioned = Versioned { value: found.value, version: version(found.mod_revision) };
            page.push(Item { key, versioned });
            true
        })
        .await?;
        Ok(page.finish(more))
    }

    /// Carries out a transaction that writes `bytes` under `key`, once.
    async fn txn(&self, txn: TxnRequest, key: &str, bytes: usize, by: Instant) -> Result<TxnResponse> {
        let answer = self.connection.ask(TXN, txn, Effect::Writes, ANSWER_BYTES_MAX, by).await;
        answer.map_err(|failure| failure.of_write(&self.connection.name(), &self.layout.root, key, bytes))
    }

    fn read_error(&self, failure: fault::Failure, key: &str) -> StoreError {
        failure.of_read(&self.connection.name(), &self.layout.root, key)
    }
}

impl Store for EtcdStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.inner.read(key, timeout).boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.inner.write(key, 0, Some(value), timeout).boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.inner.write(key, revision(expected), Some(value), timeout).boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.write(key, revision(expected), None, timeout).map(|answer| answer.map(|_| ())).boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(prefix, after, limit, timeout).boxed()
    }
}

/// What the reads of a transaction have found.
fn kvs(answer: &TxnResponse) -> impl Iterator<Item = &proto::KeyValue> {
    let responses = answer.responses.iter().filter_map(|response| response.response.as_ref());
    responses.flat_map(|Response::Range(range)| &range.kvs)
}

/// A store that cannot be opened in time is not available: there is no key that was not written.
fn unopened(error: StoreError, store: &str) -> StoreError {
    match error {
        StoreError::NotApplied { reason, .. } => StoreError::Unavailable { store: store.to_owned(), reason },
        other => other,
    }
}

/// Of names and values in etcd, as this version writes and reads them.
const FORMAT: &str = "1";

/// Within which an etcd that is being opened must answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Beside the value: three times the name of a key, and what etcd itself adds before it measures a request.
const REQUEST_OVERHEAD_BYTES: usize = 4096;

/// More than any one value: etcd's limit for requests is rarely raised, and hardly beyond this.
const ANSWER_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
