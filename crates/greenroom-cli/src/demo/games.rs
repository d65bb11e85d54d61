//! The clock of the arena: lets its matches be played, one after the other and all again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::tally::Tally;
use crate::arena::{MATCHES, Played};
use crate::door::Door;

/// Steady games in the arena.
pub(super) struct Games {
    clock: Arc<Clock>,
}

struct Clock {
    tally: Arc<Tally>,
    doors: Vec<Door>,
    nodes: Vec<String>,
    /// Matches that were played since the beginning.
    played: AtomicU64,
    /// How many of them had been when the players were last told to scatter.
    scatter_from: AtomicU64,
}

impl Games {
    /// Begins, with the doors of these nodes: each has a thread here that asks it.
    pub(super) fn start(tally: &Arc<Tally>, doors: Vec<Door>, nodes: Vec<String>) -> Self {
        let (threads, scatter_from) = (doors.len(), AtomicU64::new(u64::MAX));
        let clock = Arc::new(Clock { tally: tally.clone(), doors, nodes, played: AtomicU64::new(0), scatter_from });
        for at in 0..threads {
            let clock = clock.clone();
            std::thread::spawn(move || clock.run(at));
        }
        Self { clock }
    }

    /// Lets all players go to nodes by chance, when their matches are played next.
    pub(super) fn scatter(&self) {
        self.clock.scatter_from.store(self.clock.played.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Clock {
    fn run(&self, at: usize) {
        let mut next = Instant::now();
        while !self.tally.is_stopped() {
            self.play(at);
            // Who is late does not catch up.
            next = Instant::now().max(next + self.every());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    /// Lets some matches be played by the door `at`, or by another one if that does not answer.
    fn play(&self, at: usize) {
        let number = self.played.fetch_add(MATCHES_AT_ONCE, Ordering::Relaxed);
        let (round, first) = (number / u64::from(MATCHES), number % u64::from(MATCHES));
        let since = number.checked_sub(self.scatter_from.load(Ordering::Relaxed));
        let scatter = since.is_some_and(|since| since < u64::from(MATCHES));
        let nodes = if scatter { &self.nodes[..] } else { &[] };
        let order = json!({ "first": first, "count": MATCHES_AT_ONCE, "round": round, "scatter": nodes }).to_string();
        let began = Instant::now();
        let played = (0..self.doors.len()).find_map(|step| {
            let door = &self.doors[(at + step) % self.doors.len()];
            let answer = door.call("arena", "clock", "play", &order).ok().filter(|answer| answer.status == 200)?;
            serde_json::from_str::<Played>(&answer.body).ok()
        });
        match played {
            Some(Played { calls, failed }) => self.tally.count(began, calls.saturating_sub(failed), failed),
            None => self.tally.count(began, 0, 1),
        }
    }

    /// Time from one order of a thread to its next one.
    fn every(&self) -> Duration {
        ROUND * (MATCHES_AT_ONCE * self.doors.len() as u64) as u32 / MATCHES
    }
}

/// In which each match is played once: with eleven calls a match a little under 5,000 calls a second.
const ROUND: Duration = Duration::from_millis(4500);
const MATCHES_AT_ONCE: u64 = 16;
