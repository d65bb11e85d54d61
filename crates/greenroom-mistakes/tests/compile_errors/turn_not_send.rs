use std::rc::Rc;

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom {
    text: String,
}

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, text: String) {
        let text = Rc::new(text);
        tokio::task::yield_now().await;
        self.text = text.to_string();
    }
}

fn main() {}
