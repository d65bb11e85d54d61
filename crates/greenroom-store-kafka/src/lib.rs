//! The journal in Kafka: commits are records of one topic, each there whole or not at all; checkpoints of what they have
//! come to are transactions of a second one, which Kafka compacts.
//!
//! Both topics have the same fixed number of partitions, whatever the number of actors: slices, of which each
//! has what some partitions of reliable actors have. A process that uses a slice reads its last checkpoint and carries out
//! the commits behind it, in the order of their records, and goes on as they come. Whether a commit's conditions hold is so
//! decided by its place in that order, for all readers alike; its writer learns it when its own record comes back. A read
//! asks where the slice ends, and waits until all before that is carried out.
//!
//! # Limits
//!
//! - What a process uses of the journal it has in memory: the slices of its partitions.
//! - A commit is one record: at most [`COMMIT_BYTES_MAX`].
//! - Keys and logs of one commit lie in one slice: those of one partition of reliable actors, or of none.
//! - Kafka acknowledges what its replicas have in memory. What survives the loss of power is what several of them have.
//! - No TLS and no users.

mod checkpoint;
mod clients;
mod command;
mod core;
mod fault;
mod opening;
mod record;
mod replica;
mod restore;
mod settings;
mod slices;
mod state;
mod tail;
mod topic;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::journal::{Limits, Write};
use greenroom_store::scan::PageBuilder;
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store::{
    Commit, Committed, Entry, Item, Journal, Page, Result, Store, StoreError, Version, Versioned, key,
};

use crate::core::Core;
pub use topic::KafkaTopic;

use command::Order;
use settings::Settings;

/// A store and journal in Kafka. Clones share it; its threads end with the last of them.
#[derive(Clone, Debug)]
pub struct KafkaStore {
    core: Arc<Core>,
}

impl KafkaStore {
    /// Opens the journal of a `kafka:` URL, and makes its topics if they are not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] if the URL is none or the topics are not set as they must be;
    /// [`StoreError::Unavailable`] if no broker can be reached within ten seconds.
    pub async fn open(url: &str) -> Result<Self> {
        let wrong = |reason: String| StoreError::Configuration { store: greenroom_store::url::redact(url), reason };
        match url.parse().map_err(|error: greenroom_store::url::Error| wrong(error.to_string()))? {
            StoreUrl::Kafka(remote) => Self::open_remote(&remote).await,
            _ => Err(wrong("it is no URL of Kafka; write \"kafka://host/prefix\"".to_owned())),
        }
    }

    /// Opens the journal that `remote` names; otherwise as [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_remote(remote: &Remote) -> Result<Self> {
        let core = opening::open(Settings::of(remote)?).await?;
        Ok(Self { core: Arc::new(core) })
    }

    async fn write(&self, write: Write, timeout: Duration) -> Result<Option<Version>> {
        let committed = self.commit_now(Commit::new().write(write), timeout).await?;
        Ok(committed.versions.into_iter().next().flatten())
    }

    async fn put(&self, write: Write, timeout: Duration) -> Result<Version> {
        let version = self.write(write, timeout).await?;
        Ok(version.expect("every write with a value gets a version"))
    }

    async fn commit_now(&self, commit: Commit, timeout: Duration) -> Result<Committed> {
        commit.check(&self.limits(), self.core.name())?;
        if commit.operations() == 0 {
            return Ok(Committed::default());
        }
        let slice = slices::slice_of_commit(&commit, self.core.slices())?;
        self.core.order(slice, commit.name(), Order::commit(&commit), timeout).await
    }

    async fn scan_now(&self, prefix: &str, after: Option<&str>, limit: usize, timeout: Duration) -> Result<Page> {
        key::check_prefix(prefix)?;
        let mut page = PageBuilder::new(limit);
        let mut items: Vec<Item> = Vec::new();
        // One more than asked for says whether there is more.
        let more = limit.clamp(1, greenroom_store::scan::LIMIT_MAX) + 1;
        for slice in slices::slices_of_prefix(prefix, self.core.slices()) {
            items.extend(self.core.look(slice, prefix, timeout, |replica| replica.scan(prefix, after, more)).await?);
        }
        items.sort_by(|a, b| a.key.cmp(&b.key));
        for item in items {
            if page.is_full() {
                return Ok(page.finish(true));
            }
            page.push(item);
        }
        Ok(page.finish(false))
    }
}

impl Store for KafkaStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            key::check(key)?;
            let slice = slices::slice_of(key, self.core.slices());
            self.core.look(slice, key, timeout, |replica| replica.read(key)).await
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
        self.write(write, timeout).map(|answer| answer.map(drop)).boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.scan_now(prefix, after, limit, timeout).boxed()
    }
}

impl Journal for KafkaStore {
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
            let slice = slices::slice_of(log, self.core.slices());
            self.core.look(slice, log, timeout, |replica| replica.entries(log, from, limit)).await
        }
        .boxed()
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move {
            key::check(log)?;
            let slice = slices::slice_of(log, self.core.slices());
            self.core.look(slice, log, timeout, |replica| replica.end(log)).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(log)?;
            let slice = slices::slice_of(log, self.core.slices());
            let order = Order::Trim { log: log.to_owned(), through };
            self.core.order(slice, log, order, timeout).await.map(drop)
        }
        .boxed()
    }

    fn limits(&self) -> Limits {
        Limits { bytes_max: COMMIT_BYTES_MAX, value_bytes_max: VALUE_BYTES_MAX, ..Limits::default() }
    }
}

/// Most bytes of all keys, values and entries of a commit: 12 MiB.
pub const COMMIT_BYTES_MAX: usize = 12 << 20;

/// Largest value or entry: 8 MiB.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// Largest record: a commit and what its encoding adds.
const RECORD_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests;
