//! States that are logs of their updates.

use std::sync::Arc;
use std::time::Duration;

use greenroom::Node;
use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError, history};
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Journal, Store};
use serde::{Deserialize, Serialize};

use super::faulty::Faulty;

#[derive(Default, Clone, Serialize, Deserialize)]
struct Balance {
    cents: i64,
}

impl VersionedStateWithOutput for Balance {
    type Update = i64;
    type Output = i64;

    fn apply(&mut self, cents: &i64) -> Result<i64, Rejected> {
        self.cents += cents;
        if self.cents < 0 { Err(Rejected::new("not enough")) } else { Ok(self.cents) }
    }
}

#[derive(Default, Actor)]
struct Purse {
    balance: Versioned<Balance>,
}

#[actor(protocol = "log")]
impl Purse {
    #[update]
    pub async fn add(&self, cents: i64) -> Result<i64, UpdateError> {
        self.balance.confirm(cents).await
    }

    /// Waits as long as a store may take.
    #[update]
    pub async fn settle(&self, cents: i64) -> Result<i64, StateError> {
        self.balance.enqueue(cents);
        self.balance.confirm_updates().await?;
        Ok(self.balance.confirmed().0.cents)
    }

    #[update]
    pub async fn empty(&self) -> Result<(), StateError> {
        self.balance.clear();
        self.balance.confirm_updates().await
    }

    pub async fn cents(&self) -> i64 {
        self.balance.tentative().cents
    }

    pub async fn cents_at(&self, position: u64) -> Result<(i64, u64), StateError> {
        let (balance, version) = self.balance.state_at(position).await?;
        Ok((balance.cents, version.incarnation))
    }

    /// Positions, updates, and whether each was rejected.
    pub async fn entries(&self, from: u64, to: u64) -> Result<Vec<(u64, Option<i64>, bool)>, StateError> {
        let recorded = self.balance.history(from..to).await?;
        Ok(recorded.into_iter().map(|one| (one.position, one.update, one.rejected.is_some())).collect())
    }
}

async fn purses(store: &Arc<MemoryStore>, configure: impl FnOnce(&mut greenroom::Config)) -> Node {
    super::node(Faulty::new(), |builder| {
        builder.register::<Purse>().state_journal("", store.clone()).configure(configure)
    })
    .await
}

const KEY: &str = "state/@greenroom/purse/balance/a";
const BY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn the_history_of_a_state_has_every_update_in_order_the_rejected_ones_too() {
    let store = Arc::new(MemoryStore::new());
    let node = purses(&store, |_| {}).await;
    let purse = PurseRef::of(&node, "a");
    assert_eq!(purse.add(5).await, Ok(5));
    assert!(purse.add(-9).await.unwrap_err().to_string().contains("not enough"));
    assert_eq!(purse.add(2).await, Ok(7));
    purse.empty().await.unwrap();
    assert_eq!(purse.add(1).await, Ok(1));
    let all = [(1, Some(5), false), (2, Some(-9), true), (3, Some(2), false), (4, None, false), (5, Some(1), false)];
    assert_eq!(purse.entries(0, 100).await.unwrap(), all);
    assert_eq!(purse.entries(2, 4).await.unwrap(), all[1..3]);
    assert_eq!(purse.entries(6, 9).await.unwrap(), []);
}

#[tokio::test]
async fn every_state_that_there_was_is_rebuilt_from_snapshots_and_updates() {
    let store = Arc::new(MemoryStore::new());
    let node = purses(&store, |config| {
        config.kinds.entry("purse".to_owned()).or_default().snapshot_every = Some(4);
    })
    .await;
    let purse = PurseRef::of(&node, "a");
    for n in 1..=30 {
        assert_eq!(purse.add(n).await, Ok(n * (n + 1) / 2));
    }
    let snapshots = store.end(&history::snapshots_log(KEY), BY).await.unwrap() - 1;
    assert!((5..=7).contains(&snapshots), "{snapshots} snapshots of 30 updates");
    for n in 0..=30 {
        assert_eq!(purse.cents_at(n as u64).await, Ok((n * (n + 1) / 2, 0)), "at {n}");
    }
    assert!(purse.cents_at(31).await.unwrap_err().to_string().contains("there is no update 31 yet"));
}

