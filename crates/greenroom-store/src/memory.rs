//! A store in this process's memory: for tests, the simulated world, and clusters of one process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::scan::PageBuilder;
use crate::{Found, Item, Page, Result, Store, StoreError, Version, Versioned, key};

/// A store in memory; clones share it, and it is gone with the last of them. Every operation answers at once.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, Versioned>,
    last_version: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No operation leaves the table half changed, so one that panicked has not harmed it.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, name: &str, expected: Option<&Version>, value: Option<Bytes>) -> Result<Version> {
        key::check(name)?;
        if let Some(value) = value.as_ref().filter(|value| value.len() > VALUE_BYTES_MAX) {
            let (key, store) = (name.to_owned(), "memory:".to_owned());
            return Err(StoreError::TooLarge { key, store, bytes: value.len(), bytes_max: VALUE_BYTES_MAX });
        }
        let mut table = self.table();
        let current = table.rows.get(name).map(|row| &row.version);
        if current != expected {
            let found = current.cloned().map_or(Found::Absent, Found::Version);
            return Err(StoreError::Conflict { key: name.to_owned(), found });
        }
        table.last_version += 1;
        let version = Version::new(table.last_version.to_string());
        match value {
            Some(value) => {
                table.rows.insert(name.to_owned(), Versioned { value, version: version.clone() });
            }
            None => {
                table.rows.remove(name);
            }
        }
        Ok(version)
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

impl Store for MemoryStore {
    fn read<'a>(&'a self, key: &'a str, _timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move { key::check(key).map(|()| self.table().rows.get(key).cloned()) }.boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, _timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        async move { self.change(key, None, Some(value)) }.boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        async move { self.change(key, Some(expected), Some(value)) }.boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, _timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move { self.change(key, Some(expected), None).map(|_| ()) }.boxed()
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

/// Largest value: 64 MiB, as the embedded store's, so that what fits here fits there.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
