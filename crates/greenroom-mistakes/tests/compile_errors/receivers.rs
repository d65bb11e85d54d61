use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn close(self) {}

    pub fn count(&self) -> usize {
        0
    }
}

fn main() {}
