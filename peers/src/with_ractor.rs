//! ractor: pongs are actors, pingers are tasks that call them.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

use crate::{PAIRS, ROUNDS, runtime, timed};

struct Pong;

enum Message {
    Ping(u64, RpcReplyPort<u64>),
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
        Ok(reply.send(n + 1)?)
    }
}

pub fn run() -> Duration {
    runtime().block_on(async {
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let (pong, _) = Actor::spawn(None, Pong, ()).await.expect("an actor starts");
            pairs.push(async move {
                for n in 0..ROUNDS {
                    call!(pong, Message::Ping, n).expect("the pong answers");
                }
                pong.stop(None);
            });
        }
        timed(pairs).await
    })
}
