//! A little life in the demo: users who chat and say that they are there, over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::tally::Tally;
use crate::door::{Answer, Door};

/// Lets users chat by the nodes' doors, each by the next one.
pub(super) fn chat(tally: &Arc<Tally>, doors: &[Door]) {
    for speaker in 0..SPEAKERS {
        speak(tally, doors, speaker, in_a_room);
    }
}

/// Lets people of two clusters meet on the plaza, each by the door of a cluster of their own.
pub(super) fn plaza(tally: &Arc<Tally>, doors: [Door; 2]) {
    for (speaker, door) in doors.into_iter().enumerate() {
        speak(tally, &[door], speaker, on_the_plaza);
    }
}

/// Says one thing after the other, in a thread of its own.
fn speak(tally: &Arc<Tally>, doors: &[Door], speaker: usize, say: fn(&Door, usize) -> Result<Answer, String>) {
    let (tally, doors) = (tally.clone(), doors.to_vec());
    std::thread::spawn(move || {
        let mut turn = speaker;
        while !tally.is_stopped() {
            turn += SPEAKERS;
            let began = Instant::now();
            let answered = say(&doors[turn / SPEAKERS % doors.len()], turn).is_ok_and(|answer| answer.status == 200);
            tally.count(began, u64::from(answered), u64::from(!answered));
            std::thread::sleep(PAUSE);
        }
    });
}

fn in_a_room(door: &Door, turn: usize) -> Result<Answer, String> {
    let user = USERS[turn % USERS.len()];
    let room = ROOMS[turn / 7 % ROOMS.len()];
    match turn % 4 {
        0 => door.call("chat_room", room, "post", &post(turn)),
        1 => door.call("chat_room", room, "read", "{}"),
        _ => door.call("presence", room, "heartbeat", &json!({ "user": user }).to_string()),
    }
}

fn on_the_plaza(door: &Door, turn: usize) -> Result<Answer, String> {
    match turn / SPEAKERS % 8 {
        0 => door.call("plaza_room", ROOMS[0], "post", &post(turn)),
        1 => door.call(
            "plaza_board",
            "chess",
            "won",
            &json!({ "player": USERS[turn % USERS.len()], "points": 1 }).to_string(),
        ),
        _ => door.call("plaza_room", ROOMS[0], "read", "{}"),
    }
}

fn post(turn: usize) -> String {
    json!({ "user": USERS[turn % USERS.len()], "text": LINES[turn / 4 % LINES.len()] }).to_string()
}

/// Callers at once.
const SPEAKERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);
const USERS: [&str; 5] = ["grace", "alan", "edsger", "barbara", "tony"];
const ROOMS: [&str; 3] = ["lobby", "backstage", "balcony"];
const LINES: [&str; 5] =
    ["anybody on stage?", "not my turn yet", "break a leg", "who has the script?", "five minutes, please"];
