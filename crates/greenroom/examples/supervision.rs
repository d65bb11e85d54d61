//! A pool that nobody looks up by name: a virtual actor spawns its workers, is told when one ends, and lets those that
//! fail be made anew.
//!
//! `cargo run --example supervision`

use std::time::Duration;

use greenroom::prelude::*;

/// Spawned, so it has no key of its own and needs no `Default`.
pub struct Worker {
    name: String,
    done: u32,
}

impl Actor for Worker {}

#[actor]
impl Worker {
    /// Counts the letters of `text`; some texts are too much for it.
    pub async fn letters(&mut self, text: String) -> usize {
        assert!(!text.contains('\0'), "{} does not take this", self.name);
        self.done += 1;
        text.chars().count()
    }

    /// Texts since it was last made.
    pub async fn done(&self) -> u32 {
        self.done
    }
}

/// The one who knows the workers.
#[derive(Default, Actor)]
pub struct Pool {
    workers: Vec<Pid<Worker>>,
    ended: Vec<String>,
}

#[actor]
impl Pool {
    /// Makes another worker. It may fail three times a minute.
    pub async fn hire(&mut self, cx: &Cx, name: String) -> Pid<Worker> {
        let supervise = Supervise::restart()
            .at_most(3, Duration::from_secs(60))
            .back_off(Duration::from_millis(10), Duration::from_secs(1));
        let worker = cx.spawn_with(supervise, move || Worker { name: name.clone(), done: 0 });
        cx.watch(&worker);
        self.workers.push(worker.clone());
        worker
    }

    /// How many there are, and why those ended that are no more.
    pub async fn report(&self) -> (usize, Vec<String>) {
        (self.workers.len(), self.ended.clone())
    }

    async fn ended(&mut self, ended: Ended) {
        self.workers.retain(|worker| *worker.id() != ended.id);
        self.ended.push(ended.why.to_string());
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Pool>().start().await?;
    let pool = PoolRef::of(&node, "letters");
    let worker = pool.hire("ada").await?.bind(&node);
    println!("{worker} counts {} letters", worker.letters("green room").await?);
    if let Err(error) = worker.letters("\0").await {
        println!("it fails: {error}");
    }
    println!("and is there again, having done {} texts", worker.done().await?);
    worker.stop().await?;
    println!("{:?}", worker.letters("too late").await.map_err(|error| error.to_string()));
    // What a watch tells arrives soon, not at once.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (left, ended) = pool.report().await?;
    println!("{left} workers are left; one ended, as {}", ended.join(", "));
    node.stop().await;
    Ok(())
}
