//! Rooms and members whose state is in a store.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A room, and what was said in it.
// anchor: room
#[derive(Default, Serialize, Deserialize, Actor)]
struct Room {
    lines: Vec<String>,
}

#[actor(persistent, save = "turn")]
impl Room {
    // end: room
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

/// Somebody who talks in rooms.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Member {
    spoken: u32,
}

#[actor(persistent, save = "5s")]
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

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    Node::builder().register::<Room>().register::<Member>().run_from_args().await
}
