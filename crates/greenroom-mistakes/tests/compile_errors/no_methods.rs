use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    async fn read(&self) {}
}

fn main() {}
