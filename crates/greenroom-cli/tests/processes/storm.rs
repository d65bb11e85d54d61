//! Exchanges of actors on real nodes, of which some are killed and others restarted meanwhile.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::counters::{Client, Counters, Told, WhileLoaded};
use crate::nodes::Nodes;

/// Lets counters be used by others, by another one each season: so optimisers have reason to move them. What was refused is tried again at the next
/// door.
fn drive(counters: &Counters, doors: &[String], first: usize) {
    let (client, begun) = (client(), Instant::now());
    let mut turn = first;
    while !counters.is_stopped() {
        turn += 1;
        let key = turn * 7 % COUNTERS;
        let season = (begun.elapsed().as_millis() / SEASON.as_millis()) as usize;
        let by = format!("fan-{}", (key + season) % FANS);
        let mut attempt = 0;
        while let Told::Not(why) = counters.add_by(&client, &doors[(turn + attempt) % doors.len()], key, &by) {
            attempt += 1;
            assert!(attempt < TRIES_MAX || counters.is_stopped(), "refused {TRIES_MAX} times: {why}");
            std::thread::sleep(PAUSE_AFTER_REFUSAL);
        }
    }
}

fn client() -> Client {
    Client::new(CALL_LIMIT, HANG)
}

/// How many moves the nodes count together, as far as they answer.
fn moves(doors: &[String]) -> u64 {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(5)));
    let agent: ureq::Agent = config.build().into();
    let of = |door: &String| {
        let mut answer = agent.get(format!("http://{door}/-/optimiser/moves")).call().ok()?;
        let moved: Value = serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()?;
        moved.as_array()?.last()?["number"].as_u64()
    };
    doors.iter().filter_map(of).sum()
}

/// Waits until the optimisers have moved somebody, since now.
fn wait_for_moves(doors: &[String]) -> u64 {
    let (before, until) = (moves(doors), Instant::now() + MOVES_WITHIN);
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = moves(doors);
        if now > before {
            return now - before;
        }
        assert!(Instant::now() < until, "nobody has moved for {MOVES_WITHIN:?}");
    }
}

/// For how long: `GREENROOM_KILL_SECONDS`, or until a node was killed and one restarted.
fn lasting() -> Duration {
    let seconds = std::env::var("GREENROOM_KILL_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("GREENROOM_KILL_SECONDS is a number of seconds"));
    Duration::from_secs(seconds.unwrap_or_default())
}

#[test]
fn no_save_is_lost_when_nodes_are_killed_while_actors_move_and_a_restart_leaves_no_call_in_doubt() {
    let _machine = crate::alone();
    let mut nodes = Nodes::optimised(3);
    let counters = Counters::new(COUNTERS);
    let (doors, lasting) = (nodes.doors(), lasting());
    let (mut round, mut moved) = (0, 0);
    std::thread::scope(|threads| {
        for first in 0..CLIENTS {
            let (counters, doors) = (&counters, &doors);
            threads.spawn(move || drive(counters, doors, first * 1000));
        }
        let _loaded = WhileLoaded(&counters);
        let begun = Instant::now();
        while round < 2 || begun.elapsed() < lasting {
            moved += wait_for_moves(&doors);
            let place = round % nodes.count();
            let kills = round % 2 == 0;
            // What a kill has left in doubt was told long ago: nobody moves for ten seconds after it.
            let doubts = counters.figures().doubts;
            if kills {
                nodes.kill(place);
            } else {
                nodes.signal(place, libc::SIGTERM);
                nodes.wait_ended(place);
            }
            nodes.revive();
            nodes.all_ready();
            if !kills {
                std::thread::sleep(CALL_LIMIT);
                assert_eq!(counters.figures().doubts, doubts, "a call that was not safe to retry when a node left");
            }
            round += 1;
        }
    });
    counters.check(&client(), &mut nodes);
    let figures = counters.figures();
    println!("storm: {round} nodes killed or restarted, {moved} moves waited for, none lost: {figures}");
    assert!(figures.saved > 100, "hardly anything was acknowledged: {figures}");
}

const CLIENTS: usize = 4;
const COUNTERS: usize = 8;
const FANS: usize = 16;
/// So long a counter is used by one other.
const SEASON: Duration = Duration::from_secs(8);
/// A change of the cluster keeps exchanges away for ten seconds.
const MOVES_WITHIN: Duration = Duration::from_secs(600);
const HANG: Duration = Duration::from_secs(60);
const CALL_LIMIT: Duration = Duration::from_secs(3);
const TRIES_MAX: usize = 1000;
const PAUSE_AFTER_REFUSAL: Duration = Duration::from_millis(50);
