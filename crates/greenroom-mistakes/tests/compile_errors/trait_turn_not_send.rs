use std::rc::Rc;

use greenroom::prelude::*;

#[actor]
trait ChatRoomApi {
    async fn post(&mut self, text: String);
}

#[derive(Default, Actor)]
struct ChatRoom {
    text: String,
}

#[actor]
impl ChatRoomApi for ChatRoom {
    async fn post(&mut self, text: String) {
        let text = Rc::new(text);
        tokio::task::yield_now().await;
        self.text = text.to_string();
    }
}

fn main() {}
