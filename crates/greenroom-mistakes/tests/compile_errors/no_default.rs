use greenroom::prelude::*;

#[derive(Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn ping(&self) {}
}

fn main() {}
