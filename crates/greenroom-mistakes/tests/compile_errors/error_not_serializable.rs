use greenroom::prelude::*;

#[derive(Debug)]
pub enum PostError {
    Closed,
}

#[derive(Default, Actor)]
pub struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, text: String) -> Result<(), PostError> {
        if text.is_empty() { Err(PostError::Closed) } else { Ok(()) }
    }
}

pub async fn call(node: &Node) -> bool {
    ChatRoomRef::of(node, "lobby").post("hi").await.is_ok()
}

fn main() {}
