//! A node that was stopped for longer than its lease and goes on as if nothing had been.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::counters::{Client, Counters, Told, WhileLoaded};
use crate::nodes::Nodes;
use crate::postgres;

#[test]
fn a_deposed_node_cannot_overwrite_newer_state() {
    let _machine = crate::alone();
    let Some(postgres) = postgres::durable() else { return };
    let mut nodes = Nodes::on(3, postgres.url());
    let doors = nodes.doors();
    let counters = Counters::new(COUNTERS);
    let (victim, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let after = [(); 3].map(|()| AtomicUsize::new(0));
    std::thread::scope(|threads| {
        // Everybody's clients, and those of the victim: when it is stopped, their calls wait at its door.
        for first in 0..CLIENTS {
            let (counters, doors, stopped) = (&counters, &doors, &stopped);
            threads.spawn(move || counters.drive(&client(), doors, first * 1000));
            let (victim, after) = (&victim, &after);
            threads.spawn(move || {
                let client = client();
                while !counters.is_stopped() {
                    let was_stopped = stopped.load(Ordering::Relaxed);
                    let told = counters.add(&client, &doors[victim.load(Ordering::Relaxed)], first % COUNTERS);
                    if was_stopped {
                        let kind = match told {
                            Told::Answer(_) => 0,
                            Told::Not(_) => 1,
                            Told::Doubt(_) => 2,
                        };
                        after[kind].fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
        let _loaded = WhileLoaded(&counters);
        for _ in 0..ROUNDS {
            std::thread::sleep(Duration::from_secs(2));
            let place = host(&nodes, &doors);
            victim.store(place, Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(1));
            nodes.signal(place, libc::SIGSTOP);
            stopped.store(true, Ordering::Relaxed);
            let elsewhere: Vec<String> = doors.iter().filter(|door| **door != doors[place]).cloned().collect();
            taken_over(&counters, &elsewhere);
            nodes.signal(place, libc::SIGCONT);
            // What had waited at its door, and what still comes, is served by one who believes that all is as it was.
            std::thread::sleep(Duration::from_secs(2));
            stopped.store(false, Ordering::Relaxed);
            nodes.all_ready();
        }
    });
    nodes.all_anew();
    counters.check(&client(), &mut nodes);
    let [saved, refused, doubt] = after.map(AtomicUsize::into_inner);
    println!(
        "deposed {ROUNDS} times, none lost: {}; of the calls at a deposed node's door {saved} were answered, {refused} refused, \
         {doubt} in doubt",
        counters.figures()
    );
    assert!(saved + refused + doubt > 0, "the deposed node was called");
}

/// The place of the node that hosts the first counter.
fn host(nodes: &Nodes, doors: &[String]) -> usize {
    let until = Instant::now() + TAKEOVER_MAX;
    loop {
        if let Told::Answer(name) = client().call(&doors[0], 0, "node", "{}") {
            return nodes.place(name.as_str().expect("a node's name"));
        }
        assert!(Instant::now() < until, "the first counter does not answer");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the first counter has been added to several times at `doors`, which are not the stopped node's.
fn taken_over(counters: &Counters, doors: &[String]) {
    let until = Instant::now() + TAKEOVER_MAX;
    let mut adds = 0;
    while adds < 5 {
        if let Told::Answer(_) = counters.add(&client(), &doors[adds % doors.len()], 0) {
            adds += 1;
        }
        assert!(Instant::now() < until, "nobody took over from the stopped node");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Its calls wait at a stopped node's door until it goes on.
fn client() -> Client {
    Client::new(Duration::from_secs(5), Duration::from_secs(60))
}

const COUNTERS: usize = 8;
const CLIENTS: usize = 4;
const ROUNDS: usize = 3;
const TAKEOVER_MAX: Duration = Duration::from_secs(60);
