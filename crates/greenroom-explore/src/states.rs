//! Where actors that are explored keep their states: a store in memory, whose operations are steps.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom::rehearsal::{Outcome, hold_late_write, hold_operation};
use greenroom_store::journal::Limits;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Commit, Committed, Entry, Journal, Page, Result, Store, StoreError, Version, Versioned};

/// The store; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct States(Arc<Mutex<MemoryStore>>);

impl States {
    /// Forgets all that was saved.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = MemoryStore::new();
    }

    fn now(&self) -> MemoryStore {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads when that is chosen.
    async fn reading<T>(
        &self,
        key: &str,
        read: impl FnOnce(MemoryStore) -> BoxFuture<'static, Result<T>>,
    ) -> Result<T> {
        match chosen("read", key, false).await {
            Outcome::Done => read(self.now()).await,
            _ => Err(StoreError::Unavailable { store: STORE.to_owned(), reason: REASON.to_owned() }),
        }
    }

    /// Writes when that is chosen.
    async fn writing<T: 'static>(
        &self,
        what: &'static str,
        key: &str,
        write: impl FnOnce(MemoryStore) -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let outcome = chosen(what, key, true).await;
        match outcome {
            Outcome::Done => return write(self.now()).await,
            Outcome::Refused => {
                return Err(StoreError::NotApplied { key: key.to_owned(), reason: REASON.to_owned() });
            }
            Outcome::NotApplied => {}
            // Memory answers at once.
            Outcome::Applied => _ = write(self.now()).now_or_never(),
            Outcome::AppliedLater => {
                let states = self.clone();
                hold_late_write(|| format!("late {}", name(what, key)), move || _ = write(states.now()).now_or_never());
            }
        }
        Err(StoreError::Unknown { key: key.to_owned(), reason: REASON.to_owned() })
    }
}

/// How an operation ends. What is no actor's is done at once.
async fn chosen(what: &'static str, key: &str, is_write: bool) -> Outcome {
    let held = key.starts_with(OF_ACTORS).then(|| hold_operation(|| name(what, key), is_write)).flatten();
    match held {
        // It is dropped unchosen where all is forgotten.
        Some(outcome) => outcome.await.unwrap_or(Outcome::Refused),
        None => Outcome::Done,
    }
}

/// `write account/ada`, or `write account/ada.profile` where the state is a field.
fn name(what: &str, key: &str) -> String {
    let name = key.strip_prefix(OF_ACTORS).unwrap_or(key);
    // All states have one namespace here.
    let name = name.strip_prefix('@').and_then(|name| name.split_once('/')).map_or(name, |(_, name)| name);
    let mut parts = name.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some("self"), Some(actor)) => format!("{what} {kind}/{actor}"),
        (Some(kind), Some(field), Some(actor)) => format!("{what} {kind}/{actor}.{field}"),
        _ => format!("{what} {key}"),
    }
}

impl Store for States {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        let owned = key.to_owned();
        Box::pin(self.reading(key, move |store| Box::pin(async move { store.read(&owned, timeout).await })))
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        let owned = key.to_owned();
        let create = move |store: MemoryStore| -> BoxFuture<'static, _> {
            Box::pin(async move { store.create(&owned, value, timeout).await })
        };
        Box::pin(self.writing("write", key, create))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        let (owned, expected) = (key.to_owned(), expected.clone());
        let replace = move |store: MemoryStore| -> BoxFuture<'static, _> {
            Box::pin(async move { store.replace(&owned, value, &expected, timeout).await })
        };
        Box::pin(self.writing("write", key, replace))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let (owned, expected) = (key.to_owned(), expected.clone());
        let delete = move |store: MemoryStore| -> BoxFuture<'static, _> {
            Box::pin(async move { store.delete(&owned, &expected, timeout).await })
        };
        Box::pin(self.writing("remove", key, delete))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        let store = self.now();
        Box::pin(async move { store.scan(prefix, after, limit, timeout).await })
    }
}

/// What versioned states need beside: it is no step.
impl Journal for States {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        let store = self.now();
        Box::pin(async move { store.commit(commit, timeout).await })
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        let store = self.now();
        Box::pin(async move { store.entries(log, from, limit, timeout).await })
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        let store = self.now();
        Box::pin(async move { store.end(log, timeout).await })
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let store = self.now();
        Box::pin(async move { store.trim(log, through, timeout).await })
    }

    fn limits(&self) -> Limits {
        self.now().limits()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STORE)
    }
}

/// What keys of actors' states begin with.
const OF_ACTORS: &str = "state/";
const STORE: &str = "the stage's store";
const REASON: &str = "so it was chosen";
