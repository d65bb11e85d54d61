use greenroom::prelude::*;

#[derive(Default)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn ping(&self) {}
}

fn main() {}
