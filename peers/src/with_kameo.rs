//! kameo: pongs are actors, pingers are tasks that ask them.

use std::time::Duration;

use kameo::Actor;
use kameo::actor::Spawn;
use kameo::message::{Context, Message};

use crate::{PAIRS, ROUNDS, runtime, timed};

#[derive(Actor)]
struct Pong {
    heard: u64,
}

struct Ping(u64);

impl Message<Ping> for Pong {
    type Reply = u64;

    async fn handle(&mut self, ping: Ping, _: &mut Context<Self, Self::Reply>) -> u64 {
        self.heard += 1;
        ping.0 + 1
    }
}

pub fn run() -> Duration {
    runtime().block_on(async {
        let pairs = (0..PAIRS).map(|_| {
            let pong = Pong::spawn(Pong { heard: 0 });
            async move {
                for n in 0..ROUNDS {
                    pong.ask(Ping(n)).await.expect("the pong answers");
                }
            }
        });
        let pairs = pairs.collect();
        timed(pairs).await
    })
}
