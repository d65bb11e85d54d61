//! Streams of replies on one node: within a shard, between shards, and to callers outside of all shards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::Node;
use greenroom::prelude::*;

use super::node;

struct Numbers {
    /// Items made by any of these actors.
    made: Arc<AtomicU64>,
    names: BTreeMap<u64, String>,
}

impl Actor for Numbers {}

#[actor(placement = "local")]
impl Numbers {
    pub fn count(&self, to: u64) -> impl Stream<Item = u64> {
        let made = self.made.clone();
        stream::iter(0..to).inspect(move |_| _ = made.fetch_add(1, Ordering::SeqCst))
    }

    pub async fn named(&mut self, cx: &Cx, from: u64) -> Result<impl Stream<Item = (u64, String)>, String> {
        self.names.insert(self.names.len() as u64, cx.key().to_string());
        if from as usize > self.names.len() {
            return Err(format!("there are {} names only", self.names.len()));
        }
        Ok(stream::iter(self.names.clone()).skip(from as usize))
    }

    /// What another's stream adds up to, as its consumer on a shard.
    pub async fn total(&self, cx: &Cx, of: String, to: u64) -> u64 {
        let mut total = 0;
        let Ok(mut numbers) = NumbersRef::of(cx, of).count(to).await else { return 0 };
        while let Some(Ok(number)) = numbers.next().await {
            total += number;
        }
        total
    }
}

#[actor]
trait TickerApi {
    fn ticks(&self, to: u64) -> impl Stream<Item = u64>;

    async fn later(&mut self, to: u64) -> Result<impl Stream<Item = u64>, String>;
}

#[derive(Default, Actor)]
struct Ticker {
    step: u64,
}

#[actor]
impl TickerApi for Ticker {
    fn ticks(&self, to: u64) -> impl Stream<Item = u64> {
        let step = self.step.max(1);
        stream::iter((0..to).map(move |tick| tick * step))
    }

    async fn later(&mut self, to: u64) -> Result<impl Stream<Item = u64>, String> {
        tokio::task::yield_now().await;
        self.step += 1;
        Ok(self.ticks(to))
    }
}

async fn numbers(made: &Arc<AtomicU64>) -> Node {
    let made = made.clone();
    node(|builder| {
        builder
            .configure(|config| config.shards = 2)
            .register::<Ticker>()
            .register_with(move |_| Numbers { made: made.clone(), names: BTreeMap::new() })
    })
    .await
}

#[tokio::test]
async fn an_outside_caller_gets_every_item_in_order() {
    let made = Arc::default();
    let node = numbers(&made).await;
    let mut items = NumbersRef::of(&node, "a").count(10_000).await.unwrap();
    for expected in 0..10_000 {
        assert_eq!(items.next().await, Some(Ok(expected)));
    }
    assert_eq!((items.next().await, items.next().await), (None, None));
    node.stop().await;
}

#[tokio::test]
async fn nothing_is_made_before_it_is_asked_for_and_little_ahead_of_that() {
    let made: Arc<AtomicU64> = Arc::default();
    let node = numbers(&made).await;
    let mut items = NumbersRef::of(&node, "a").count(10_000).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(made.load(Ordering::SeqCst), 0);
    for taken in 1..=200 {
        items.next().await.unwrap().unwrap();
        assert!(made.load(Ordering::SeqCst) <= taken + 64);
    }
    drop(items);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(made.load(Ordering::SeqCst) <= 200 + 64, "a dropped stream is made no further");
    node.stop().await;
}

#[tokio::test]
async fn actors_consume_streams_of_their_own_shard_and_of_others() {
    let made = Arc::default();
    let node = numbers(&made).await;
    // Some of sixteen are on the other shard.
    for number in 0..16 {
        let total = NumbersRef::of(&node, "consumer").total(format!("producer-{number}"), 1000).await;
        assert_eq!(total, Ok(1000 * 999 / 2));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_method_may_stream_or_say_why_not() {
    let made = Arc::default();
    let node = numbers(&made).await;
    let numbers = NumbersRef::of(&node, "a");
    assert_eq!(numbers.named(7).await.unwrap_err().to_string(), "there are 1 names only");
    let items: Vec<_> = numbers.named(1).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(items, [(1, "a".to_owned())]);
    node.stop().await;
}

#[tokio::test]
async fn the_methods_of_an_interface_stream_as_well() {
    let made = Arc::default();
    let node = numbers(&made).await;
    let ticker = TickerApiRef::of(&node, "t");
    let items: Vec<_> = ticker.ticks(3).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(items, [0, 1, 2]);
    for _ in 0..2 {
        ticker.later(3).await.unwrap();
    }
    let items: Vec<_> = ticker.ticks(3).await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(items, [0, 2, 4]);
    node.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_node() {
    let made = Arc::default();
    let node = numbers(&made).await;
    let mut items = NumbersRef::of(&node, "a").count(1_000_000_000).await.unwrap();
    items.next().await.unwrap().unwrap();
    node.stop().await;
    let end = loop {
        match items.next().await {
            Some(Ok(_)) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Some(Err(CallError::Unknown(Doubt::Ended { .. } | Doubt::Dropped)))), "{end:?}");
}
