//! A node that is killed under load: calls end in time, and its actors answer from the others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::counters::{Client, Told};
use crate::nodes::Nodes;

/// An answered call: when it began, when it was answered, and by an actor on which node.
struct Answered {
    begun: Instant,
    at: Instant,
    node: String,
}

/// What the callers saw.
#[derive(Default)]
struct Seen {
    answers: BTreeMap<usize, Vec<Answered>>,
    /// What was said by calls that failed, and how often.
    failures: BTreeMap<String, u64>,
    longest: Duration,
}

impl Seen {
    /// Whether each actor has answered a call that began after `killed`.
    fn all_since(&self, killed: Instant) -> bool {
        let has_answered = |key| self.answers.get(&key).is_some_and(|all| all.iter().any(|one| one.begun > killed));
        (0..ACTORS).all(has_answered)
    }
}

#[test]
fn calls_end_in_time_and_every_actor_answers_soon_when_a_node_is_killed() {
    let _machine = crate::alone();
    let mut nodes = Nodes::on_sqlite(3);
    let doors = nodes.doors();
    let (seen, stopped) = (Mutex::new(Seen::default()), AtomicBool::new(false));
    let client = Client::new(TIME_LIMIT, HANG);
    // Every actor is somewhere before the load begins.
    let mut places = BTreeMap::new();
    for key in 0..ACTORS {
        let Told::Answer(node) = client.call(&doors[key % 3], key, "node", "{}") else {
            panic!("nothing is wrong yet")
        };
        places.insert(key, node.as_str().expect("a node's name").to_owned());
    }
    let killed = std::thread::scope(|threads| {
        for caller in 0..CALLERS {
            let (seen, stopped, doors) = (&seen, &stopped, &doors[1..]);
            threads.spawn(move || call_on(seen, stopped, doors, caller));
        }
        std::thread::sleep(Duration::from_secs(2));
        let killed = Instant::now();
        nodes.kill(0);
        while killed.elapsed() < WATCHED_MAX && !seen.lock().unwrap_or_else(PoisonError::into_inner).all_since(killed) {
            std::thread::sleep(Duration::from_millis(200));
        }
        stopped.store(true, Ordering::Relaxed);
        killed
    });
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    let moved: Vec<usize> = places.iter().filter(|(_, node)| *node == "node-0").map(|(key, _)| *key).collect();
    assert!(moved.len() > ACTORS / 10, "the killed node had actors: {places:?}");
    let mut recovery = Duration::ZERO;
    for key in 0..ACTORS {
        let first = seen.answers[&key].iter().filter(|answer| answer.begun > killed).map(|answer| answer.at).min();
        let first = first.unwrap_or_else(|| panic!("actor {key} did not answer again"));
        recovery = recovery.max(first - killed);
        assert!(seen.answers[&key].iter().all(|answer| answer.begun < killed || answer.node != "node-0"));
    }
    println!(
        "{} actors of {ACTORS} were on the killed node; all answered {:.2} s after the kill; the longest call took {:.2} s; \
         failures: {:#?}",
        moved.len(),
        recovery.as_secs_f64(),
        seen.longest.as_secs_f64(),
        seen.failures
    );
    assert!(!seen.failures.is_empty(), "calls were in flight");
    assert!(seen.longest < TIME_LIMIT + NOISE, "a call of {TIME_LIMIT:?} took {:?}", seen.longest);
}

/// Calls one actor after the other. Every failure says whether the call may have run: a client of it panics otherwise.
fn call_on(seen: &Mutex<Seen>, stopped: &AtomicBool, doors: &[String], caller: usize) {
    let client = Client::new(TIME_LIMIT, HANG);
    let mut turn = caller * 31;
    while !stopped.load(Ordering::Relaxed) {
        turn += 1;
        let (door, key) = (&doors[turn % doors.len()], turn % ACTORS);
        let begun = Instant::now();
        let told = client.call(door, key, "node", "{}");
        let at = Instant::now();
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.longest = seen.longest.max(at - begun);
            match told {
                Told::Answer(node) => {
                    let node = node.as_str().expect("a node's name").to_owned();
                    seen.answers.entry(key).or_default().push(Answered { begun, at, node });
                    continue;
                }
                Told::Not(what) => *seen.failures.entry(format!("did not run: {what}")).or_default() += 1,
                Told::Doubt(what) => *seen.failures.entry(format!("may have run: {what}")).or_default() += 1,
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

const ACTORS: usize = 90;
const CALLERS: usize = 24;
/// Of each call.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// What a busy machine may add to it.
const NOISE: Duration = Duration::from_secs(20);
/// When a client gives up a door that does not keep the limit.
const HANG: Duration = Duration::from_secs(30);
/// The promise is ten seconds; a busy machine gets more.
const WATCHED_MAX: Duration = Duration::from_secs(60);
