use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Near;

#[actor(placment = "hash")]
impl Near {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct NoWorkers;

#[actor(workers = 0)]
impl NoWorkers {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct BadDuration;

#[actor(idle = "5 minutes")]
impl BadDuration {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct Word;

#[actor(persistant)]
impl Word {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct Valueless;

#[actor(idle)]
impl Valueless {
    pub async fn ping(&self) {}
}

#[derive(Default, Actor)]
struct Handler;

#[actor(reliable, start = "Open")]
impl Handler {
    #[on(ping, stat = "Open")]
    async fn ping(&mut self) {}
}

#[actor(placement = "hash")]
trait PlacedApi {
    async fn ping(&self);
}

fn main() {}
