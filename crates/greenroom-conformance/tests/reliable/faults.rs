//! A journal with faults: full, read-only, of a newer program, or asked for too much. Nothing is lost, errors say what it is,
//! and all goes on by itself when the cause is gone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom::prelude::*;
use greenroom_store::journal::{Entry, Limits};
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Commit, Committed, Journal, Page, Result, Store, StoreError, Version, Versioned};

/// A journal in memory that takes small values, and refuses commits for as long as it is told to.
#[derive(Debug, Default)]
struct Faulty {
    inner: MemoryStore,
    fault: Mutex<Option<StoreError>>,
    refused: Mutex<u64>,
}

impl Faulty {
    fn fail(&self, fault: Option<StoreError>) {
        *self.fault.lock().unwrap() = fault;
    }
}

impl Store for Faulty {
    fn read<'a>(&'a self, key: &'a str, by: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.inner.read(key, by)
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, by: Duration) -> BoxFuture<'a, Result<Version>> {
        self.inner.create(key, value, by)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        by: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.inner.replace(key, value, expected, by)
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, by: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.delete(key, expected, by)
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        by: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(prefix, after, limit, by)
    }
}

impl Journal for Faulty {
    fn commit(&self, commit: Commit, by: Duration) -> BoxFuture<'_, Result<Committed>> {
        let fault = self.fault.lock().unwrap().clone();
        Box::pin(async move {
            if let Some(fault) = fault {
                *self.refused.lock().unwrap() += 1;
                return Err(fault);
            }
            commit.check(&self.limits(), "the journal")?;
            self.inner.commit(commit, by).await
        })
    }

    fn entries<'a>(&'a self, log: &'a str, from: u64, limit: usize, by: Duration) -> BoxFuture<'a, Result<Vec<Entry>>> {
        self.inner.entries(log, from, limit, by)
    }

    fn end<'a>(&'a self, log: &'a str, by: Duration) -> BoxFuture<'a, Result<u64>> {
        self.inner.end(log, by)
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, by: Duration) -> BoxFuture<'a, Result<()>> {
        self.inner.trim(log, through, by)
    }

    fn limits(&self) -> Limits {
        Limits { value_bytes_max: VALUE_BYTES_MAX, ..Limits::default() }
    }
}

#[derive(Default, Actor)]
struct Shelf {
    heard: Register<u64>,
    last: Register<String>,
}

#[actor(reliable)]
impl Shelf {
    pub async fn put(&mut self, cx: &Cx, text: String) -> u64 {
        *self.heard.get_mut() += 1;
        ShelfRef::of(cx, format!("{}'s neighbour", cx.key())).take(text).send();
        *self.heard.get()
    }

    pub async fn take(&mut self, text: String) {
        *self.heard.get_mut() += 1;
        self.last.set(text);
    }

    pub async fn look(&self) -> (u64, String) {
        (*self.heard.get(), self.last.get().clone())
    }
}

async fn node(journal: &Arc<Faulty>) -> Node {
    let builder = Node::builder().register::<Shelf>().journal_store(journal.clone());
    builder.configure(|config| (config.reliable.partitions, config.shards) = (2, 1)).start().await.expect("it starts")
}

