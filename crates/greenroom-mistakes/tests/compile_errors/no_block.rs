use greenroom::prelude::*;

#[derive(Default, Actor)]
struct User;

#[actor]
struct Door;

fn main() {
    let _ = Node::builder().register::<User>();
}
