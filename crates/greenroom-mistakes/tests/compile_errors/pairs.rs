use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Saved;

#[actor(reliable, persistent)]
impl Saved {
    pub async fn ping(&mut self) {}
}

#[derive(Default, Actor)]
struct Pool;

#[actor(reliable, workers = 2)]
impl Pool {
    pub async fn ping(&mut self) {}
}

#[derive(Default, Actor)]
struct Streaming;

#[actor(reliable)]
impl Streaming {
    pub fn items(&self) -> impl Stream<Item = u64> {
        futures_util::stream::empty()
    }
}

#[derive(Default, Actor)]
struct Moving;

#[actor(reliable)]
impl Moving {
    pub async fn go(&mut self, cx: &Cx) {
        let _ = cx.migrate_to("b");
    }
}

#[derive(Default, Actor)]
struct SavedPool;

#[actor(persistent, workers = 2)]
impl SavedPool {
    pub async fn ping(&mut self) {}
}

fn main() {}
