//! States that change by updates only.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError, Version};
use greenroom::{CallError, Node, VersionedStateWithOutput};
use greenroom_store::Store;
use serde::{Deserialize, Serialize};

use super::faulty::{Fault, Faulty};
use super::node;

#[derive(Default, Clone, Serialize, Deserialize)]
struct Count {
    count: i64,
}

#[derive(Clone, Serialize, Deserialize)]
enum Change {
    Add(i64),
    /// Nobody can.
    Panic,
}

impl VersionedState for Count {
    type Update = Change;

    fn apply(&mut self, update: &Change) {
        match update {
            Change::Add(n) => self.count += n,
            Change::Panic => {
                self.count = i64::MIN;
                panic!("no such change");
            }
        }
    }
}

#[derive(Default, Actor)]
struct Counter {
    state: Versioned<Count>,
}

#[actor]
impl Counter {
    #[update]
    pub async fn add(&self, n: i64) -> (i64, i64) {
        self.state.enqueue(Change::Add(n));
        (self.state.tentative().count, self.state.confirmed().0.count)
    }

    #[update]
    pub async fn add_now(&self, n: i64) -> Result<i64, StateError> {
        self.state.enqueue(Change::Add(n));
        self.state.confirm_updates().await?;
        Ok(self.state.confirmed().0.count)
    }

    #[update]
    pub async fn add_many(&self, times: u32) -> Result<i64, StateError> {
        for _ in 0..times {
            self.state.enqueue(Change::Add(1));
        }
        self.state.confirm_updates().await?;
        Ok(self.state.confirmed().0.count)
    }

    #[update]
    pub async fn spoil(&self) -> Result<(), UpdateError> {
        self.state.enqueue(Change::Panic).await
    }

    #[update]
    pub async fn clear(&self) -> Result<u64, StateError> {
        self.state.clear();
        self.state.confirm_updates().await?;
        Ok(self.state.confirmed().1.incarnation)
    }

    pub async fn get(&self) -> i64 {
        self.state.tentative().count
    }

    pub async fn get_latest(&self) -> Result<(i64, u64), StateError> {
        self.state.refresh_now().await?;
        let (state, version) = self.state.confirmed();
        Ok((state.count, version.number))
    }

    pub async fn get_at_least(&self, number: u64) -> Result<i64, StateError> {
        let (state, _) = self.state.read_at_least(Version { incarnation: 0, number }).await?;
        Ok(state.count)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// Seats that are given away one by one.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Seats {
    taken: u32,
}

impl VersionedStateWithOutput for Seats {
    type Update = String;
    type Output = u32;

    fn apply(&mut self, _: &String) -> Result<u32, Rejected> {
        // Whatever a rejected update has done is undone.
        self.taken += 1;
        if self.taken > 2 { Err(Rejected::new("sold out")) } else { Ok(self.taken) }
    }
}

#[derive(Default, Actor)]
struct Hall {
    seats: Versioned<Seats>,
}

#[actor]
impl Hall {
    #[update]
    pub async fn book(&self, name: String) -> Result<u32, UpdateError> {
        self.seats.enqueue(name).await
    }
}

async fn counters(store: &Arc<Faulty>) -> Node {
    node(store.clone(), |builder| builder.register::<Counter>().register::<Hall>()).await
}

#[tokio::test]
async fn an_update_is_tentative_at_once_and_confirmed_without_anybody_waiting() {
    let store = Faulty::new();
    let first = counters(&store).await;
    let counter = CounterRef::of(&first, "a");
    assert_eq!(counter.get().await, Ok(0));
    store.down(true);
    assert_eq!(counter.add(5).await, Ok((5, 0)));
    assert_eq!(counter.get().await, Ok(5));
    store.down(false);
    // The activation does not end before its updates are in the store.
    first.stop().await;
    let second = counters(&store).await;
    assert_eq!(CounterRef::of(&second, "a").get().await, Ok(5));
}

#[tokio::test]
async fn many_updates_share_one_write_and_one_activation_reads_once() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.get().await, Ok(0));
    let (reads, writes) = (store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed));
    let held = store.gate.write().await;
    let added = tokio::spawn(counter.add_many(200).into_future());
    while counter.get().await != Ok(200) {
        tokio::task::yield_now().await;
    }
    drop(held);
    assert_eq!(added.await.expect("it does not panic"), Ok(200));
    assert_eq!(store.reads.load(Ordering::Relaxed), reads);
    let wrote = store.writes.load(Ordering::Relaxed) - writes;
    assert!(wrote <= 3, "{wrote} writes for 200 updates");
}

