//! Stateless workers, and references to kinds of other names. Placement over nodes is tested in the simulated world.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::prelude::*;

use super::node;

struct Resizer {
    made: Arc<AtomicU64>,
}

impl Actor for Resizer {}

#[actor(workers = 4)]
impl Resizer {
    pub async fn resize(&mut self) -> u64 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.made.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn stateless_workers_share_the_load_and_are_no_more_than_told() {
    let made = Arc::new(AtomicU64::new(0));
    let counter = made.clone();
    let node = node(|builder| {
        builder.configure(|config| config.shards = 2).register_with(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Resizer { made: counter.clone() }
        })
    })
    .await;
    let resizer = ResizerRef::of(&node, "any");
    let calls: Vec<_> = (0..16).map(|_| tokio::spawn(resizer.resize().into_future())).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let made = made.load(Ordering::SeqCst);
    assert!((2..=4).contains(&made), "{made} workers");
}