#[tokio::test]
async fn an_activation_reads_the_last_snapshot_and_what_is_behind_it() {
    let store = Arc::new(MemoryStore::new());
    let every = |config: &mut greenroom::Config| {
        config.kinds.entry("purse".to_owned()).or_default().snapshot_every = Some(10);
    };
    let first = purses(&store, every).await;
    for _ in 0..25 {
        PurseRef::of(&first, "a").add(1).await.unwrap();
    }
    first.stop().await;
    // What lies before the last snapshot is not needed.
    store.trim(&history::updates_log(KEY), 20, BY).await.unwrap();
    let second = purses(&store, every).await;
    assert_eq!(PurseRef::of(&second, "a").cents().await, Ok(25));
    assert_eq!(PurseRef::of(&second, "a").add(1).await, Ok(26));
}

#[tokio::test]
async fn a_log_with_a_hole_is_not_believed() {
    let store = Arc::new(MemoryStore::new());
    let first = purses(&store, |_| {}).await;
    for _ in 0..3 {
        PurseRef::of(&first, "a").add(1).await.unwrap();
    }
    first.stop().await;
    store.trim(&history::updates_log(KEY), 1, BY).await.unwrap();
    let second = purses(&store, |config| config.store_timeout = Duration::from_millis(300)).await;
    let error = PurseRef::of(&second, "a").cents().await.unwrap_err().to_string();
    assert!(error.contains("entry 1 of the log is missing"), "{error}");
}

#[tokio::test]
async fn a_state_that_was_one_record_becomes_a_log_and_not_the_other_way() {
    let store = Arc::new(MemoryStore::new());
    let plainly = |config: &mut greenroom::Config| {
        config.kinds.entry("purse".to_owned()).or_default().protocol = Some("bcas".to_owned());
        config.store_timeout = Duration::from_millis(300);
    };
    let first = purses(&store, plainly).await;
    assert_eq!(PurseRef::of(&first, "a").add(5).await, Ok(5));
    assert!(PurseRef::of(&first, "a").entries(0, 9).await.unwrap().is_empty());
    first.stop().await;
    for more in 1..=2 {
        let node = purses(&store, |_| {}).await;
        let purse = PurseRef::of(&node, "a");
        assert_eq!(purse.add(1).await, Ok(5 + more));
        assert_eq!(purse.cents_at(0).await, Ok((5, 0)), "the log begins with what was there");
        node.stop().await;
    }
    let last = purses(&store, plainly).await;
    let error = PurseRef::of(&last, "a").cents().await.unwrap_err().to_string();
    assert!(error.contains("say protocol = \"log\""), "{error}");
}

#[tokio::test]
async fn an_update_that_is_too_large_to_keep_is_rejected_at_once() {
    #[derive(Default, Clone, Serialize, Deserialize)]
    struct Notes(Vec<String>);
    impl VersionedState for Notes {
        type Update = String;
        fn apply(&mut self, note: &String) {
            self.0.push(note.clone());
        }
    }
    #[derive(Default, Actor)]
    struct Diary {
        notes: Versioned<Notes>,
    }
    #[actor(protocol = "log")]
    impl Diary {
        #[update]
        pub async fn write(&self, note: String) -> Result<(), UpdateError> {
            self.notes.confirm(note).await
        }
    }
    let store = Arc::new(MemoryStore::new());
    let node = super::node(Faulty::new(), |builder| builder.register::<Diary>().state_journal("", store)).await;
    let diary = DiaryRef::of(&node, "a");
    let error = diary.write("x".repeat(2 << 20)).await.unwrap_err().to_string();
    assert!(error.contains("at most 1048576 are kept"), "{error}");
    assert_eq!(diary.write("short").await, Ok(()));
}

#[tokio::test]
async fn a_log_whose_head_was_put_back_without_it_is_left_alone_and_the_error_says_so() {
    let store = Arc::new(MemoryStore::new());
    let node = purses(&store, |config| config.store_timeout = Duration::from_millis(500)).await;
    let purse = PurseRef::of(&node, "a");
    assert_eq!(purse.add(1).await, Ok(1));
    let backup = store.read(KEY, BY).await.unwrap().unwrap();
    assert_eq!(purse.add(2).await, Ok(3));
    let head = store.read(KEY, BY).await.unwrap().unwrap();
    let put_back = store.replace(KEY, backup.value, &head.version, BY).await.unwrap();
    let error = purse.settle(4).await.unwrap_err();
    assert!(error.to_string().contains("says that it has 1 updates, and it has 2"), "{error}");
    assert_eq!(store.end(&history::updates_log(KEY), BY).await.unwrap(), 3, "nothing was written");
    store.replace(KEY, head.value, &put_back, BY).await.unwrap();
    assert_eq!(purse.settle(0).await, Ok(7), "what waited is confirmed once the head is there again");
}
