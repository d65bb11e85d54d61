use greenroom::prelude::*;

pub struct Text(String);

#[derive(Default, Actor)]
pub struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn first(&self) -> Option<Text> {
        None
    }
}

fn main() {}
