use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Inbox {
    messages: Vec<String>,
}

#[actor(persistent, save = "turn")]
impl Inbox {
    pub async fn put(&mut self, text: String) {
        self.messages.push(text);
    }
}

fn main() {}
