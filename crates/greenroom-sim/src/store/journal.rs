//! Journals behind the simulated network: the same faults, for commits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_store::journal::{Committed, Limits};
use greenroom_store::{Commit, Entry, Journal, Result};

use super::{Asked, Seen, SimStore};

impl SimStore {
    /// The journal as the node called `node` reaches it.
    ///
    /// # Panics
    /// If the store was not made by [`SimStore::journal`].
    pub fn journal_seen_by(&self, node: &str) -> Arc<dyn Journal> {
        assert!(self.journal.is_some(), "{} is no journal; make it with SimStore::journal", self.name);
        Arc::new(Seen { store: self.clone(), node: node.into() })
    }
}

impl Seen {
    fn inner(&self) -> Arc<dyn Journal> {
        self.store.journal.clone().expect("only those of journals are given out as journals")
    }
}

impl Journal for Seen {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        let inner = self.inner();
        Box::pin(async move {
            let name = commit.name().to_owned();
            let operation = Box::pin(async move { inner.commit(commit, timeout).await });
            self.ask(Asked::Commit, &name, timeout, operation).await
        })
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        let (inner, owned) = (self.inner(), log.to_owned());
        let operation = Box::pin(async move { inner.entries(&owned, from, limit, timeout).await });
        Box::pin(self.ask(Asked::Read, log, timeout, operation))
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        let (inner, owned) = (self.inner(), log.to_owned());
        let operation = Box::pin(async move { inner.end(&owned, timeout).await });
        Box::pin(self.ask(Asked::Read, log, timeout, operation))
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        let (inner, owned) = (self.inner(), log.to_owned());
        let operation = Box::pin(async move { inner.trim(&owned, through, timeout).await });
        Box::pin(self.ask(Asked::Trim, log, timeout, operation))
    }

    fn limits(&self) -> Limits {
        self.inner().limits()
    }
}