#[tokio::test]
async fn lost_answers_apply_nothing_twice() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    store.next(&[Fault::Lost, Fault::Unacknowledged, Fault::Refused, Fault::Unacknowledged]);
    assert_eq!(counter.add_now(1).await, Ok(1));
    store.next(&[Fault::Unacknowledged]);
    assert_eq!(counter.add_now(1).await, Ok(2));
    assert_eq!(counter.get_latest().await, Ok((2, 2)));
}

#[tokio::test]
async fn while_the_store_is_down_updates_wait_and_callers_hear_of_it() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| {
        builder.register::<Counter>().configure(|config| config.store_timeout = Duration::from_millis(300))
    })
    .await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.add_now(1).await, Ok(1));
    store.down(true);
    let error = counter.add_now(1).await.unwrap_err();
    assert!(matches!(&error, CallError::Actor(StateError::Unconfirmed { .. })), "{error}");
    assert!(error.to_string().contains("it is down"), "{error}");
    assert_eq!(counter.get().await, Ok(2));
    store.down(false);
    let begun = Instant::now();
    while counter.get_latest().await != Ok((2, 2)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not confirmed");
    }
}

#[tokio::test]
async fn an_update_that_panics_is_rejected_and_those_after_it_go_on() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.add_now(1).await, Ok(1));
    let error = counter.spoil().await.unwrap_err();
    assert!(matches!(&error, CallError::Actor(UpdateError::Rejected { reason }) if reason.contains("no such change")));
    assert_eq!(counter.add_now(1).await, Ok(2));
    assert_eq!(counter.get_latest().await, Ok((2, 3)));
}

#[tokio::test]
async fn what_apply_gives_comes_to_who_awaits_the_update() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let hall = HallRef::of(&node, "a");
    assert_eq!(hall.book("ada").await, Ok(1));
    assert_eq!(hall.book("bob").await, Ok(2));
    let error = hall.book("cid").await.unwrap_err();
    assert!(error.to_string().contains("sold out"), "{error}");
}

#[tokio::test]
async fn a_reader_that_has_seen_a_version_sees_none_before_it() {
    let store = Faulty::new();
    let one = counters(&store).await;
    let here = CounterRef::of(&one, "a");
    // A cluster of its own, whose instance has read the state before the update.
    let other = counters(&store).await;
    let there = CounterRef::of(&other, "a");
    assert_eq!(there.get().await, Ok(0));
    assert_eq!(here.add_now(7).await, Ok(7));
    assert_eq!(there.get().await, Ok(0));
    assert_eq!(there.get_at_least(1).await, Ok(7));
    assert!(there.get_at_least(2).await.is_err());
}

#[tokio::test]
async fn a_cleared_state_begins_a_new_incarnation() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.add_now(1).await, Ok(1));
    assert_eq!(counter.clear().await, Ok(1));
    assert_eq!(counter.get_latest().await, Ok((0, 0)));
    assert_eq!(counter.add_now(3).await, Ok(3));
}

#[tokio::test]
async fn a_record_of_another_kind_of_state_is_refused_and_left_alone() {
    let store = Faulty::new();
    let by = Duration::from_secs(5);
    store.inner.create("state/counter/state/a", "\u{1}stored".into(), by).await.unwrap();
    let node = counters(&store).await;
    let error = CounterRef::of(&node, "a").get().await.unwrap_err();
    assert!(error.to_string().contains("format 1"), "{error}");
    assert_eq!(&store.inner.read("state/counter/state/a", by).await.unwrap().unwrap().value[..], b"\x01stored");
}

const KEY: &str = "state/@greenroom/counter/state/a";
const BY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_state_whose_record_was_put_back_goes_on_from_there() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.add_now(1).await, Ok(1));
    let backup = store.inner.read(KEY, BY).await.unwrap().unwrap();
    assert_eq!(counter.add_now(2).await, Ok(3));
    let now = store.inner.read(KEY, BY).await.unwrap().unwrap();
    store.inner.replace(KEY, backup.value, &now.version, BY).await.unwrap();
    let accesses = || store.reads.load(Ordering::Relaxed) + store.writes.load(Ordering::Relaxed);
    let before = accesses();
    assert_eq!(counter.add_now(4).await, Ok(5), "what was confirmed since is lost, and nothing else");
    assert!(accesses() - before < 10, "{} accesses", accesses() - before);
    assert_eq!(counter.clear().await, Ok(2), "it is another incarnation, as the versions before are no longer");
}

#[tokio::test]
async fn a_state_whose_record_was_deleted_begins_anew() {
    let store = Faulty::new();
    let node = counters(&store).await;
    let counter = CounterRef::of(&node, "a");
    assert_eq!(counter.add_now(7).await, Ok(7));
    let now = store.inner.read(KEY, BY).await.unwrap().unwrap();
    store.inner.delete(KEY, &now.version, BY).await.unwrap();
    assert_eq!(counter.add_now(2).await, Ok(2));
    assert_eq!(counter.clear().await, Ok(2));
}
