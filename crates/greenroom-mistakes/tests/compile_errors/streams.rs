use std::rc::Rc;

use futures_util::stream;
use greenroom::prelude::*;

#[derive(Default, Actor)]
pub struct ChatRoom {
    messages: Vec<String>,
}

#[actor]
impl ChatRoom {
    pub fn borrowed(&self) -> impl Stream<Item = String> {
        stream::iter(&self.messages).map(|message| message.clone())
    }

    pub fn of_the_thread(&self) -> impl Stream<Item = u64> {
        let number = Rc::new(7);
        stream::once(async move { *number })
    }
}

use futures_util::StreamExt;

fn main() {}
