#![allow(unused)]

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn post<T: Send>(&mut self, text: T) {}

    pub async fn put(&mut self, text: impl Into<String>) {}

    pub async fn pair(&mut self, (left, right): (u64, u64)) {}
}

fn main() {}
