//! The same on real threads, where a message of a third shard may overtake an actor on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use greenroom::Node;

use super::ledger::{Lives, TellerRef, equipped};

const TELLERS: u64 = 24;
const LEDGERS: u64 = 4;
const SHARDS: usize = 4;
const BURSTS: u64 = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_overtake_an_actor_wait_for_it() {
    let lives = Arc::new(Lives::default());
    let node = equipped(Node::builder(), SHARDS, &lives).start().await.expect("a node on loopback starts");
    let (told, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let moves = tokio::spawn({
        let (node, done) = (node.clone(), done.clone());
        async move {
            let mut round = 0_u64;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                node.pass("ledger", &format!("l{}", round % LEDGERS), (round / LEDGERS % SHARDS as u64) as u16);
                node.pass("teller", &(round % TELLERS).to_string(), (round / TELLERS % SHARDS as u64) as u16);
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
    });
    let tellers = (0..TELLERS).map(|teller| {
        let (node, told) = (node.clone(), told.clone());
        tokio::spawn(async move {
            let by = TellerRef::of(&node, teller.to_string());
            for _ in 0..BURSTS {
                let ledger = format!("l{}", teller % LEDGERS);
                by.tell(teller, ledger, 16).await.expect("all came, in order");
                told.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for teller in futures_util::future::join_all(tellers).await {
        teller.expect("it told all");
    }
    done.store(true, Ordering::Relaxed);
    moves.await.expect("it ends");
    assert_eq!(told.load(Ordering::Relaxed), TELLERS * BURSTS);
    node.stop().await;
}
