//! A store in another place.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom_store::journal::{Committed, Limits};
use greenroom_store::{Commit, Entry, Journal, Page, Result, Store, Version, Versioned};

/// The store as a cluster sees it that is so far from it, one way.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) way: Duration,
}

impl Remote {
    fn far<'a, T: Send + 'a>(&'a self, answer: BoxFuture<'a, Result<T>>) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            tokio::time::sleep(self.way).await;
            let answer = answer.await;
            tokio::time::sleep(self.way).await;
            answer
        })
    }
}

impl Store for Remote {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.far(self.journal.read(key, timeout))
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.far(self.journal.create(key, value, timeout))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.far(self.journal.replace(key, value, expected, timeout))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.far(self.journal.delete(key, expected, timeout))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.far(self.journal.scan(prefix, after, limit, timeout))
    }
}

impl Journal for Remote {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        self.far(self.journal.commit(commit, timeout))
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        self.far(self.journal.entries(log, from, limit, timeout))
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        self.far(self.journal.end(log, timeout))
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.far(self.journal.trim(log, through, timeout))
    }

    fn limits(&self) -> Limits {
        self.journal.limits()
    }
}
