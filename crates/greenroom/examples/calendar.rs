//! A calendar of many reminders, and what it costs: to set them, and for a node to take them over from one that died.
//!
//! `cargo run -p greenroom --example calendar -- set 100000 FILE` sets them and dies at once, without a word;
//! `cargo run -p greenroom --example calendar -- keep FILE` takes over.

use std::env::args;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use greenroom::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// One of many.
#[derive(Default, Actor)]
pub struct Entry {}

#[actor]
impl Entry {
    /// What the reminders call.
    pub async fn remind(&mut self, cx: &Cx) {
        if cx.tick().is_some() {
            TICKS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["set", count, file] => set(count.parse()?, file).await,
        ["keep", file] => keep(file).await,
        _ => Err("write `set COUNT FILE` or `keep FILE`".into()),
    }
}

async fn start(file: &str) -> greenroom::Result<Node> {
    Node::builder().state(format!("sqlite:{file}")).http("127.0.0.1:0").register::<Entry>().start().await
}

/// Sets `count` reminders, of which the last [`SOON`] are due in a second, the others on the days after.
async fn set(count: u64, file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let node = start(file).await?;
    println!("{} MB in memory before", memory_mb());
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let node = node.clone();
        tasks.spawn(async move {
            for number in (task..count).step_by(TASKS as usize) {
                let day = Duration::from_secs(24 * 3600);
                let soon = number + SOON >= count;
                let due = if soon { Duration::from_secs(1) } else { day + day * 30 * number as u32 / count as u32 };
                EntryRef::of(&node, number).remind().after(due).await?;
            }
            Ok::<(), ReminderError>(())
        });
    }
    let mut told = Instant::now();
    while let Some(done) = tasks.join_next().await {
        done??;
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("{} tasks are left after {:?}", tasks.len(), began.elapsed());
        }
    }
    let took = began.elapsed();
    println!("{count} set in {took:.1?}: {:.0} in a second", count as f64 / took.as_secs_f64());
    println!("{} MB in memory, {} of them due; {}", memory_mb(), SOON, status(&node).await?);
    std::process::abort();
}

/// Takes over what `set` has left.
async fn keep(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let node = start(file).await?;
    println!("a member after {:.1?}, {} MB in memory", began.elapsed(), memory_mb());
    while TICKS.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("the first tick after {:.2?}", began.elapsed());
    let (mut ticks, mut last) = (0, began.elapsed());
    while began.elapsed() < last + Duration::from_secs(5) {
        let now = TICKS.load(Ordering::Relaxed);
        if now > ticks {
            (ticks, last) = (now, began.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("{ticks} ticks, the last of them after {last:.2?}");
    println!("{} MB in memory; {}", memory_mb(), status(&node).await?);
    node.stop().await;
    Ok(())
}

/// What the node says of its reminders.
async fn status(node: &Node) -> Result<String, Box<dyn std::error::Error>> {
    let address = node.http_address().ok_or("it has a door")?;
    let mut door = tokio::net::TcpStream::connect(address).await?;
    door.write_all(b"GET /-/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    door.read_to_string(&mut answer).await?;
    let reminders = answer.split("\"reminders\": {").nth(1).and_then(|rest| rest.split('}').next());
    let words: Vec<&str> = reminders.unwrap_or_default().split_whitespace().collect();
    Ok(words.join(" "))
}

/// Resident memory, where the system tells.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() / 1024
}

static TICKS: AtomicU64 = AtomicU64::new(0);

/// Reminders that are due at once.
const SOON: u64 = 1000;
/// That set reminders side by side.
const TASKS: u64 = 256;
