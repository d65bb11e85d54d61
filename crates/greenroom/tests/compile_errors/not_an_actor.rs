use greenroom::prelude::*;

#[derive(Default)]
struct ChatRoom;

#[actor]
impl ChatRoom {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct User;

#[actor]
struct Door;

fn main() {
    let _ = Node::builder().register::<User>();
}
