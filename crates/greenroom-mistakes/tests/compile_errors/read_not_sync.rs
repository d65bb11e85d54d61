use std::cell::Cell;

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct ChatRoom {
    reads: Cell<u64>,
}

#[actor]
impl ChatRoom {
    pub async fn read(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        self.reads.get()
    }
}

fn main() {}
