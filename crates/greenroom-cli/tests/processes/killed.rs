//! Every node killed again and again: what was acknowledged stays.

use std::time::{Duration, Instant};

use crate::counters::{Client, Counters, WhileLoaded};
use crate::nodes::Nodes;

/// Kills nodes for `lasting` while clients add to counters, and compares what is there then with what they were told.
fn kill_loop(name: &str, mut nodes: Nodes, lasting: Duration, mut meanwhile: impl FnMut(usize)) {
    let counters = Counters::new(COUNTERS);
    let doors = nodes.doors();
    let (mut kills, mut round) = (0, 0);
    std::thread::scope(|threads| {
        for first in 0..CLIENTS {
            let (counters, doors) = (&counters, &doors);
            threads.spawn(move || counters.drive(&client(), doors, first * 1000));
        }
        let _loaded = WhileLoaded(&counters);
        let begun = Instant::now();
        while begun.elapsed() < lasting {
            std::thread::sleep(GAPS[round % GAPS.len()]);
            round += 1;
            meanwhile(round);
            let victims = if round % ALL_EVERY == 0 { 0..nodes.count() } else { one(round % nodes.count()) };
            for place in victims.clone() {
                nodes.kill(place);
                kills += 1;
            }
            std::thread::sleep(DEAD[round % DEAD.len()]);
            nodes.revive();
        }
        // Callers go on until they are answered again.
        nodes.all_ready();
        std::thread::sleep(Duration::from_secs(1));
    });
    nodes.all_anew();
    counters.check(&client(), &mut nodes);
    let figures = counters.figures();
    println!("{name}: {kills} kills in {} s, none lost: {figures}", lasting.as_secs());
    assert!(figures.saved > 100, "hardly anything was acknowledged: {figures}");
    assert!(figures.longest < HANG, "a caller waited too long: {figures}");
}

fn one(place: usize) -> std::ops::Range<usize> {
    place..place + 1
}

fn client() -> Client {
    Client::new(Duration::from_secs(3), HANG)
}

/// How long the loop lasts: `GREENROOM_KILL_SECONDS`, or what suits every run of the tests.
fn lasting() -> Duration {
    let seconds = std::env::var("GREENROOM_KILL_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("GREENROOM_KILL_SECONDS is a number of seconds"));
    Duration::from_secs(seconds.unwrap_or(20))
}

#[test]
fn no_acknowledged_save_is_lost_when_every_node_is_killed_in_a_loop() {
    let _machine = crate::alone();
    kill_loop("sqlite", Nodes::on_sqlite(3), lasting(), |_| {});
}

#[cfg(feature = "postgres")]
#[test]
fn no_acknowledged_save_is_lost_when_postgres_is_restarted_between_the_kills() {
    let _machine = crate::alone();
    let Some(mut postgres) = crate::postgres::durable() else { return };
    let nodes = Nodes::on(3, postgres.url());
    let mut restarts = 0;
    kill_loop("postgres", nodes, lasting(), |round| {
        match round % RESTART_EVERY {
            2 => postgres.stop_fast(),
            4 => postgres.stop_immediate(),
            _ => return,
        }
        std::thread::sleep(DEAD[round % DEAD.len()]);
        postgres.restart().expect("it recovers");
        restarts += 1;
    });
    println!("postgres was restarted {restarts} times");
    assert!(restarts > 1, "fast and immediate");
}

const COUNTERS: usize = 30;
const CLIENTS: usize = 6;
/// Far more than a call may take.
const HANG: Duration = Duration::from_secs(30);
/// Between a restart and the next kill: shorter and longer than it takes until all answer again.
const GAPS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(7)];
/// Between a kill and the restart.
const DEAD: [Duration; 3] = [Duration::from_millis(0), Duration::from_millis(300), Duration::from_millis(1500)];
/// In every so-manieth round all nodes are killed at once.
const ALL_EVERY: usize = 5;
/// In every so many rounds the store is restarted once fast and once as by a crash.
#[cfg(feature = "postgres")]
const RESTART_EVERY: usize = 6;
