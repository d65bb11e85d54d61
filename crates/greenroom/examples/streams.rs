//! A room that can be watched: its method gives a stream, and each message comes to all who watch.
//!
//! `cargo run --example streams`

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use tokio::sync::broadcast;

/// A chat room that remembers what was said.
#[derive(Default, Actor)]
pub struct Room {
    messages: Vec<String>,
    watchers: Option<broadcast::Sender<String>>,
}

#[actor]
impl Room {
    /// Says `text` to all who watch.
    pub async fn say(&mut self, text: String) {
        self.messages.push(text.clone());
        if let Some(watchers) = &self.watchers {
            // An error means that nobody watches.
            let _ = watchers.send(text);
        }
    }

    /// What was said from message number `from` on, and all that will be.
    pub fn watch(&mut self, from: u64) -> impl Stream<Item = String> {
        let watchers = self.watchers.get_or_insert_with(|| broadcast::Sender::new(1024));
        // The stream owns what it needs: it goes on beside the room's other turns, and keeps nobody from them.
        let said: Vec<String> = self.messages.iter().skip(from as usize).cloned().collect();
        let to_come = stream::unfold(watchers.subscribe(), |mut receiver| async move {
            // Who falls more than 1024 messages behind is cut off.
            receiver.recv().await.ok().map(|text| (text, receiver))
        });
        stream::iter(said).chain(to_come)
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Room>().start().await?;
    let room = RoomRef::of(&node, "lobby");
    for text in ["hello", "is anybody there?", "it is a fine day"] {
        room.say(text).await?;
    }
    let mut messages = room.watch(1).await?;
    room.say("goodbye").await?;
    for _ in 0..3 {
        match messages.next().await {
            Some(Ok(text)) => println!("{text}"),
            // The node that the room was on has gone, say: watch again, from where we are.
            Some(Err(error)) => println!("the stream broke off: {error}"),
            None => break,
        }
    }
    // Dropping the stream ends it, wherever the room is.
    drop(messages);
    node.stop().await;
    Ok(())
}
