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

#[actor(placement = "hash")]
trait PlacedApi {
    async fn ping(&self);
}

fn main() {}
