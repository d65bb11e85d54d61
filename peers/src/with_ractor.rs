//! ractor: pongs are actors, pingers and senders are tasks.

use std::time::Duration;

use futures_util::future::join_all;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

use crate::{BURST, GROUP, resident, runtime, timed};

struct Pong;

enum Message {
    Ping(u64, Option<RpcReplyPort<u64>>),
}

impl Message {
    fn call(n: u64, reply: RpcReplyPort<u64>) -> Self {
        Self::Ping(n, Some(reply))
    }
}

impl Actor for Pong {
    type Msg = Message;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, heard: &mut u64) -> Result<(), ActorProcessingErr> {
        let Message::Ping(n, reply) = message;
        *heard += 1;
        match reply {
            Some(reply) => Ok(reply.send(n + 1)?),
            None => Ok(()),
        }
    }
}

async fn pongs(actors: u64) -> Vec<ActorRef<Message>> {
    let mut pongs = Vec::new();
    for _ in 0..actors {
        pongs.push(Actor::spawn(None, Pong, ()).await.expect("an actor starts").0);
    }
    pongs
}

pub fn calls(pairs: u64, rounds: u64) -> Duration {
    runtime().block_on(async {
        let pairs = pongs(pairs).await.into_iter().map(|pong| async move {
            for n in 0..rounds {
                call!(pong, Message::call, n).expect("the pong answers");
            }
            pong.stop(None);
        });
        timed(pairs.collect()).await
    })
}

pub fn tells(senders: u64, actors: u64, times: u64) -> Duration {
    runtime().block_on(async {
        let pongs = pongs(actors).await;
        let sends = (0..senders).map(|_| {
            let pongs = pongs.clone();
            async move {
                for group in pongs.chunks(GROUP as usize).cycle().take(times as usize * pongs.len() / GROUP as usize) {
                    for pong in group {
                        for n in 0..BURST {
                            pong.cast(Message::Ping(n, None)).expect("the pong listens");
                        }
                    }
                    join_all(group.iter().map(|pong| async { call!(pong, Message::call, 0) })).await;
                }
            }
        });
        let took = timed(sends.collect()).await;
        pongs.iter().for_each(|pong| pong.stop(None));
        took
    })
}

pub fn idle(actors: u64) -> u64 {
    runtime().block_on(async {
        let before = resident();
        let pongs = pongs(actors).await;
        for pong in &pongs {
            call!(pong, Message::call, 0).expect("the pong answers");
        }
        resident() - before
    })
}
