//! Topics: events come to all who subscribe, in order, at least once while the subscriber and the topic live.

mod faults;
mod slow;
mod subscribers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Node, Subscription, Topic};

thread_local! {
    /// What the actors of this simulated world have had, which outlives them.
    static HAD: RefCell<BTreeMap<String, Vec<u64>>> = const { RefCell::new(BTreeMap::new()) };
}

fn had(key: &str) -> Vec<u64> {
    HAD.with_borrow(|had| had.get(key).cloned().unwrap_or_default())
}

/// Subscribes to the topic that it is told.
#[derive(Default, Actor)]
struct Listener {
    subscription: Option<Subscription>,
}

#[actor(placement = "random", idle = "2s")]
impl Listener {
    pub async fn listen(&mut self, cx: &Cx, topic: String) -> String {
        let me = ListenerRef::of(cx, cx.key());
        self.subscription = Some(Topic::<u64>::of(cx, topic).subscribe(cx, me, |me, event| me.hear(event)));
        cx.node_name().to_owned()
    }

    pub async fn cancel(&mut self) {
        self.subscription.take().expect("it listens").cancel();
    }

    /// Takes its time for what it hears.
    pub async fn hear(&mut self, cx: &Cx, event: u64) {
        tokio::time::sleep(Duration::from_millis(event % 3)).await;
        HAD.with_borrow_mut(|had| had.entry(cx.key().to_string()).or_default().push(event));
    }

    pub async fn leave(&self, cx: &Cx) {
        cx.deactivate();
    }
}

/// Every actor of this kind hears the topic with its key.
#[derive(Default, Actor)]
struct Ticker;

#[actor(idle = "2s")]
impl Ticker {
    pub async fn on_price(&mut self, cx: &Cx, price: u64) -> Result<(), String> {
        HAD.with_borrow_mut(|had| had.entry(cx.key().to_string()).or_default().push(price));
        if price.is_multiple_of(2) { Ok(()) } else { Err("odd prices are heard, and not liked".to_owned()) }
    }

    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    if name == "a" {
        HAD.take();
    }
    builder
        .register::<Listener>()
        .register::<Ticker>()
        .subscribe("prices", |node, key, price: u64| TickerRef::of(node, key).on_price(price))
}

fn topic(node: &Node) -> Topic<u64> {
    Topic::of(node, "numbers")
}

/// Waits until the actor has had as many events.
async fn heard(key: &str, count: usize) -> Vec<u64> {
    while had(key).len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    had(key)
}

/// The node that has the topic which has just been used for the first time in a cluster without actors.
fn host(nodes: &[Node; 3]) -> Node {
    let mut hosts = nodes.iter().filter(|node| node.activations() > 0);
    let host = hosts.next().expect("the topic is somewhere").clone();
    assert!(hosts.next().is_none(), "the topic is the first actor of all");
    host
}
