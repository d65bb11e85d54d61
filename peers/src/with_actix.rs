//! actix: an arbiter a core; pairs share one, pingers and senders are tasks on it.

use std::time::{Duration, Instant};

use actix::{Actor, Addr, Arbiter, Context, Handler, Message, System};
use futures_util::future::join_all;

use crate::{BURST, GROUP, resident};

struct Pong {
    heard: u64,
}

impl Actor for Pong {
    type Context = Context<Self>;
}

struct Ping(u64);

impl Message for Ping {
    type Result = u64;
}

impl Handler<Ping> for Pong {
    type Result = u64;

    fn handle(&mut self, ping: Ping, _: &mut Context<Self>) -> u64 {
        self.heard += 1;
        ping.0 + 1
    }
}

fn arbiters() -> Vec<Arbiter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (0..cores).map(|_| Arbiter::new()).collect()
}

async fn pongs(arbiters: &[Arbiter], actors: u64) -> Vec<Addr<Pong>> {
    let pongs: Vec<_> = (0..actors as usize)
        .map(|n| Pong::start_in_arbiter(&arbiters[n % arbiters.len()].handle(), |_| Pong { heard: 0 }))
        .collect();
    for pong in &pongs {
        pong.send(Ping(0)).await.expect("the pong answers");
    }
    pongs
}

pub fn calls(pairs: u64, rounds: u64) -> Duration {
    System::new().block_on(async {
        let arbiters = arbiters();
        let (done, mut ended) = tokio::sync::mpsc::channel(pairs as usize);
        let began = Instant::now();
        for pair in 0..pairs {
            let done = done.clone();
            arbiters[pair as usize % arbiters.len()].spawn(async move {
                let pong = Pong { heard: 0 }.start();
                for n in 0..rounds {
                    pong.send(Ping(n)).await.expect("the pong answers");
                }
                done.send(()).await.expect("the run waits for all");
            });
        }
        for _ in 0..pairs {
            ended.recv().await.expect("every pair ends");
        }
        let took = began.elapsed();
        for arbiter in arbiters {
            arbiter.stop();
        }
        took
    })
}

pub fn tells(senders: u64, actors: u64, times: u64) -> Duration {
    System::new().block_on(async {
        let arbiters = arbiters();
        let pongs = pongs(&arbiters, actors).await;
        let (done, mut ended) = tokio::sync::mpsc::channel(senders as usize);
        let began = Instant::now();
        for sender in 0..senders as usize {
            let (done, pongs) = (done.clone(), pongs.clone());
            arbiters[sender % arbiters.len()].spawn(async move {
                for group in pongs.chunks(GROUP as usize).cycle().take(times as usize * pongs.len() / GROUP as usize) {
                    for pong in group {
                        for n in 0..BURST {
                            pong.do_send(Ping(n));
                        }
                    }
                    join_all(group.iter().map(|pong| pong.send(Ping(0)))).await;
                }
                done.send(()).await.expect("the run waits for all");
            });
        }
        for _ in 0..senders {
            ended.recv().await.expect("every sender ends");
        }
        let took = began.elapsed();
        for arbiter in arbiters {
            arbiter.stop();
        }
        took
    })
}

pub fn idle(actors: u64) -> u64 {
    System::new().block_on(async {
        let arbiters = arbiters();
        let before = resident();
        let pongs = pongs(&arbiters, actors).await;
        let grown = resident() - before;
        drop(pongs);
        grown
    })
}
