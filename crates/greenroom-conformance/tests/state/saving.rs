//! States that are saved without being told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::faulty::{Fault, Faulty};
use super::node;

#[derive(Default, Serialize, Deserialize, Actor)]
struct Cart {
    items: Vec<String>,
}

#[actor(persistent, save = "turn")]
impl Cart {
    pub async fn add(&mut self, item: String) -> usize {
        self.items.push(item);
        self.items.len()
    }

    pub async fn touch(&mut self) {}

    pub async fn items(&self) -> Vec<String> {
        self.items.clone()
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

#[derive(Default, Serialize, Deserialize, Actor)]
struct Meter {
    ticks: u64,
}

#[actor(persistent, save = "500ms")]
impl Meter {
    pub async fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

#[tokio::test]
async fn each_turn_that_changes_something_is_saved_before_it_is_answered() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Cart>()).await;
    let cart = CartRef::of(&node, "ada");
    assert_eq!(cart.add("tea").await, Ok(1));
    cart.touch().await.unwrap();
    assert_eq!(store.writes.load(Ordering::Relaxed), 1, "a turn that changes nothing writes nothing");
    cart.leave().await.unwrap();
    assert_eq!(cart.items().await, Ok(vec!["tea".to_owned()]));
}

#[tokio::test]
async fn who_waits_for_a_turn_that_was_not_saved_is_told_so() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Cart>()).await;
    let cart = CartRef::of(&node, "ada");
    assert_eq!(cart.add("tea").await, Ok(1));
    store.next(&[Fault::Refused]);
    let unsaved = cart.add("milk").await;
    assert!(matches!(unsaved, Err(CallError::Unknown(Doubt::Unsaved { .. }))), "{unsaved:?}");
    assert_eq!(cart.items().await, Ok(vec!["tea".to_owned()]));
    store.next(&[Fault::Unacknowledged]);
    assert_eq!(cart.add("milk").await, Ok(2));
}

#[tokio::test]
async fn an_actor_that_calls_a_saved_one_hears_its_answer() {
    #[derive(Default, Actor)]
    struct Shopper;

    #[actor]
    impl Shopper {
        pub async fn buy(&mut self, cx: &Cx, item: String) -> Result<usize, String> {
            let cart = CartRef::of(cx, cx.key());
            // The second call finds the cart active, on this very stack.
            cart.add(item.clone()).await.map_err(|error| error.to_string())?;
            cart.add(item).await.map_err(|error| error.to_string())
        }
    }

    let node = node(Faulty::new(), |builder| builder.register::<Cart>().register::<Shopper>()).await;
    assert_eq!(ShopperRef::of(&node, "ada").buy("tea").await, Ok(2));
}

#[tokio::test]
async fn a_state_saved_now_and_then_is_written_seldom_and_at_the_latest_when_the_node_stops() {
    let store = Faulty::new();
    let first = node(store.clone(), |builder| builder.register::<Meter>()).await;
    let meter = MeterRef::of(&first, "m");
    let began = Instant::now();
    for tick in 1..=100 {
        assert_eq!(meter.tick().await, Ok(tick));
    }
    // However long that took here.
    let periods = began.elapsed().as_millis() as u64 / 500;
    assert!(store.writes.load(Ordering::Relaxed) <= periods + 1);
    tokio::time::timeout(Duration::from_secs(20), async {
        while store.writes.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("it is saved some time after the change");
    assert_eq!(meter.tick().await, Ok(101));
    first.stop().await;
    let second = node(store, |builder| builder.register::<Meter>()).await;
    assert_eq!(MeterRef::of(&second, "m").tick().await, Ok(102));
}

/// A number that counts how often it is written down.
#[derive(Default, Deserialize)]
struct Counted(u64);

static WRITTEN_DOWN: AtomicU64 = AtomicU64::new(0);

impl Serialize for Counted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITTEN_DOWN.fetch_add(1, Ordering::Relaxed);
        serializer.serialize_u64(self.0)
    }
}

#[derive(Default, Serialize, Deserialize, Actor)]
struct Ledger {
    sum: Counted,
}

#[actor(persistent, save = "turn")]
impl Ledger {
    pub async fn book(&mut self, amount: u64) -> u64 {
        self.sum.0 += amount;
        self.sum.0
    }
}

#[tokio::test]
async fn a_turn_encodes_what_it_saves_once() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Ledger>()).await;
    let ledger = LedgerRef::of(&node, "ada");
    assert_eq!(ledger.book(5).await, Ok(5));
    assert_eq!(ledger.book(0).await, Ok(5));
    let counts = (WRITTEN_DOWN.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed));
    assert_eq!(counts, (2, 1), "once a turn, and what has not changed is not written");
}
