//! Greenroom beside other actor libraries, in one process, in turn, several times over.
//!
//! ```text
//! cargo run --release --manifest-path peers/Cargo.toml
//! ```

mod with_actix;
mod with_greenroom;
mod with_kameo;
mod with_ractor;

use std::process::Command;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs of each library; the median counts.
const RUNS: usize = 5;
/// Actors that each sender tells something before it waits for them.
const GROUP: u64 = 100;
/// Messages in a row to one of them.
const BURST: u64 = 64;

/// What every library does.
struct Peer {
    name: &'static str,
    /// So many pairs make so many calls each, one in flight.
    calls: fn(u64, u64) -> Duration,
    /// So many senders send bursts to each of so many actors, so many times over.
    tells: fn(u64, u64, u64) -> Duration,
    /// So many actors wait; the growth of the process's memory in bytes.
    idle: fn(u64) -> u64,
}

const PEERS: [Peer; 4] = [
    Peer { name: "greenroom", calls: with_greenroom::calls, tells: with_greenroom::tells, idle: with_greenroom::idle },
    Peer { name: "actix", calls: with_actix::calls, tells: with_actix::tells, idle: with_actix::idle },
    Peer { name: "kameo", calls: with_kameo::calls, tells: with_kameo::tells, idle: with_kameo::idle },
    Peer { name: "ractor", calls: with_ractor::calls, tells: with_ractor::tells, idle: with_ractor::idle },
];

fn main() {
    // Memory is measured in a process of its own.
    if let Some(name) = std::env::args().nth(1) {
        let peer = PEERS.iter().find(|peer| peer.name == name).expect("the name of a library");
        return println!("{}", (peer.idle)(IDLE) / IDLE);
    }
    compare("64 pairs, 1 call in flight each, M messages/s", |peer| {
        let rounds = 20_000;
        (2 * 64 * rounds) as f64 / (peer.calls)(64, rounds).as_secs_f64() / 1e6
    });
    compare("1 pair, 1 call in flight, ns a call", |peer| {
        let rounds = 300_000;
        (peer.calls)(1, rounds).as_secs_f64() * 1e9 / rounds as f64
    });
    compare("2 senders to 1000 actors, one-way, M messages/s", |peer| {
        let times = 10;
        (2 * 1000 * BURST * times) as f64 / (peer.tells)(2, 1000, times).as_secs_f64() / 1e6
    });
    println!("bytes an idle actor, of {IDLE}");
    for peer in &PEERS {
        let program = std::env::current_exe().expect("this program has a path");
        let output = Command::new(program).arg(peer.name).output().expect("it runs again");
        println!("{:>10}  {:>6}", peer.name, String::from_utf8_lossy(&output.stdout).trim());
    }
}

fn compare(what: &str, measure: impl Fn(&Peer) -> f64) {
    println!("{what}; median of {RUNS} (least, most)");
    let mut seen = vec![Vec::new(); PEERS.len()];
    for _ in 0..RUNS {
        for (peer, seen) in PEERS.iter().zip(&mut seen) {
            seen.push(measure(peer));
        }
    }
    for (peer, mut seen) in PEERS.iter().zip(seen) {
        seen.sort_by(f64::total_cmp);
        println!("{:>10}  {:8.2}  ({:.2}, {:.2})", peer.name, seen[RUNS / 2], seen[0], seen[RUNS - 1]);
    }
}

/// A runtime with a thread a core.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}

/// Runs `tasks` side by side; how long they took together.
async fn timed<F: Future<Output = ()> + Send + 'static>(tasks: Vec<F>) -> Duration {
    let began = Instant::now();
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    for task in tasks {
        task.await.expect("no task panics");
    }
    began.elapsed()
}

/// This process's resident memory in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages: u64 = status.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("it is a number");
    pages * 4096
}

/// Idle actors.
const IDLE: u64 = 100_000;
