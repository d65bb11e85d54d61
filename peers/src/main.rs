//! Greenroom beside other actor libraries: 64 pairs in one process, one call in flight each, in turn, several times over.
//!
//! ```text
//! cargo run --release --manifest-path peers/Cargo.toml
//! ```

mod with_actix;
mod with_greenroom;
mod with_kameo;
mod with_ractor;

use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pairs of actors.
const PAIRS: u64 = 64;
/// Calls that each pair makes in one run.
const ROUNDS: u64 = 20_000;
/// Runs of each library; the median counts.
const RUNS: usize = 5;

/// One library's run: how long all pairs took, their start not included.
type Run = fn() -> Duration;

fn main() {
    let peers: [(&str, Run); 4] = [
        ("greenroom", with_greenroom::run),
        ("actix", with_actix::run),
        ("kameo", with_kameo::run),
        ("ractor", with_ractor::run),
    ];
    let mut rates = vec![Vec::new(); peers.len()];
    for _ in 0..RUNS {
        for (run, rates) in peers.iter().map(|(_, run)| run).zip(&mut rates) {
            rates.push((2 * PAIRS * ROUNDS) as f64 / run().as_secs_f64() / 1e6);
        }
    }
    println!("local ping-pong, {PAIRS} pairs, 1 call in flight each; M messages/s, median of {RUNS} (least, most)");
    for ((name, _), mut rates) in peers.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        println!("{name:>10}  {:6.2}  ({:.2}, {:.2})", rates[RUNS / 2], rates[0], rates[RUNS - 1]);
    }
}

/// A runtime with a thread a core.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts")
}

/// Runs `pairs` side by side; how long they took together.
async fn timed<F: Future<Output = ()> + Send + 'static>(pairs: Vec<F>) -> Duration {
    let began = Instant::now();
    let tasks: Vec<_> = pairs.into_iter().map(tokio::spawn).collect();
    for task in tasks {
        task.await.expect("no pair panics");
    }
    began.elapsed()
}
