use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Session {
    seen: u64,
}

#[actor(migrate)]
impl Session {
    pub async fn see(&mut self) -> u64 {
        self.seen += 1;
        self.seen
    }
}

fn main() {}
