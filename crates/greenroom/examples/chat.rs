//! A chat: rooms that ask users, and errors that callers can tell apart.
//!
//! `cargo run --example chat -- --http 127.0.0.1:7070`, and from anywhere, with no code:
//!
//! ```sh
//! curl -d '{"user":"ada","text":"hello"}' localhost:7070/chat_room/lobby/post
//! curl -X POST localhost:7070/chat_room/lobby/read
//! curl -X POST localhost:7070/user/ada/ban
//! ```

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Why a message was not posted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ChatError {
    /// There is no text.
    Empty,
    /// The user could not be asked.
    NotNow(String),
}

/// A room and what was said in it.
#[derive(Default, Actor)]
pub struct ChatRoom {
    messages: Vec<String>,
}

#[actor]
impl ChatRoom {
    /// `&mut self`: an exclusive turn, across every await.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> Result<bool, ChatError> {
        if text.is_empty() {
            return Err(ChatError::Empty);
        }
        let allowed = UserRef::of(cx, user.as_str()).may_post().await;
        if !allowed.map_err(|error| ChatError::NotNow(error.to_string()))? {
            return Ok(false);
        }
        self.messages.push(format!("{user}: {text}"));
        Ok(true)
    }

    /// `&self`: a read; reads of one activation interleave.
    pub async fn read(&self) -> Vec<String> {
        self.messages.clone()
    }
}

/// Somebody who chats.
#[derive(Default, Actor)]
pub struct User {
    banned: bool,
}

#[actor]
impl User {
    /// Whether the user is not banned.
    pub async fn may_post(&self) -> bool {
        !self.banned
    }

    /// From now on the user's messages are not posted.
    pub async fn ban(&mut self) {
        self.banned = true;
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    Node::builder().register::<ChatRoom>().register::<User>().run_from_args().await
}
