//! A rolling restart under load: every node drains and is started again, and no caller sees more than a retry.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::counters::{Client, Counters, Told, WhileLoaded};
use crate::nodes::Nodes;

/// How the calls of the clients went, their retries included.
#[derive(Default)]
struct Retries {
    /// Attempts that were refused and repeated.
    repeated: AtomicU64,
    longest_millis: AtomicU64,
}

impl Retries {
    /// Adds to one counter after the other; what was refused is tried again at the next door.
    fn drive(&self, counters: &Counters, client: &Client, doors: &[String], first: usize) {
        let mut turn = first;
        while !counters.is_stopped() {
            turn += 1;
            let key = turn * 7 % COUNTERS;
            let begun = Instant::now();
            let mut attempt = 0;
            while let Told::Not(why) = counters.add(client, &doors[(turn + attempt) % doors.len()], key) {
                attempt += 1;
                assert!(attempt < TRIES_MAX, "refused {TRIES_MAX} times: {why}");
                self.repeated.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
            self.longest_millis.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
    }
}

/// Restarts each of four nodes while clients add to counters; `drain` has one leave.
fn rolling_restart(name: &str, drain: impl Fn(&Nodes, usize)) {
    let mut nodes = Nodes::on_sqlite(4);
    let counters = Counters::new(COUNTERS);
    let doors = nodes.doors();
    let retries = Retries::default();
    let mut drains = Vec::new();
    std::thread::scope(|threads| {
        for first in 0..CLIENTS {
            let (counters, doors, retries) = (&counters, &doors, &retries);
            threads.spawn(move || retries.drive(counters, &client(), doors, first * 1000));
        }
        let _loaded = WhileLoaded(&counters);
        for place in 0..nodes.count() {
            std::thread::sleep(GAP);
            let begun = Instant::now();
            drain(&nodes, place);
            nodes.wait_ended(place);
            drains.push(begun.elapsed());
            nodes.revive();
            nodes.all_ready();
        }
        std::thread::sleep(GAP);
    });
    counters.check(&client(), &mut nodes);
    let figures = counters.figures();
    let repeated = retries.repeated.load(Ordering::Relaxed);
    let longest = Duration::from_millis(retries.longest_millis.load(Ordering::Relaxed));
    println!("{name}: {figures}; {repeated} attempts repeated, the longest call with its retries took {longest:?}");
    println!("{name}: the drains took {drains:?}");
    assert!(figures.saved > 100, "hardly any load: {figures}");
    assert_eq!(figures.doubts, 0, "a call that is not safe to retry: {figures}");
}

fn client() -> Client {
    Client::new(Duration::from_secs(10), Duration::from_secs(30))
}

#[test]
fn a_rolling_restart_by_sigterm_loses_no_call_and_fails_none_that_is_retried() {
    let _machine = crate::alone();
    rolling_restart("SIGTERM", |nodes, place| nodes.signal(place, libc::SIGTERM));
}

#[test]
fn a_rolling_restart_by_greenroom_drain_loses_no_call_and_fails_none_that_is_retried() {
    let _machine = crate::alone();
    rolling_restart("greenroom drain", |nodes, place| {
        // By another node's door: the operator need not be at the one that leaves.
        let door = &nodes.doors()[(place + 1) % nodes.count()];
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["drain", &nodes.name(place), "--node", door, "--json"]);
        let output = command.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(r#""left":true"#), "{said}");
    });
}

const COUNTERS: usize = 60;
const CLIENTS: usize = 6;
const TRIES_MAX: usize = 500;
/// Between a refusal and the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two restarts.
const GAP: Duration = Duration::from_secs(1);
