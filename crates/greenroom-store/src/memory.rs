//! A store and journal in this process's memory: for tests, the simulated world, and clusters of one process.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::journal::{Append, Commit, Committed, EntriesBuilder, Entry, Journal, Limits, Write};
use crate::scan::PageBuilder;
use crate::{Found, Item, Page, Result, Store, StoreError, Version, Versioned, key};

/// A store and journal in memory; clones share it, and it is gone with the last of them. Every operation answers at once.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, Versioned>,
    logs: BTreeMap<String, Log>,
    last_version: u64,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Bytes>,
    /// How many were trimmed away: the first of `entries` is at the next position.
    trimmed: u64,
}

impl Log {
    fn end(&self) -> u64 {
        self.trimmed + self.entries.len() as u64 + 1
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose versions count on from `version`: above all those of its predecessors, so that a version which outlives one
    /// of them is none of this one's.
    pub fn counting_from(version: u64) -> Self {
        let table = Table { last_version: version, ..Table::default() };
        Self { shared: Arc::new(Mutex::new(table)) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No operation leaves the table half changed, so one that panicked has not harmed it.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, write: Write) -> Result<Option<Version>> {
        let commit = Commit::new().write(write);
        commit.check(&Limits::default(), NAME)?;
        Ok(self.table().apply(commit)?.versions.pop().flatten())
    }

    fn put(&self, write: Write) -> Result<Version> {
        Ok(self.change(write)?.expect("every write with a value gets a version"))
    }

    fn page(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        key::check_prefix(prefix)?;
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let table = self.table();
        let mut page = PageBuilder::new(limit);
        let matches =
            table.rows.range::<str, _>((from, Bound::Unbounded)).take_while(|(key, _)| key.starts_with(prefix));
        for (key, versioned) in matches {
            if page.is_full() {
                return Ok(page.finish(true));
            }
            page.push(Item { key: key.clone(), versioned: versioned.clone() });
        }
        Ok(page.finish(false))
    }
}

impl Table {
    /// Applies a checked commit, if its conditions hold.
    fn apply(&mut self, commit: Commit) -> Result<Committed> {
        commit.writes.iter().try_for_each(|write| self.check_condition(write))?;
        let versions = commit.writes.into_iter().map(|write| self.write(write)).collect();
        let positions = commit.appends.into_iter().map(|append| self.append(append)).collect();
        Ok(Committed { versions, positions })
    }

    fn check_condition(&self, write: &Write) -> Result<()> {
        let current = self.rows.get(write.key()).map(|row| &row.version);
        let holds = match write {
            Write::Put { .. } | Write::Remove { .. } => true,
            Write::Create { .. } => current.is_none(),
            Write::Replace { expected, .. } | Write::Delete { expected, .. } | Write::Holds { expected, .. } => {
                current == Some(expected)
            }
        };
        if holds {
            return Ok(());
        }
        let found = current.cloned().map_or(Found::Absent, Found::Version);
        Err(StoreError::Conflict { key: write.key().to_owned(), found })
    }

    fn write(&mut self, write: Write) -> Option<Version> {
        match write {
            Write::Holds { .. } => None,
            Write::Delete { key, .. } | Write::Remove { key } => {
                self.rows.remove(&key);
                None
            }
            Write::Create { key, value } | Write::Replace { key, value, .. } | Write::Put { key, value } => {
                self.last_version += 1;
                let version = Version::new(self.last_version.to_string());
                self.rows.insert(key, Versioned { value, version: version.clone() });
                Some(version)
            }
        }
    }

    fn append(&mut self, append: Append) -> u64 {
        let log = self.logs.entry(append.log).or_default();
        let position = log.end();
        log.entries.push_back(append.entry);
        position
    }
}

impl Store for MemoryStore {
    fn read<'a>(&'a self, key: &'a str, _timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move { key::check(key).map(|()| self.table().rows.get(key).cloned()) }.boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, _timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        async move { self.put(Write::Create { key: key.to_owned(), value }) }.boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        let write = || Write::Replace { key: key.to_owned(), value, expected: expected.clone() };
        async move { self.put(write()) }.boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, _timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let write = || Write::Delete { key: key.to_owned(), expected: expected.clone() };
        async move { self.change(write()).map(|_| ()) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        async move { self.page(prefix, after, limit) }.boxed()
    }
}

impl Journal for MemoryStore {
    fn commit(&self, commit: Commit, _timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        async move {
            commit.check(&self.limits(), NAME)?;
            self.table().apply(commit)
        }
        .boxed()
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        async move {
            key::check(log)?;
            let mut entries = EntriesBuilder::new(limit);
            if let Some(log) = self.table().logs.get(log) {
                let skipped = from.saturating_sub(log.trimmed + 1);
                let wanted =
                    log.entries.iter().zip(log.trimmed + 1..).skip(usize::try_from(skipped).unwrap_or(usize::MAX));
                for (value, position) in wanted {
                    if entries.is_full() {
                        break;
                    }
                    entries.push(Entry { position, value: value.clone() });
                }
            }
            Ok(entries.finish())
        }
        .boxed()
    }

    fn end<'a>(&'a self, log: &'a str, _timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move { key::check(log).map(|()| self.table().logs.get(log).map_or(1, Log::end)) }.boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, _timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(log)?;
            if let Some(log) = self.table().logs.get_mut(log) {
                while log.trimmed < through && log.entries.pop_front().is_some() {
                    log.trimmed += 1;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// As errors name it.
const NAME: &str = "memory:";

/// Largest value: 64 MiB, as the embedded store's, so that what fits here fits there.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
