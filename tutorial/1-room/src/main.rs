//! A chat room, on one node with an HTTP door.

use greenroom::prelude::*;

/// A room, and what was said in it.
#[derive(Default, Actor)]
struct Room {
    lines: Vec<String>,
}

#[actor]
impl Room {
    /// Says something; tells how many lines there are now.
    pub async fn post(&mut self, user: String, text: String) -> usize {
        self.lines.push(format!("{user}: {text}"));
        self.lines.len()
    }

    /// All lines.
    pub async fn read(&self) -> Vec<String> {
        self.lines.clone()
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().http("127.0.0.1:7070").register::<Room>().start().await?;
    RoomRef::of(&node, "lobby").post("house".to_owned(), "welcome".to_owned()).await?;
    println!("try http://127.0.0.1:7070");
    node.run_until_ctrl_c().await
}
