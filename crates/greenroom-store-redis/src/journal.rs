//! Commits and logs.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::{Commit, Committed, Entry, Journal, Result, key};

use crate::RedisStore;

impl Journal for RedisStore {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        self.commit_checked(commit, timeout).boxed()
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
            self.shared.reader.entries(log, from, limit, timeout).await
        }
        .boxed()
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move {
            key::check(log)?;
            self.shared.reader.end(log, timeout).await
        }
        .boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            key::check(log)?;
            self.shared.reader.trim(log, through, timeout).await
        }
        .boxed()
    }
}
