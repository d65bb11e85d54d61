//! Rooms ask members whether these may speak.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A room, and what was said in it.
#[derive(Default, Actor)]
struct Room {
    lines: Vec<String>,
}

// anchor: post
#[actor]
impl Room {
    /// Says something; tells how many lines there are now.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> Result<usize, NotPosted> {
        if text.is_empty() {
            return Err(NotPosted::Empty);
        }
        match MemberRef::of(cx, &user).speak().await {
            Ok(_left) => {}
            Err(CallError::Actor(why)) => return Err(why),
            Err(lost) => return Err(NotPosted::Lost { why: lost.to_string() }),
        }
        self.lines.push(format!("{user}: {text}"));
        Ok(self.lines.len())
    }

    /// All lines.
    pub async fn read(&self) -> Vec<String> {
        self.lines.clone()
    }
}
// end: post

// anchor: member
/// Somebody who talks in rooms.
#[derive(Default, Actor)]
struct Member {
    spoken: u32,
}

#[actor]
impl Member {
    /// Counts one more line, in whatever room; tells how many are left.
    pub async fn speak(&mut self) -> Result<u32, NotPosted> {
        if self.spoken == LINES_MAX {
            return Err(NotPosted::Enough { lines: self.spoken });
        }
        self.spoken += 1;
        Ok(LINES_MAX - self.spoken)
    }
}

/// Lines that a member may say.
const LINES_MAX: u32 = 3;
// end: member

// anchor: error
/// Why a line is not in the room.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
enum NotPosted {
    #[error("there is nothing in it")]
    Empty,
    #[error("{lines} lines are enough")]
    Enough { lines: u32 },
    #[error("the member could not be asked: {why}")]
    Lost { why: String },
}
// end: error

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().http("127.0.0.1:7070").register::<Room>().register::<Member>().start().await?;
    println!("try http://127.0.0.1:7070");
    node.run_until_ctrl_c().await
}
