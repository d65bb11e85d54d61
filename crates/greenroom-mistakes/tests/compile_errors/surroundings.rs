#![allow(unused)]

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, cx: Cx, text: String) {}

    pub async fn clear(&mut self, cx: &mut Cx) {}

    pub async fn close(&mut self, why: String, cx: &Cx) {}

    pub async fn keep<T>(&mut self, what: T) {}
}

fn main() {}
