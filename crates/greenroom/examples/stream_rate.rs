//! How many items a second a stream of replies carries: to an outside caller, between actors of one shard and of two, and
//! between two nodes over loopback.
//!
//! `cargo run --release --example stream_rate`

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream;
use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;

/// Makes numbers and counts those of others.
#[derive(Default, Actor)]
pub struct Numbers;

#[actor(placement = "local")]
impl Numbers {
    /// So many.
    pub fn count(&self, to: u64) -> impl Stream<Item = u64> {
        stream::iter(0..to)
    }

    /// How many items a second come from the actor `of`.
    pub async fn rate(&self, cx: &Cx, of: String, to: u64) -> Result<f64, String> {
        let numbers = NumbersRef::of(cx, of).count(to).await.map_err(|error| error.to_string())?;
        rate(numbers, to).await
    }
}

async fn rate(mut numbers: ReplyStream<u64>, to: u64) -> Result<f64, String> {
    let began = Instant::now();
    let mut count = 0;
    while let Some(number) = numbers.next().await {
        number.map_err(|error| error.to_string())?;
        count += 1;
    }
    assert_eq!(count, to, "no item is lost");
    Ok(to as f64 / began.elapsed().as_secs_f64() / 1e6)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new());
    let node = |shards| {
        let builder = Node::builder().store(store.clone()).configure(move |config| config.shards = shards);
        builder.register::<Numbers>().start()
    };
    let one = node(2).await?;
    for _ in 0..3 {
        println!(
            "outside caller       {:5.2} M items/s",
            rate(NumbersRef::of(&one, "a").count(ITEMS).await?, ITEMS).await?
        );
    }
    let consumer = NumbersRef::of(&one, "consumer");
    for producer in 0..6 {
        let rate = consumer.rate(format!("p{producer}"), ITEMS).await?;
        println!("actors of one node   {rate:5.2} M items/s (the same shard or the other one)");
    }
    let other = node(1).await?;
    NumbersRef::of(&one, "here").count(1).await?;
    for _ in 0..3 {
        let rate = NumbersRef::of(&other, "there").rate("here", ITEMS).await?;
        println!("two nodes            {rate:5.2} M items/s");
    }
    one.stop().await;
    other.stop().await;
    Ok(())
}

const ITEMS: u64 = 1_000_000;
