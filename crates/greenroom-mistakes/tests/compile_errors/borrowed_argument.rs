#![allow(unused)]

use std::borrow::Cow;

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, text: &str) {}

    pub async fn put(&mut self, words: Vec<Cow<'_, str>>) {}

    pub async fn first(&self) -> &[u8] {
        &[]
    }
}

fn main() {}
