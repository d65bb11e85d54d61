//! One hot actor, one noisy caller: the others have their go.

use std::time::{Duration, Instant};

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
    pub async fn hammer(&mut self, cx: &Cx, to: String, millis: u64) -> u64 {
        let (until, mut calls) = (Instant::now() + Duration::from_millis(millis), 0);
        let other = NeighbourRef::of(cx, to);
        while Instant::now() < until {
            other.step().await.unwrap();
            calls += 1;
        }
        calls
    }

    /// Fills another's mailbox without end.
    pub async fn pour(&self, cx: &Cx, to: String, millis: u64) -> u64 {
        let (until, mut sent) = (Instant::now() + Duration::from_millis(millis), 0);
        let other = NeighbourRef::of(cx, to);
        while Instant::now() < until {
            for _ in 0..1_000 {
                other.step().send();
                sent += 1;
            }
            tokio::task::yield_now().await;
        }
        sent
    }
}

#[test]
fn a_hot_actor_and_a_caller_without_end_starve_nobody_on_their_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = Node::builder().configure(|config| config.shards = 1).register::<Neighbour>().start().await.unwrap();
        NeighbourRef::of(&node, "quiet").hello().await.unwrap();
        let noise = [
            tokio::spawn(NeighbourRef::of(&node, "hammerer").hammer("anvil".to_owned(), 2_000).into_future()),
            tokio::spawn(NeighbourRef::of(&node, "pourer").pour("bucket".to_owned(), 2_000).into_future()),
        ];
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let began = Instant::now();
            NeighbourRef::of(&node, "quiet").hello().once().await.unwrap();
            slowest = slowest.max(began.elapsed());
        }
        for noise in noise {
            assert!(noise.await.unwrap().unwrap() > 1_000);
        }
        // It takes a millisecond; the bound is for machines that have much else to do.
        assert!(slowest < Duration::from_millis(500), "a quiet actor answered after {slowest:?}");
        println!("the slowest of 50 answers beside a hot actor took {slowest:?}");
    });
}
