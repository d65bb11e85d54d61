use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn key(&self) -> u64 {
        0
    }

    pub async fn activated(&mut self) {}

    async fn deactivating(&self) {}
}

fn main() {}
