#![allow(unused)]

use greenroom::prelude::*;

pub struct Text(String);

#[derive(Default, Actor)]
pub struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn post(&mut self, text: Text) {}
}

fn main() {}
