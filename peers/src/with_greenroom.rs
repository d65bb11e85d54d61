//! Greenroom: pingers and senders are actors, too.

use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::{BURST, GROUP, resident, runtime, timed};

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

    pub async fn tell(&mut self, cx: &Cx, actors: u64, times: u64) {
        let pongs: Vec<_> = (0..actors).map(|key| PongRef::of(cx, key)).collect();
        for group in pongs.chunks(GROUP as usize).cycle().take(times as usize * pongs.len() / GROUP as usize) {
            for pong in group {
                for n in 0..BURST {
                    pong.ping(n).send();
                }
            }
            for answer in join_all(group.iter().map(|pong| pong.ping(0).into_future())).await {
                answer.expect("nothing is refused");
            }
        }
    }
}

async fn node() -> Node {
    Node::builder().register::<Ping>().register::<Pong>().start().await.expect("a node starts")
}

pub fn calls(pairs: u64, rounds: u64) -> Duration {
    runtime().block_on(async {
        let node = node().await;
        let pairs: Vec<_> = (0..pairs).map(|key| PingRef::of(&node, key)).collect();
        for ping in &pairs {
            ping.run(1).await.expect("the pair is there");
        }
        let calls = pairs.into_iter().map(|ping| async move {
            ping.run(rounds).by(Duration::from_secs(60)).await.expect("the pair ends");
        });
        let took = timed(calls.collect()).await;
        node.stop().await;
        took
    })
}

pub fn tells(senders: u64, actors: u64, times: u64) -> Duration {
    runtime().block_on(async {
        let node = node().await;
        let senders: Vec<_> = (0..senders).map(|key| PingRef::of(&node, format!("sender-{key}"))).collect();
        for key in 0..actors {
            PongRef::of(&node, key).ping(0).await.expect("the actor is there");
        }
        let sends = senders.into_iter().map(|sender| async move {
            sender.tell(actors, times).by(Duration::from_secs(60)).await.expect("the sender ends");
        });
        let took = timed(sends.collect()).await;
        node.stop().await;
        took
    })
}

pub fn idle(actors: u64) -> u64 {
    runtime().block_on(async {
        let node = node().await;
        PongRef::of(&node, actors).ping(0).await.expect("the node answers");
        let before = resident();
        for key in 0..actors {
            PongRef::of(&node, key).ping(0).await.expect("the actor is there");
        }
        resident() - before
    })
}
