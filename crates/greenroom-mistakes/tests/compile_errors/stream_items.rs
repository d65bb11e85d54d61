use greenroom::prelude::*;

#[derive(Default, Actor)]
pub struct ChatRoom;

#[actor]
impl ChatRoom {
    pub fn of_what(&self) -> impl Stream {
        todo()
    }

    pub fn borrowed(&self) -> impl Stream<Item = &str> {
        todo()
    }

    pub fn not_a_stream(&self) -> impl Iterator<Item = u64> {
        0..1
    }
}

fn main() {}
