//! A seed decides everything, and seeds differ; and how fast that goes.

mod echo;

use std::io;
use std::time::Duration;

use echo::{CONTROL, ESSENTIAL, USER, ask, classify, millis, secs, start_echo};
use greenroom_sim::{Faults, Log, Nemesis, Sim, SimNode, seeds};
use greenroom_world::{Stage, World};
use tokio::io::AsyncWriteExt;

const NODES: [&str; 3] = ["a", "b", "c"];

/// Asks the echo of `peer` again and again, reconnecting, as long as the node lives.
async fn pester(node: std::sync::Arc<SimNode>, peer: &'static str) {
    loop {
        let asked: io::Result<()> = async {
            let mut stream = node.connect(&format!("{peer}:7000")).await?;
            stream.write_all(&echo::frame(ESSENTIAL, 0)).await?;
            for number in 0.. {
                let kind = if node.random().is_multiple_of(3) { CONTROL } else { USER };
                ask(&node, &mut *stream, kind, number, secs(2)).await?;
                node.sleep_until(node.now() + millis(200)).await;
            }
            Ok(())
        }
        .await;
        if asked.is_err() {
            tokio::time::sleep(millis(100)).await;
        }
    }
}

fn start(sim: &Sim, name: &str) {
    start_echo(sim, name);
    let node = sim.node(name);
    for peer in NODES.into_iter().filter(|peer| *peer != name) {
        node.spawn(Stage::Control, Box::pin(pester(node.clone(), peer)));
    }
}

/// Three nodes that pester each other for a minute under a nemesis: the trace's hash, its length, its lines, the faults.
fn minute(seed: u64, log: Log) -> (u64, u64, Vec<String>, Vec<String>) {
    let builder = Sim::builder().seed(seed).faults(Faults::rough()).classify(classify).log(log);
    builder.run(|sim| async move {
        NODES.iter().for_each(|name| start(&sim, name));
        let restarts = sim.clone();
        let nemesis = Nemesis::new(&sim, &NODES).restart(move |name| start(&restarts, name)).lease(secs(5));
        let acts = nemesis.run(Duration::from_secs(60)).await;
        (sim.trace_hash(), sim.events(), sim.trace_lines(), acts)
    })
}

#[test]
fn a_seed_twice_gives_one_trace() {
    for seed in 0..20 {
        let (one, two) = (minute(seed, Log::Full), minute(seed, Log::Full));
        let differs = one.2.iter().zip(&two.2).find(|(one, two)| one != two);
        assert_eq!(differs, None, "the first lines that differ under seed {seed}");
        assert_eq!(one, two);
        assert_eq!(minute(seed, Log::Tail).0, one.0, "how much is kept changes nothing");
    }
}

#[test]
fn two_seeds_give_two_traces_and_each_has_a_fault() {
    let runs: Vec<_> = (0..50).map(|seed| minute(seed, Log::Tail)).collect();
    let mut hashes: Vec<u64> = runs.iter().map(|run| run.0).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 50);
    assert!(runs.iter().all(|run| !run.3.is_empty()));
    let all: String = runs.iter().flat_map(|run| run.3.iter()).map(|act| format!("{act}\n")).collect();
    for fault in ["crash", "pause", "partition", "cut", "reset"] {
        assert!(all.contains(fault), "no {fault} in 50 seeds:\n{all}");
    }
}

#[test]
fn a_minute_of_three_nodes_runs_under_many_seeds() {
    let events = std::sync::atomic::AtomicU64::new(0);
    let began = std::time::Instant::now();
    seeds("three nodes", 200, |seed| {
        events.fetch_add(minute(seed, Log::Tail).1, std::sync::atomic::Ordering::Relaxed);
    });
    let (events, took) = (events.into_inner(), began.elapsed().as_secs_f64());
    eprintln!("{events} events in {took:.2} s: {:.0} a second", events as f64 / took);
}
