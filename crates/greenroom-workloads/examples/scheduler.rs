//! Greenroom's shards against a task per activation on tokio's work-stealing scheduler (docs/decisions/004-shards.md).
//!
//! The other design is written by hand and does nothing but run turns: an mpsc mailbox and a task an actor, a oneshot a
//! call, no directory, no deadlines, no errors. Each load runs several times in turn on both, and medians are printed.

use std::time::{Duration, Instant};

use greenroom::prelude::*;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

fn main() -> greenroom::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system has threads");
    println!("M calls/s, median of {RUNS} runs of {RUN:?}, {cores} threads each\n");
    println!("{:<48}{:>10}{:>16}{:>9}", "load", "shards", "task an actor", "ratio");
    for load in LOADS {
        let (mut shards, mut tasks) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            shards.push(runtime.block_on(on_shards(load))?);
            tasks.push(on_tasks(load, cores));
        }
        let (shards, tasks) = (median(shards), median(tasks));
        println!("{:<48}{:>10.2}{:>16.2}{:>9.1}", load.name, shards / 1e6, tasks / 1e6, shards / tasks);
    }
    Ok(())
}

/// Callers that each call a callee of their own, one call in flight each, except for those that share the first one.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    pairs: usize,
    /// So many in a hundred callers call the first callee.
    sharing_percent: usize,
    /// One turn in so many keeps its thread for a millisecond; 0 for none.
    blocking: u64,
    /// Whether one actor activates them all, so that they begin where it is.
    one_parent: bool,
}

const LOADS: [Load; 5] = [
    Load { name: "64 pairs", pairs: 64, sharing_percent: 0, blocking: 0, one_parent: false },
    Load { name: "10,000 hot actors", pairs: 5000, sharing_percent: 0, blocking: 0, one_parent: false },
    Load {
        name: "imbalance: half of 64 callers call one actor",
        pairs: 64,
        sharing_percent: 50,
        blocking: 0,
        one_parent: false,
    },
    Load {
        name: "1 % of turns keep the thread for 1 ms",
        pairs: 64,
        sharing_percent: 0,
        blocking: 100,
        one_parent: false,
    },
    Load { name: "64 pairs activated by one actor", pairs: 64, sharing_percent: 0, blocking: 0, one_parent: true },
];

impl Load {
    fn callee_of(&self, caller: usize) -> usize {
        if caller * 100 < self.pairs * self.sharing_percent { 0 } else { caller }
    }
}

fn turn(turns: &mut u64, blocking: u64) -> u64 {
    *turns += 1;
    if blocking > 0 && turns.is_multiple_of(blocking) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
    }
    *turns
}

#[derive(Default, Actor)]
struct Callee {
    turns: u64,
}

#[actor]
impl Callee {
    pub async fn turn(&mut self, blocking: u64) -> u64 {
        turn(&mut self.turns, blocking)
    }
}

#[derive(Default, Actor)]
struct Caller;

#[actor]
impl Caller {
    pub async fn run(&self, cx: &Cx, callee: u64, blocking: u64, millis: u64) -> u64 {
        let callee = CalleeRef::of(cx, callee);
        let until = Instant::now() + Duration::from_millis(millis);
        let mut answered = 0u64;
        while !answered.is_multiple_of(CALLS_A_CLOCK) || answered == 0 || Instant::now() < until {
            if callee.turn(blocking).await.is_ok() {
                answered += 1;
            }
        }
        answered
    }
}

#[derive(Default, Actor)]
struct Parent;

#[actor]
impl Parent {
    pub async fn run(&self, cx: &Cx, callees: Vec<u64>, blocking: u64, millis: u64) -> u64 {
        let callers = callees.into_iter().enumerate().map(|(pair, callee)| {
            let caller = CallerRef::of(cx, pair);
            async move { caller.run(callee, blocking, millis).await.unwrap_or(0) }
        });
        futures_util::future::join_all(callers).await.into_iter().sum()
    }
}

/// Calls a second on a fresh node.
async fn on_shards(load: Load) -> greenroom::Result<f64> {
    let node = Node::builder().register::<Parent>().register::<Caller>().register::<Callee>().start().await?;
    // Both are activated before the clock starts.
    calls(&node, load, Duration::ZERO).await;
    let answered = calls(&node, load, RUN).await;
    node.stop().await;
    Ok(answered as f64 / RUN.as_secs_f64())
}

async fn calls(node: &Node, load: Load, run: Duration) -> u64 {
    let millis = run.as_millis() as u64;
    let callees: Vec<u64> = (0..load.pairs).map(|pair| load.callee_of(pair) as u64).collect();
    if load.one_parent {
        return ParentRef::of(node, "parent").run(callees, load.blocking, millis).await.unwrap_or(0);
    }
    let mut callers = JoinSet::new();
    for (pair, callee) in callees.into_iter().enumerate() {
        let caller = CallerRef::of(node, pair);
        callers.spawn(async move { caller.run(callee, load.blocking, millis).await.unwrap_or(0) });
    }
    callers.join_all().await.into_iter().sum()
}

type Mailbox = mpsc::Sender<oneshot::Sender<u64>>;

/// Calls a second on tokio's multi-thread runtime.
fn on_tasks(load: Load, threads: usize) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.expect("the system has threads");
    let answered: u64 = runtime.block_on(async {
        let callees: Vec<Mailbox> = (0..load.pairs).map(|_| callee(load.blocking)).collect();
        let until = Instant::now() + RUN;
        let mut callers = JoinSet::new();
        for pair in 0..load.pairs {
            callers.spawn(caller(callees[load.callee_of(pair)].clone(), until));
        }
        callers.join_all().await.into_iter().sum()
    });
    answered as f64 / RUN.as_secs_f64()
}

fn callee(blocking: u64) -> Mailbox {
    let (mailbox, mut messages) = mpsc::channel::<oneshot::Sender<u64>>(MAILBOX_LEN);
    tokio::spawn(async move {
        let mut turns = 0;
        while let Some(reply) = messages.recv().await {
            let _ = reply.send(turn(&mut turns, blocking));
        }
    });
    mailbox
}

async fn caller(callee: Mailbox, until: Instant) -> u64 {
    let mut answered = 0u64;
    while !answered.is_multiple_of(CALLS_A_CLOCK) || Instant::now() < until {
        let (reply, answer) = oneshot::channel();
        if callee.send(reply).await.is_err() || answer.await.is_err() {
            break;
        }
        answered += 1;
    }
    answered
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}

const RUNS: usize = 5;
const RUN: Duration = Duration::from_secs(1);
const MAILBOX_LEN: usize = 4096;
/// Calls between two looks at the clock.
const CALLS_A_CLOCK: u64 = 16;
