//! Turns: exclusive ones alone, reads beside each other, messages in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::prelude::*;
use tokio::sync::Barrier;

use super::node;

struct Room {
    barrier: Arc<Barrier>,
    inside: Arc<AtomicU64>,
    log: Vec<u64>,
}

impl Actor for Room {}

#[actor]
impl Room {
    pub async fn meet(&self) -> bool {
        self.barrier.wait().await;
        true
    }

    pub async fn write(&mut self, value: u64) -> u64 {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
        self.log.push(value);
        others
    }

    pub async fn peek(&self) -> u64 {
        self.inside.load(Ordering::SeqCst)
    }

    pub async fn note(&mut self, value: u64) {
        self.log.push(value);
    }

    pub async fn log(&self) -> Vec<u64> {
        self.log.clone()
    }

    pub async fn tell_yourself(&mut self, cx: &Cx, value: u64) {
        RoomRef::of(cx, cx.key()).note(value).send();
        self.log.push(0);
    }
}

async fn room() -> (Node, RoomRef) {
    let barrier = Arc::new(Barrier::new(2));
    let inside = Arc::new(AtomicU64::new(0));
    let node = node(|builder| {
        builder.register_with(move |_| Room { barrier: barrier.clone(), inside: inside.clone(), log: Vec::new() })
    })
    .await;
    let room = RoomRef::of(&node, "one");
    (node, room)
}

#[tokio::test]
async fn two_reads_of_one_activation_meet_at_a_barrier() {
    let (_node, room) = room().await;
    let (one, other) = tokio::join!(room.meet().into_future(), room.meet().into_future());
    assert!(one.unwrap() && other.unwrap());
}

#[tokio::test]
async fn exclusive_turns_never_overlap_and_reads_never_see_one_half_done() {
    let (_node, room) = room().await;
    let mut writes = Vec::new();
    for value in 0..20 {
        writes.push(tokio::spawn(room.write(value).into_future()));
        let seen = tokio::spawn(room.peek().into_future());
        writes.push(seen);
    }
    for write in writes {
        assert_eq!(write.await.unwrap().unwrap(), 0);
    }
    assert_eq!(room.log().await.unwrap().len(), 20);
}

#[tokio::test]
async fn one_callers_messages_arrive_in_the_order_they_were_sent() {
    let (_node, room) = room().await;
    for value in 0..500 {
        room.note(value).send();
    }
    assert_eq!(room.log().await.unwrap(), (0..500).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_first_messages_to_an_actor_arrive_in_order_too() {
    let (node, _) = room().await;
    for key in 0..300 {
        let room = RoomRef::of(&node, key);
        for value in 0..4 {
            room.note(value).send();
        }
        assert_eq!(room.log().await.unwrap(), [0, 1, 2, 3], "of room {key}");
    }
}

#[tokio::test]
async fn a_message_to_oneself_waits_for_the_turn_to_end() {
    let (_node, room) = room().await;
    room.tell_yourself(7).await.unwrap();
    assert_eq!(room.log().await.unwrap(), [0, 7]);
}

#[tokio::test]
async fn a_call_that_is_dropped_unused_does_nothing() {
    let (_node, room) = room().await;
    drop(room.note(1));
    drop(room.note(1).into_future());
    assert!(room.log().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_thousand_actors_answer_each_for_itself() {
    let (node, _) = room().await;
    let rooms: Vec<_> = (0..1000).map(|key| RoomRef::of(&node, key)).collect();
    for (value, room) in rooms.iter().enumerate() {
        room.note(value as u64).send();
    }
    for (value, room) in rooms.iter().enumerate() {
        assert_eq!(room.log().await.unwrap(), [value as u64]);
    }
    assert_eq!(node.activations(), 1000);
}
