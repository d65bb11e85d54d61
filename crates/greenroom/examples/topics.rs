//! Prices: published to a topic, kept by an actor for each market, and watched by whoever likes.
//!
//! `cargo run --example topics`

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Delivery, Topic};

/// The last price of a market. Subscribed by its kind: the actor `eu` hears the topic `prices/eu`.
#[derive(Default, Actor)]
pub struct Ticker {
    last: Option<f64>,
}

#[actor]
impl Ticker {
    /// Takes a price in.
    pub async fn on_price(&mut self, price: f64) {
        self.last = Some(price);
    }

    /// The last price.
    pub async fn last(&self) -> Option<f64> {
        self.last
    }
}

/// Counts the prices of the topics that it follows. Subscribes by itself.
#[derive(Default, Actor)]
pub struct Counter {
    count: u64,
}

#[actor]
impl Counter {
    /// Follows `topic`, as long as this activation lives.
    pub async fn follow(&mut self, cx: &Cx, topic: String) {
        let me = CounterRef::of(cx, cx.key());
        Topic::<f64>::of(cx, topic).subscribe(cx, me, |me, price| me.on_price(price));
    }

    /// Counts a price.
    pub async fn on_price(&mut self, _price: f64) {
        self.count += 1;
    }

    /// How many there were.
    pub async fn count(&self) -> u64 {
        self.count
    }
}

/// A node's kinds and their subscriptions.
pub fn node() -> greenroom::Builder {
    Node::builder()
        .register::<Ticker>()
        .register::<Counter>()
        .subscribe("prices", |node, key, price: f64| TickerRef::of(node, key).on_price(price))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = node().start().await?;
    let prices = Topic::<f64>::of(&node, "prices/eu");
    let mut watch = prices.watch().await?;
    CounterRef::of(&node, "all").follow("prices/eu").await?;
    for price in [1.5, 1.25, 1.75] {
        prices.publish(&price).await?;
        if let Some(Ok(Delivery::Event(price))) = watch.next().await {
            println!("watched {price}");
        }
    }
    // Actors are told soon, not at once.
    tokio::time::sleep(Duration::from_millis(100)).await;
    println!(
        "last {:?}, {} heard",
        TickerRef::of(&node, "eu").last().await?,
        CounterRef::of(&node, "all").count().await?
    );
    node.stop().await;
    Ok(())
}