async fn heard(node: &Node, key: &str, count: u64) -> String {
    let begun = std::time::Instant::now();
    loop {
        let (heard, last) = ShelfRef::of(node, key).look().await.expect("it answers");
        if heard >= count || begun.elapsed() > Duration::from_secs(60) {
            assert_eq!(heard, count);
            return last;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_a_full_or_read_only_journal_refuses_is_committed_once_there_is_room() {
    let full = StoreError::Full { store: "the journal".to_owned(), reason: "no space left on device".to_owned() };
    let denied = StoreError::Denied { store: "the journal".to_owned(), reason: "a read-only database".to_owned() };
    for fault in [full, denied] {
        let journal = Arc::new(Faulty::default());
        let node = node(&journal).await;
        let shelf = ShelfRef::of(&node, "a");
        assert_eq!(shelf.put("one".to_owned()).await, Ok(1));
        journal.fail(Some(fault));
        let waiting = tokio::spawn({
            let shelf = shelf.clone();
            async move { shelf.put("two".to_owned()).by(Duration::from_secs(20)).await }
        });
        while *journal.refused.lock().unwrap() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!waiting.is_finished(), "nothing is answered that is not committed");
        journal.fail(None);
        assert_eq!(waiting.await.expect("it does not panic"), Ok(2));
        assert_eq!(heard(&node, "a's neighbour", 2).await, "two");
        node.stop().await;
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_fails_its_turn_alone_and_says_so() {
    let journal = Arc::new(Faulty::default());
    let node = node(&journal).await;
    let shelves: Vec<_> = (0..8).map(|n| ShelfRef::of(&node, format!("shelf {n}"))).collect();
    let puts = shelves.iter().enumerate().map(|(n, shelf)| {
        let text = if n == 3 { "x".repeat(2 * VALUE_BYTES_MAX) } else { "small".to_owned() };
        async move { shelf.put(text).await }
    });
    for (n, answer) in futures_util::future::join_all(puts).await.into_iter().enumerate() {
        match answer {
            Ok(count) => assert!(n != 3 && count == 1, "{n}: {count}"),
            Err(error) => assert!(n == 3 && error.to_string().contains("takes at most"), "{n}: {error}"),
        }
    }
    assert_eq!(shelves[3].put("small".to_owned()).await, Ok(1), "the turn that failed has left nothing");
    for n in 0..8 {
        assert_eq!(heard(&node, &format!("shelf {n}'s neighbour"), 1).await, "small");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_partition_that_a_newer_program_has_written_waits_for_one() {
    let journal = Arc::new(Faulty::default());
    let first = node(&journal).await;
    assert_eq!(ShelfRef::of(&first, "a").put("one".to_owned()).await, Ok(1));
    heard(&first, "a's neighbour", 1).await;
    first.stop().await;
    let mut fences = Vec::new();
    for item in journal.scan("reliable/", None, 1000, BY).await.unwrap().items {
        if item.key.ends_with("/fence") {
            // A payload's second byte is its version.
            let newer = [&[item.versioned.value[0], 9], &item.versioned.value[2..]].concat();
            let version = journal.replace(&item.key, newer.into(), &item.versioned.version, BY).await.unwrap();
            fences.push((item.key, item.versioned.value, version));
        }
    }
    assert!(!fences.is_empty());
    let second = node(&journal).await;
    let shelf = ShelfRef::of(&second, "a");
    let early = shelf.put("two".to_owned()).once().await;
    let Err(CallError::Refused(refusal)) = early else {
        panic!("nothing is done with what is not understood: {early:?}")
    };
    assert!(refusal.to_string().contains("has format 9"), "{refusal}");
    for (key, value, version) in fences {
        journal.replace(&key, value, &version, BY).await.unwrap();
    }
    let put = loop {
        match shelf.put("three".to_owned()).await {
            Err(CallError::Refused(Refusal::Activation { .. })) => tokio::time::sleep(Duration::from_millis(50)).await,
            put => break put,
        }
    };
    assert_eq!(put, Ok(2), "it goes on by itself, and what was refused has not run");
    second.stop().await;
}

#[tokio::test]
async fn a_damaged_page_of_a_file_is_named_to_who_calls_the_actors_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = async |file: &std::path::Path| {
        let builder = Node::builder().register::<Shelf>().journal(format!("sqlite:{}", file.display()));
        builder.configure(|config| config.reliable.partitions = 1).start().await.expect("it starts")
    };
    let file = folder.path().join("journal.db");
    let first = node(&file).await;
    let needle = b"needle 30 ";
    let find = |bytes: &[u8]| bytes.windows(needle.len()).position(|window| window == needle);
    // Until the log has been taken over into the file, and begun anew.
    let mut n = 0;
    while n < 40 || find(&std::fs::read(&file).unwrap()).is_none() {
        let text = format!("needle {n} {}", "x".repeat(100_000));
        ShelfRef::of(&first, format!("shelf {n}")).take(text).await.unwrap();
        n += 1;
    }
    ShelfRef::of(&first, "the first in the new log").take("a word".to_owned()).await.unwrap();
    first.stop().await;
    let damaged = folder.path().join("copy").join("journal.db");
    std::fs::create_dir(folder.path().join("copy")).unwrap();
    std::fs::copy(folder.path().join("journal.db-wal"), folder.path().join("copy").join("journal.db-wal")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let at = find(&bytes).expect("it is in the file");
    // What a page is stands at its beginning.
    let page = at / PAGE_BYTES * PAGE_BYTES;
    bytes[page..page + 16].fill(0xFF);
    std::fs::write(&damaged, bytes).unwrap();

    let second = node(&damaged).await;
    let refused = ShelfRef::of(&second, "shelf 30").look().once().await;
    let Err(CallError::Refused(refusal)) = refused else { panic!("it cannot be read: {refused:?}") };
    let said = refusal.to_string();
    assert!(said.contains("journal.db") && said.contains("is damaged"), "{said}");
    assert_eq!(ShelfRef::of(&second, "shelf 0").look().await.unwrap().0, 1, "it is on another page");
    second.stop().await;
}

/// Of SQLite's files.
const PAGE_BYTES: usize = 4096;
const BY: Duration = Duration::from_secs(5);
const VALUE_BYTES_MAX: usize = 16 << 10;
