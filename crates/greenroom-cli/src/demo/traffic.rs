//! A little life in the demo: users who chat and say that they are there, over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::door::Door;

/// Steady calls to the nodes' doors, each by the next one.
pub(super) struct Traffic {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    stopped: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
    last_micros: AtomicU64,
}

impl Traffic {
    pub(super) fn start(doors: Vec<Door>) -> Self {
        let state = Arc::new(State::default());
        for speaker in 0..SPEAKERS {
            let (state, doors) = (state.clone(), doors.clone());
            std::thread::spawn(move || speak(&state, &doors, speaker));
        }
        Self { state }
    }

    pub(super) fn stop(&self) {
        self.state.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) -> u64 {
        self.state.answered.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.state.failed.load(Ordering::Relaxed)
    }

    pub(super) fn last_latency(&self) -> Duration {
        Duration::from_micros(self.state.last_micros.load(Ordering::Relaxed))
    }
}

fn speak(state: &State, doors: &[Door], speaker: usize) {
    let mut turn = speaker;
    while !state.stopped.load(Ordering::Relaxed) {
        turn += SPEAKERS;
        let door = &doors[turn / SPEAKERS % doors.len()];
        let user = USERS[turn % USERS.len()];
        let room = ROOMS[turn / 7 % ROOMS.len()];
        let began = Instant::now();
        let answer = match turn % 4 {
            0 => {
                let text = LINES[turn / 4 % LINES.len()];
                door.call("chat_room", room, "post", &json!({ "user": user, "text": text }).to_string())
            }
            1 => door.call("chat_room", room, "read", "{}"),
            _ => door.call("presence", room, "heartbeat", &json!({ "user": user }).to_string()),
        };
        match answer {
            Ok(answer) if answer.status == 200 => {
                state.answered.fetch_add(1, Ordering::Relaxed);
                let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                state.last_micros.store(micros, Ordering::Relaxed);
            }
            _ => {
                state.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Callers at once.
const SPEAKERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);
const USERS: [&str; 5] = ["grace", "alan", "edsger", "barbara", "tony"];
const ROOMS: [&str; 3] = ["lobby", "backstage", "balcony"];
const LINES: [&str; 5] =
    ["anybody on stage?", "not my turn yet", "break a leg", "who has the script?", "five minutes, please"];
