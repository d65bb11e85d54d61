//! A store that counts, and fails on command.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Page, Result, Store, StoreError, Version, Versioned};

/// What becomes of the next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is refused.
    Refused,
    /// It is lost, and nobody knows.
    Lost,
    /// It is applied, and nobody knows.
    Unacknowledged,
}

/// A memory store with faults.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    /// Writes wait while somebody has it for himself.
    pub(crate) gate: tokio::sync::RwLock<()>,
    faults: Mutex<Vec<Fault>>,
    down: Mutex<bool>,
}

/// The store's list of namespaces.
const NAMESPACES: &str = "greenroom/namespaces";

impl Faulty {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Lets the next writes end so, the last of `faults` first.
    pub(crate) fn next(&self, faults: &[Fault]) {
        *self.faults.lock().unwrap() = faults.to_vec();
    }

    /// Lets everything fail, or nothing.
    pub(crate) fn down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    fn check(&self, key: &str) -> Result<()> {
        if !*self.down.lock().unwrap() {
            return Ok(());
        }
        let _ = key;
        Err(StoreError::Unavailable { store: "faulty:".into(), reason: "it is down".into() })
    }

    async fn write<T>(&self, key: &str, write: impl Future<Output = Result<T>>) -> Result<T> {
        // A node that starts enters its namespace: that is no actor's.
        if key == NAMESPACES {
            return write.await;
        }
        self.writes.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.read().await);
        let fault = self.faults.lock().unwrap().pop();
        self.check(key)?;
        let unknown = StoreError::Unknown { key: key.into(), reason: "the answer was lost".into() };
        match fault {
            None => write.await,
            Some(Fault::Refused) => Err(StoreError::NotApplied { key: key.into(), reason: "as told".into() }),
            Some(Fault::Lost) => Err(unknown),
            Some(Fault::Unacknowledged) => {
                write.await?;
                Err(unknown)
            }
        }
    }
}

impl Store for Faulty {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        // Reminders are looked for in the same store, and so are namespaces.
        if !key.starts_with("reminders/") && key != NAMESPACES {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        Box::pin(async move {
            self.check(key)?;
            self.inner.read(key, timeout).await
        })
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        Box::pin(self.write(key, self.inner.create(key, value, timeout)))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        Box::pin(self.write(key, self.inner.replace(key, value, expected, timeout)))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.write(key, self.inner.delete(key, expected, timeout)))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(prefix, after, limit, timeout)
    }
}
