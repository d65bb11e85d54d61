//! kameo: pongs are actors, pingers and senders are tasks.

use std::time::Duration;

use futures_util::future::join_all;
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};

use crate::{BURST, GROUP, resident, runtime, timed};

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

fn pongs(actors: u64) -> Vec<ActorRef<Pong>> {
    (0..actors).map(|_| Pong::spawn(Pong { heard: 0 })).collect()
}

pub fn calls(pairs: u64, rounds: u64) -> Duration {
    runtime().block_on(async {
        let pairs = pongs(pairs).into_iter().map(|pong| async move {
            for n in 0..rounds {
                pong.ask(Ping(n)).await.expect("the pong answers");
            }
        });
        timed(pairs.collect()).await
    })
}

pub fn tells(senders: u64, actors: u64, times: u64) -> Duration {
    runtime().block_on(async {
        let pongs = pongs(actors);
        let sends = (0..senders).map(|_| {
            let pongs = pongs.clone();
            async move {
                for group in pongs.chunks(GROUP as usize).cycle().take(times as usize * pongs.len() / GROUP as usize) {
                    for pong in group {
                        for n in 0..BURST {
                            pong.tell(Ping(n)).await.expect("the pong listens");
                        }
                    }
                    join_all(group.iter().map(|pong| pong.ask(Ping(0)).into_future())).await;
                }
            }
        });
        timed(sends.collect()).await
    })
}

pub fn idle(actors: u64) -> u64 {
    runtime().block_on(async {
        let before = resident();
        let pongs = pongs(actors);
        for pong in &pongs {
            pong.ask(Ping(0)).await.expect("the pong answers");
        }
        resident() - before
    })
}
