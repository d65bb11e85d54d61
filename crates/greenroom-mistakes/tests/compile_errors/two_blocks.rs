use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom {
    messages: Vec<String>,
}

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, text: String) {
        self.messages.push(text);
    }
}

#[actor]
impl ChatRoom {
    pub async fn clear(&mut self) {
        self.messages.clear();
    }
}

fn main() {}
