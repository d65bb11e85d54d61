//! One hot actor, one noisy caller: the others have their go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use greenroom::prelude::*;

/// Says hello at once; or keeps itself and its caller busy for ever.
#[derive(Default, Actor)]
struct Neighbour {}

#[actor(placement = "local")]
impl Neighbour {
    pub async fn hello(&self) {}

    pub async fn step(&mut self) {
        std::hint::black_box(0);
    }

    /// Calls another without end: its turns never wait.
    pub async fn hammer(&mut self, cx: &Cx, to: String) -> u64 {
        let mut calls = 0;
        let other = NeighbourRef::of(cx, to);
        while !QUIET.load(Ordering::Relaxed) {
            other.step().await.unwrap();
            calls += 1;
        }
        calls
    }

    /// Fills another's mailbox without end.
    pub async fn pour(&self, cx: &Cx, to: String) -> u64 {
        let mut sent = 0;
        let other = NeighbourRef::of(cx, to);
        while !QUIET.load(Ordering::Relaxed) {
            for _ in 0..1_000 {
                other.step().send();
                sent += 1;
            }
            tokio::task::yield_now().await;
        }
        sent
    }
}

/// When the noise ends.
static QUIET: AtomicBool = AtomicBool::new(false);

#[test]
fn a_hot_actor_and_a_caller_without_end_starve_nobody_on_their_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = Node::builder().configure(|config| config.shards = 1).register::<Neighbour>().start().await.unwrap();
        NeighbourRef::of(&node, "quiet").hello().await.unwrap();
        let noise = [
            tokio::spawn(NeighbourRef::of(&node, "hammerer").hammer("anvil".to_owned()).into_future()),
            tokio::spawn(NeighbourRef::of(&node, "pourer").pour("bucket".to_owned()).into_future()),
        ];
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..50 {
            NeighbourRef::of(&node, "quiet").hello().once().await.expect("it has its go while the others do not end");
        }
        QUIET.store(true, Ordering::Relaxed);
        for noise in noise {
            assert!(noise.await.unwrap().unwrap() > 1_000);
        }
    });
}
