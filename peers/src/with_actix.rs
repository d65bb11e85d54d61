//! actix: an arbiter a core; pairs share one, pingers are tasks on it.

use std::time::{Duration, Instant};

use actix::{Actor, Arbiter, Context, Handler, Message, System};

use crate::{PAIRS, ROUNDS};

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

pub fn run() -> Duration {
    System::new().block_on(async {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arbiters: Vec<Arbiter> = (0..cores).map(|_| Arbiter::new()).collect();
        let (done, mut ended) = tokio::sync::mpsc::channel(PAIRS as usize);
        let began = Instant::now();
        for pair in 0..PAIRS {
            let done = done.clone();
            arbiters[pair as usize % cores].spawn(async move {
                let pong = Pong { heard: 0 }.start();
                for n in 0..ROUNDS {
                    pong.send(Ping(n)).await.expect("the pong answers");
                }
                done.send(()).await.expect("the run waits for all");
            });
        }
        for _ in 0..PAIRS {
            ended.recv().await.expect("every pair ends");
        }
        let took = began.elapsed();
        for arbiter in arbiters {
            arbiter.stop();
        }
        took
    })
}
