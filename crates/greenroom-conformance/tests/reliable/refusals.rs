//! What cannot be is refused, with the remedy.

use std::sync::Arc;
use std::time::Duration;

use greenroom::__private::Method;
use greenroom::prelude::*;
use greenroom_store::Store;
use greenroom_store::memory::MemoryStore;

use super::bank::Account;

#[derive(Default, Actor)]
struct Hasty {
    heard: u64,
}

#[derive(Default, Actor)]
struct Plain {
    heard: u64,
}

#[actor]
impl Plain {
    pub async fn hear(&mut self) -> u64 {
        self.heard += 1;
        self.heard
    }

    pub async fn heard(&self) -> u64 {
        self.heard
    }
}

/// What awaiting the call comes to, where no type says who awaits it.
async fn hasty<M: Method<Error = Never>>(call: greenroom::Call<M>) -> String {
    match call.await {
        Ok(_) => "it ran".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn cx_after<M: Method>(cx: &Cx, call: greenroom::Call<M>) -> String {
    cx.after(Duration::from_millis(1), call).map(drop).unwrap_err().to_string()
}

async fn registered<M: Method>(reminder: greenroom::Reminder<M>) -> String {
    reminder.await.unwrap_err().to_string()
}

fn spawn(cx: &Cx) {
    cx.spawn(Plain::default());
}

#[actor(reliable)]
impl Hasty {
    /// Waits for another actor's turn in the middle of its own.
    pub async fn wait(&mut self, cx: &Cx) -> String {
        self.heard += 1;
        hasty(PlainRef::of(cx, "other").hear()).await
    }

    /// Makes a timer, a child and a reminder by ways that the compiler does not see.
    pub async fn act(&mut self, cx: &Cx) -> Vec<String> {
        let me = HastyRef::me(cx);
        let timer = cx_after(cx, me.wait());
        vec![timer, registered(PlainRef::of(cx, "other").hear().after(Duration::from_secs(5))).await]
    }

    pub async fn spawn(&mut self, cx: &Cx) {
        spawn(cx);
    }

    /// Reads of others are allowed.
    pub async fn ask(&mut self, cx: &Cx) -> u64 {
        PlainRef::of(cx, "other").heard().await.unwrap_or(u64::MAX)
    }

    pub async fn tell_and_fail(&mut self, cx: &Cx, fails: bool) {
        PlainRef::of(cx, "other").hear().send();
        assert!(!fails, "on purpose");
    }
}

async fn node() -> Node {
    let builder = Node::builder().register::<Hasty>().register::<Plain>();
    builder.journal_store(Arc::new(MemoryStore::new())).start().await.expect("it starts")
}

#[tokio::test]
async fn a_turn_that_would_act_before_its_commit_is_told_what_to_write_instead() {
    let node = node().await;
    let said = HastyRef::of(&node, "a").wait().await.unwrap();
    assert!(said.contains("before the turn is committed") && said.contains("`.send()`"), "{said}");
    assert_eq!(PlainRef::of(&node, "other").heard().await.unwrap(), 0, "nothing has left");
    assert_eq!(HastyRef::of(&node, "a").ask().await.unwrap(), 0);
    node.stop().await;
}

#[tokio::test]
async fn what_the_compiler_does_not_see_is_refused_before_anything_leaves() {
    let node = node().await;
    for said in HastyRef::of(&node, "a").act().await.unwrap() {
        assert!(said.contains("commit") && said.contains(".send()"), "{said}");
    }
    let error = HastyRef::of(&node, "a").spawn().await.unwrap_err().to_string();
    assert!(error.contains("`Kind::create(cx)`"), "{error}");
    node.stop().await;
}

#[tokio::test]
async fn a_key_for_an_actor_whose_answers_nobody_keeps_is_refused() {
    let node = node().await;
    let error = PlainRef::of(&node, "a").hear().idempotent("17").await.unwrap_err();
    let CallError::Refused(Refusal::Invalid { field, message }) = &error else { panic!("{error:?}") };
    assert_eq!(field, "Idempotency-Key");
    assert!(message.contains("\"plain\" are not reliable"), "{message}");
    assert_eq!(PlainRef::of(&node, "a").heard().await.unwrap(), 0, "nothing has run");
    node.stop().await;
}

#[tokio::test]
async fn what_a_turn_sends_to_other_kinds_leaves_after_its_commit_or_never() {
    let node = node().await;
    HastyRef::of(&node, "a").tell_and_fail(true).await.unwrap_err();
    assert_eq!(PlainRef::of(&node, "other").heard().await.unwrap(), 0);
    HastyRef::of(&node, "a").tell_and_fail(false).await.unwrap();
    // It is on its way, and nothing else is.
    while PlainRef::of(&node, "other").heard().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(PlainRef::of(&node, "other").heard().await.unwrap(), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_reliable_kind_without_a_journal_does_not_start_and_says_why() {
    let error = Node::builder().register::<Account>().start().await.unwrap_err().to_string();
    assert!(error.contains("\"account\" is reliable") && error.contains("journal"), "{error}");
}

#[tokio::test]
async fn another_number_of_partitions_is_refused() {
    let journal = Arc::new(MemoryStore::new());
    let first = Node::builder().register::<Account>().journal_store(journal.clone()).start().await.unwrap();
    first.stop().await;
    let second = Node::builder().register::<Account>().journal_store(journal);
    let error = second.configure(|config| config.reliable.partitions = 8).start().await.unwrap_err().to_string();
    assert!(error.contains("64 partitions") && error.contains("partitions = 64"), "{error}");
}

#[tokio::test]
async fn a_journal_that_was_emptied_is_refused_with_the_remedy_and_left_as_it_is() {
    let table = Arc::new(MemoryStore::new());
    let started = |journal: &Arc<MemoryStore>| {
        Node::builder().register::<Account>().store(table.clone()).journal_store(journal.clone()).start()
    };
    let journal = Arc::new(MemoryStore::new());
    started(&journal).await.expect("it is new").stop().await;
    started(&journal).await.expect("it is the same").stop().await;

    let emptied = Arc::new(MemoryStore::new());
    for _ in 0..2 {
        let error = started(&emptied).await.expect_err("its actors are not there").to_string();
        assert!(error.contains("it is empty") && error.contains("backup"), "{error}");
        assert!(error.contains("\"reliable/greenroom/journal\""), "the key to remove: {error}");
    }
    assert!(emptied.scan("", None, 1, Duration::from_secs(1)).await.unwrap().items.is_empty());

    let key = "reliable/greenroom/journal";
    let known = table.read(key, Duration::from_secs(1)).await.unwrap().expect("the table knows the journal");
    table.delete(key, &known.version, Duration::from_secs(1)).await.unwrap();
    started(&emptied).await.expect("the operator has said that it is lost").stop().await;
}

#[tokio::test]
async fn a_journals_file_that_was_cut_to_nothing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let started = |journal: &str| {
        let url = |name: &str| format!("sqlite:{}", file(name).display());
        Node::builder().register::<Account>().table(url("table.db")).journal(url(journal)).start()
    };
    started("journal.db").await.expect("it is new").stop().await;
    // As after a crash: the file is cut, its log is there.
    std::fs::copy(file("journal.db-wal"), file("cut-journal.db-wal")).unwrap();
    std::fs::write(file("cut-journal.db"), b"").unwrap();
    let error = started("cut-journal.db").await.expect_err("its actors are not there").to_string();
    assert!(error.contains("journal.db") && error.contains("it is empty"), "{error}");
}

#[tokio::test]
async fn a_journal_of_memory_is_for_trials() {
    let node = Node::builder().register::<Account>().journal("memory:").start().await.unwrap();
    node.stop().await;
    let none = Node::builder().register::<Account>().journal("redis://127.0.0.1:1").start().await;
    assert!(none.is_err());
}
