//! Processes that die in the middle of their writes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use greenroom_store_conformance::crash::{self, Acknowledged};

use super::*;

/// Not a claim: what the killed process runs. This test binary starts itself with the file's path in `VICTIM_PATH`.
#[tokio::test]
async fn victim() {
    let (Ok(path), Ok(round)) = (std::env::var(VICTIM_PATH), std::env::var(VICTIM_ROUND)) else { return };
    let store = SqliteStore::open(path).unwrap();
    for n in 0.. {
        let key = format!("victim/{round}/{n}");
        store.create(&key, key.clone().into(), BY).await.unwrap();
        store::increment(&store, "count").await;
        println!("\nacknowledged {key}");
    }
}

/// Lets a victim write for a while, kills it, and tells what it had acknowledged by then.
fn kill_a(path: &Path, victim: &str, round: u32) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", victim, "--nocapture"])
        .env(VICTIM_PATH, path)
        .env(VICTIM_ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap());
    let (tell, told) = channel();
    let reading = std::thread::spawn(move || {
        let lines = output.lines().map_while(std::io::Result::ok);
        for line in lines.filter(|line| line.starts_with("acknowledged ")) {
            tell.send(line).unwrap();
        }
    });
    // However slow the machine is, it is in the midst of writing when it is killed.
    let first = told.recv_timeout(BY).expect("the victim writes");
    std::thread::sleep(Duration::from_millis(u64::from(round * 37 % 50)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    reading.join().unwrap();
    std::iter::once(first).chain(told).collect()
}

#[test]
fn processes_killed_while_writing_lose_nothing_acknowledged_and_lock_nobody_out() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let (done, own, slowest_us) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut acknowledged = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(async {
                while !done.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    store::increment(&store, "count").await;
                    own.fetch_add(1, Ordering::Relaxed);
                    slowest_us.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
            });
        });
        for round in 0..ROUNDS {
            acknowledged.extend(kill_a(&path, "tests::killed::victim", round));
        }
        done.store(true, Ordering::Relaxed);
    });
    let (own, victims) = (own.into_inner(), acknowledged.len() as u64);
    let slowest = Duration::from_micros(slowest_us.into_inner());
    println!("{own} increments of its own, {victims} of victims, the slowest of its own took {slowest:?}");
    assert!(own > 0, "the survivor was locked out");
    assert!(slowest < Duration::from_secs(5), "somebody kept the lock for {slowest:?}");
    run(async {
        for line in &acknowledged {
            let key = line.strip_prefix("acknowledged ").unwrap();
            assert!(store.read(key, BY).await.unwrap().is_some(), "{key} was acknowledged and is lost");
        }
        let count = store.read("count", BY).await.unwrap().unwrap().value;
        let count: u64 = str::from_utf8(&count).unwrap().parse().unwrap();
        let least = own + victims;
        // Each victim may have had one increment that it could not tell of any more.
        assert!((least..=least + u64::from(ROUNDS)).contains(&count), "{least} were acknowledged, {count} are there");
    });
    let checked: String = raw(&path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Not a claim: what the killed committer runs.
#[tokio::test]
async fn committer() {
    let (Ok(path), Ok(round)) = (std::env::var(VICTIM_PATH), std::env::var(VICTIM_ROUND)) else { return };
    let journal = Arc::new(SqliteStore::open(path).unwrap());
    println!();
    let errors = crash::work(journal, &format!("round/{round}"), |told| println!("{told}")).await;
    panic!("{errors:?}");
}

#[test]
fn processes_killed_while_committing_lose_nothing_acknowledged_and_leave_no_half_commit() {
    let (_directory, path) = fresh();
    let mut all = 0;
    for round in 0..ROUNDS {
        let lines = kill_a(&path, "tests::killed::committer", round);
        let acknowledged: Vec<Acknowledged> = lines.iter().map(|line| line.parse().unwrap()).collect();
        all += acknowledged.len();
        // Opened anew, as after a crash: this recovers the log.
        let journal = SqliteStore::open(&path).unwrap();
        run(crash::examine(&journal, &format!("round/{round}"), &acknowledged));
    }
    println!("{all} commits were acknowledged by {ROUNDS} killed processes");
    let checked: String = raw(&path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

const VICTIM_PATH: &str = "GREENROOM_STORE_VICTIM_PATH";
const VICTIM_ROUND: &str = "GREENROOM_STORE_VICTIM_ROUND";
const ROUNDS: u32 = 20;
