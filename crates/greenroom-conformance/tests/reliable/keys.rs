//! Calls under idempotency keys: one run, and its answer for as long as answers are kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use greenroom::Config;
use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;

#[derive(Default, Actor)]
struct Purse {
    balance: Register<u64>,
}

#[actor(reliable)]
impl Purse {
    pub async fn pay(&mut self, amount: u64) -> u64 {
        *self.balance.get_mut() += amount;
        *self.balance.get()
    }

    pub async fn pay_slowly(&mut self, amount: u64) -> u64 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        *self.balance.get_mut() += amount;
        *self.balance.get()
    }

    pub async fn balance(&self) -> u64 {
        *self.balance.get()
    }
}

async fn on_sqlite(file: &Path, configure: impl FnOnce(&mut Config)) -> Node {
    let builder = Node::builder().register::<Purse>().configure(|config| {
        config.reliable.journal = format!("sqlite:{}", file.display());
        (config.reliable.partitions, config.shards) = (1, 1);
        configure(config);
    });
    builder.start().await.expect("it starts")
}

fn purse(node: &Node, key: &str) -> PurseRef {
    PurseRef::of(node, key)
}

/// `count` calls under keys of their own, many at once.
async fn pay_often(node: &Node, key: &str, count: u64) {
    let purse = purse(node, key);
    let calls = (0..count).map(|n| purse.pay(1).idempotent(&format!("payment {n}")).into_future());
    let mut answers = futures_util::stream::iter(calls).buffer_unordered(512);
    while let Some(answer) = answers.next().await {
        answer.expect("it is paid");
    }
}

#[tokio::test]
async fn a_key_is_known_after_many_of_others_and_by_the_next_owners() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("journal.db");
    let node = on_sqlite(&file, |_| {}).await;
    assert_eq!(purse(&node, "ada").pay(5).idempotent("first").await, Ok(5));
    pay_often(&node, "bob", MANY).await;
    let again = async |node: &Node, when: &str| {
        assert_eq!(purse(node, "ada").pay(5).idempotent("first").await, Ok(5), "{when}");
        let last = purse(node, "bob").pay(1).idempotent(&format!("payment {}", MANY - 1)).await;
        assert!(last.as_ref().is_ok_and(|answer| *answer <= MANY), "{when}: {last:?}");
        assert_eq!(purse(node, "ada").balance().await, Ok(5), "{when}");
        assert_eq!(purse(node, "bob").balance().await, Ok(MANY), "{when}");
    };
    again(&node, "by the same owner").await;
    node.stop().await;
    for when in ["by the next owner", "by the one after it"] {
        let node = on_sqlite(&file, |_| {}).await;
        again(&node, when).await;
        node.stop().await;
    }
}

#[tokio::test]
async fn when_no_more_can_be_kept_new_keys_are_refused_and_old_ones_are_answered() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("journal.db");
    let configure = |config: &mut Config| config.reliable.answers_bytes_max = 4096;
    let mut node = on_sqlite(&file, configure).await;
    let pay = async |node: &Node, n: u64| purse(node, "ada").pay(1).idempotent(&n.to_string()).once().await;
    let mut kept = 0;
    let refused = loop {
        match pay(&node, kept).await {
            Ok(answer) => assert_eq!(answer, kept + 1),
            Err(error) => break error,
        }
        kept += 1;
    };
    assert!((10..100).contains(&kept), "{kept} answers in 4 KiB");
    assert!(matches!(refused, CallError::Refused(Refusal::Shed { .. })), "nothing has run: {refused:?}");
    assert!(refused.to_string().contains("`answers_bytes_max`"), "{refused}");
    assert_eq!(pay(&node, kept).await, Err(refused), "nor does it now");
    for _ in 0..2 {
        for n in 0..kept {
            assert_eq!(pay(&node, n).await, Ok(n + 1), "no old key is forgotten for a new one");
        }
        node.stop().await;
        node = on_sqlite(&file, configure).await;
    }
    assert_eq!(purse(&node, "ada").pay(1).await, Ok(kept + 1), "a call without a key is none of this");
    node.stop().await;
}

#[tokio::test]
async fn who_uses_a_running_calls_key_for_something_else_is_refused_alone() {
    let builder = Node::builder().register::<Purse>().journal_store(Arc::new(MemoryStore::new()));
    let node = builder.start().await.expect("it starts");
    let ada = purse(&node, "ada");
    let (first, other) = futures_util::future::join(ada.pay_slowly(1).idempotent("17").into_future(), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        ada.pay_slowly(1000).idempotent("17").await
    })
    .await;
    let told = other.expect_err("its key is taken").to_string();
    assert!(told.contains("another request"), "{told}");
    assert_eq!(first, Ok(1), "the first one hears of its own call");
    assert_eq!(ada.balance().await, Ok(1));
    node.stop().await;
}

#[tokio::test]
async fn settings_that_would_forget_at_once_or_never_answer_are_refused() {
    for (configure, named) in [
        ((|config| config.reliable.answers_keep = Duration::ZERO) as fn(&mut Config), "answers_keep"),
        (|config| config.reliable.answers_keep = Duration::MAX, "answers_keep"),
        (|config| config.reliable.answers_bytes_max = 0, "answers_bytes_max"),
    ] {
        let builder = Node::builder().register::<Purse>().journal("memory:").configure(configure);
        let error = builder.start().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

/// More than a partition once kept.
const MANY: u64 = 10_500;
