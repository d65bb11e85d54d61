//! How many events a second a topic takes and gives to 1, 10 and 100 subscribers, who are clients of its own process or of
//! another one over loopback. Nobody misses any: publishers wait for the slowest.
//!
//! `cargo run --release --example topic_rate`

use std::error::Error;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use greenroom::{Delivery, Node, Topic};
use tokio::task::JoinSet;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [table, subscribers] = &arguments[..] {
        let node = node(table).await?;
        watch_all(&node, subscribers.parse()?).await?;
        node.stop().await;
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let table = format!("sqlite:{}", folder.path().join("table.db").display());
    let node = node(&table).await?;
    for subscribers in [1, 10, 100] {
        let watching = tokio::spawn({
            let node = node.clone();
            async move { watch_all(&node, subscribers).await }
        });
        publish("of its own process", &node, subscribers).await?;
        watching.await??;
        over(&node).await?;
    }
    for subscribers in [1, 10, 100] {
        let mut other = Other(Command::new(std::env::current_exe()?).arg(&table).arg(subscribers.to_string()).spawn()?);
        publish("of another process", &node, subscribers).await?;
        while other.0.try_wait()?.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        over(&node).await?;
    }
    node.stop().await;
    Ok(())
}

/// A process that does not outlive this one's interest.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ = self.0.kill();
    }
}

async fn node(table: &str) -> greenroom::Result<Node> {
    Node::builder().table(table).configure(|config| config.shards = 1).start().await
}

fn topic(node: &Node) -> Topic<String> {
    Topic::of(node, "news")
}

/// Waits until nobody subscribes any more.
async fn over(node: &Node) -> Result<()> {
    while topic(node).subscribers().await? > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn watch_all(node: &Node, subscribers: u64) -> Result<()> {
    let mut watching = JoinSet::new();
    for _ in 0..subscribers {
        let mut watch = topic(node).watch().await?;
        watching.spawn(async move {
            for _ in 0..events(subscribers) {
                match watch.next().await {
                    Some(Ok(Delivery::Event(_))) => {}
                    other => return Err(format!("an event is missing: {other:?}")),
                }
            }
            Ok(())
        });
    }
    while let Some(watched) = watching.join_next().await {
        watched??;
    }
    Ok(())
}

async fn publish(whose: &str, node: &Node, subscribers: u64) -> Result<()> {
    while topic(node).subscribers().await? < subscribers {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (topic, event) = (topic(node), "x".repeat(100));
    let began = Instant::now();
    let mut published = stream::iter(0..events(subscribers)).map(|_| topic.publish(&event)).buffer_unordered(64);
    while let Some(published) = published.next().await {
        published?;
    }
    let rate = events(subscribers) as f64 / began.elapsed().as_secs_f64();
    let gave = rate * subscribers as f64;
    println!("{subscribers:>3} subscribers {whose}: {rate:>8.0} events/s of 100 bytes taken, {gave:>8.0} given");
    Ok(())
}

/// So many that each run takes a second or more, and what is in queues at its end counts for little.
const fn events(subscribers: u64) -> u64 {
    1_000_000 / (subscribers + 4)
}
