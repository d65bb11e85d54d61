//! Greenroom: pingers are actors, too.

use std::time::Duration;

use greenroom::prelude::*;

use crate::{PAIRS, ROUNDS, runtime, timed};

#[derive(Default, Actor)]
pub struct Pong {
    heard: u64,
}

#[actor]
impl Pong {
    pub async fn ping(&mut self, n: u64) -> u64 {
        self.heard += 1;
        n + 1
    }
}

#[derive(Default, Actor)]
pub struct Ping;

#[actor]
impl Ping {
    pub async fn run(&mut self, cx: &Cx, rounds: u64) {
        let pong = PongRef::of(cx, cx.key());
        for n in 0..rounds {
            pong.ping(n).await.expect("nothing is refused");
        }
    }
}

pub fn run() -> Duration {
    runtime().block_on(async {
        let node = Node::builder().register::<Ping>().register::<Pong>().start().await.expect("a node starts");
        let pairs: Vec<_> = (0..PAIRS).map(|key| PingRef::of(&node, key)).collect();
        for ping in &pairs {
            ping.run(1).await.expect("the pair is there");
        }
        let calls = pairs.into_iter().map(|ping| async move {
            ping.run(ROUNDS).by(Duration::from_secs(60)).await.expect("the pair ends");
        });
        let took = timed(calls.collect()).await;
        node.stop().await;
        took
    })
}
