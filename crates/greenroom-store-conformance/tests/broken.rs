//! The suite finds what is wrong: each provider here breaks one promise, and a claim says which.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::journal::Write;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Commit, Committed, Entry, Journal, Page, Result, Store, StoreError, Version, Versioned};
use greenroom_store_conformance::crash::{self, Acknowledged};
use greenroom_store_conformance::{Harness, journal, store};

/// The promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Now and then a read answers what the one before it has found.
    StaleReads,
    /// Now and then a write that was applied is said not to be.
    Denial,
    /// Replaces without looking at the version.
    Careless,
    /// Applies a commit write by write.
    Piecemeal,
    /// Does not look at what a commit holds.
    Fenceless,
    /// Puts the entries of a commit into its log in the wrong order.
    Reversed,
    /// A scan of several pages misses the first key of each but the first.
    Gaps,
}

#[derive(Debug)]
struct Broken {
    inner: MemoryStore,
    defect: Defect,
    calls: AtomicU64,
    earlier: Mutex<BTreeMap<String, Option<Versioned>>>,
}

impl Broken {
    fn new(defect: Defect) -> Arc<Self> {
        Arc::new(Self { inner: MemoryStore::new(), defect, calls: AtomicU64::new(0), earlier: Mutex::default() })
    }

    /// Whether it is time to misbehave.
    fn now(&self, defect: Defect) -> bool {
        self.defect == defect && self.calls.fetch_add(1, Ordering::Relaxed) % 7 == 6
    }

    fn deny<T>(&self, key: &str, done: Result<T>) -> Result<T> {
        let reason = "it was, in truth".to_owned();
        if self.now(Defect::Denial) { Err(StoreError::NotApplied { key: key.to_owned(), reason }) } else { done }
    }
}

impl Store for Broken {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            let found = self.inner.read(key, timeout).await?;
            let before = self.earlier.lock().unwrap().insert(key.to_owned(), found.clone());
            Ok(if self.now(Defect::StaleReads) { before.unwrap_or(found) } else { found })
        }
        .boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        async move { self.deny(key, self.inner.create(key, value, timeout).await) }.boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        async move {
            if self.defect == Defect::Careless {
                let put = self.inner.commit(Commit::new().put(key, value), timeout).await?;
                return Ok(put.versions[0].clone().unwrap());
            }
            self.deny(key, self.inner.replace(key, value, expected, timeout).await)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.delete(key, expected, timeout)
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        async move {
            let mut page = self.inner.scan(prefix, after, limit, timeout).await?;
            if self.defect == Defect::Gaps && after.is_some() && page.items.len() > 1 {
                page.items.remove(0);
            }
            Ok(page)
        }
        .boxed()
    }
}

impl Journal for Broken {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        async move {
            let mut commit = commit;
            match self.defect {
                Defect::Reversed => commit.appends.reverse(),
                Defect::Fenceless => {
                    let held = commit.writes.len();
                    commit.writes.retain(|write| !matches!(write, Write::Holds { .. }));
                    let mut committed = self.inner.commit(commit.clone(), timeout).await?;
                    committed.versions.resize(held, None);
                    return Ok(committed);
                }
                Defect::Piecemeal => {
                    let mut committed = Committed::default();
                    for write in commit.writes {
                        let one = self.inner.commit(Commit::new().write(write), timeout).await?;
                        committed.versions.extend(one.versions);
                        // As an engine would that is asked twice.
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    let appends = Commit { writes: Vec::new(), appends: commit.appends };
                    committed.positions = self.inner.commit(appends, timeout).await?.positions;
                    return Ok(committed);
                }
                _ => {}
            }
            self.inner.commit(commit, timeout).await
        }
        .boxed()
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        self.inner.entries(log, from, limit, timeout)
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        self.inner.end(log, timeout)
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.trim(log, through, timeout)
    }
}

/// What the claim panics with; this fails if it does not.
async fn complaint(claim: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(claim).await.expect_err("the claim holds, although the promise is broken").into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap()
}

fn harness(defect: Defect) -> Harness {
    Harness::new(Broken::new(defect))
}

#[tokio::test]
async fn stale_reads_and_denied_writes_are_found_under_load() {
    for defect in [Defect::StaleReads, Defect::Denial, Defect::Careless] {
        let harness = harness(defect);
        let said = complaint(async move { store::single_keys_are_linearizable_under_load(&harness).await }).await;
        assert!(said.contains("no order explains these answers"), "{defect:?}: {said}");
    }
}

#[tokio::test]
async fn a_version_that_nobody_looks_at_is_found() {
    let broken = Broken::new(Defect::Careless);
    let claim = async move { store::a_replace_with_a_stale_version_conflicts_and_changes_nothing(&*broken).await };
    assert!(complaint(claim).await.contains("the condition does not hold"));
}

#[tokio::test]
async fn a_scan_with_gaps_is_found() {
    let broken = Broken::new(Defect::Gaps);
    let claim = async move { store::scans_page_in_key_order(&*broken).await };
    assert!(complaint(claim).await.contains("with pages of 3"));
}

#[tokio::test]
async fn commits_by_half_are_found() {
    let broken = Broken::new(Defect::Piecemeal);
    let failing = async move { journal::a_condition_that_fails_leaves_nothing_and_is_named(&*broken).await };
    complaint(failing).await;
    let broken: Arc<dyn Journal> = Broken::new(Defect::Piecemeal);
    let reading = async move { journal::readers_see_all_of_a_commit_or_nothing(&[broken]).await };
    complaint(reading).await;
}

#[tokio::test]
async fn a_fence_that_does_not_hold_is_found() {
    let broken: Arc<dyn Journal> = Broken::new(Defect::Fenceless);
    let claim = async move { journal::a_deposed_owner_commits_nothing_more(&[broken]).await };
    complaint(claim).await;
}

#[tokio::test]
async fn entries_out_of_order_are_found() {
    let broken = Broken::new(Defect::Reversed);
    let claim = async move { journal::a_commit_applies_all_of_itself(&*broken).await };
    complaint(claim).await;
}

#[tokio::test]
async fn lost_and_half_commits_are_found_after_a_crash() {
    let told = [Acknowledged { committer: 0, n: 1 }];
    let lost = async move { crash::examine(&MemoryStore::new(), "work", &told).await };
    assert!(complaint(lost).await.contains("1 were acknowledged, 0 are there"));
    let half = async move {
        let journal = MemoryStore::new();
        let part = Commit::new().put("work/0/a", "1".into()).append("work/0", "1".into());
        journal.commit(part, Duration::ZERO).await.unwrap();
        crash::examine(&journal, "work", &told).await;
    };
    assert!(complaint(half).await.contains("half a commit"));
}
