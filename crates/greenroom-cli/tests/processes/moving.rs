//! Actors that go from one process to another.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::nodes::Nodes;

/// What `greenroom` says, and whether it succeeds.
fn greenroom(args: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    let output = command.args(args).output().expect("the program starts");
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    (output.status.success(), said.trim().to_owned())
}

/// Calls a method of `chat_room/lobby`.
fn lobby(door: &str, method: &str, arguments: &str) -> String {
    let (done, said) = greenroom(&["call", "chat_room/lobby", method, arguments, "--node", door]);
    assert!(done, "{method}: {said}");
    said
}

fn wait_on(door: &str, node: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while !lobby(door, "node", "{}").contains(node) {
        assert!(Instant::now() < until, "it does not come to {node}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_room_that_migrates_keeps_what_was_said_and_one_whose_node_drains_does_too() {
    let _machine = crate::alone();
    let mut nodes = Nodes::on_sqlite(2);
    let doors = nodes.doors();
    for text in ["one", "two", "three"] {
        lobby(&doors[0], "post", &format!(r#"{{"user": "ada", "text": "{text}"}}"#));
    }
    let at = usize::from(lobby(&doors[0], "node", "{}").contains("node-1"));
    let other = 1 - at;
    // By the door of the node that it goes to, and back by the same.
    for place in [other, at, other] {
        let to = nodes.name(place);
        let (done, said) = greenroom(&["migrate", "chat_room/lobby", "--to", &to, "--node", &doors[other]]);
        assert!(done && said.ends_with(&format!("to {to}")), "it says what came of it: {said}");
        wait_on(&doors[0], &to);
    }
    assert_eq!(lobby(&doors[0], "post", r#"{"user": "bob", "text": "four"}"#), "4", "it goes on counting");
    let (done, said) = greenroom(&["migrate", "chat_room/attic", "--to", &nodes.name(at), "--node", &doors[at]]);
    assert!(done && said.contains("not active"), "{said}");
    let (done, said) = greenroom(&["drain", &nodes.name(other), "--node", &doors[at]]);
    assert!(done, "{said}");
    nodes.wait_ended(other);
    let read = lobby(&doors[at], "read", "{}");
    assert!(["one", "two", "three", "four"].iter().all(|text| read.contains(text)), "{read}");
}

#[test]
fn who_asks_for_a_move_that_cannot_be_is_told_why() {
    let _machine = crate::alone();
    let nodes = Nodes::on_sqlite(1);
    let doors = nodes.doors();
    let migrate = |actor: &str, to: &str| greenroom(&["migrate", actor, "--to", to, "--node", &doors[0]]);
    for (actor, to, why) in [
        ("chat_room/lobby", "nowhere", "node-0"),
        ("chat_rom/lobby", "node-0", "chat_room"),
        ("presence/home", "node-0", "migrate"),
        ("chat_room", "node-0", "KIND/KEY"),
    ] {
        let (done, said) = migrate(actor, to);
        assert!(!done && said.contains(why), "{actor} to {to}: {said}");
    }
}

#[test]
fn an_actor_is_looked_into_by_any_door_and_tells_where_it_is_and_what_it_did() {
    let _machine = crate::alone();
    let nodes = Nodes::on_sqlite(2);
    let doors = nodes.doors();
    for text in ["one", "two"] {
        lobby(&doors[0], "post", &format!(r#"{{"user": "ada", "text": "{text}"}}"#));
    }
    let at = lobby(&doors[0], "node", "{}").trim_matches('"').to_owned();
    for door in &doors {
        let (done, said) = greenroom(&["inspect", "chat_room/lobby", "--node", door]);
        assert!(done && said.starts_with(&format!("chat_room/lobby is ready on node {at}, thread 0")), "{said}");
        assert!(said.contains("no message waits"), "{said}");
        // Its last turns, the last one first.
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(" ago  ")).collect();
        let methods: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().nth(3)).collect();
        assert_eq!(methods, ["node", "post", "post"], "{said}");
    }
    let (done, said) = greenroom(&["inspect", "chat_room/lobby", "--json", "--node", &doors[0]]);
    let told: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(done && told["node"] == at.as_str() && told["history"].as_array().map(Vec::len) == Some(3), "{said}");
    let (done, said) = greenroom(&["inspect", "chat_room/attic", "--node", &doors[1]]);
    assert!(done && said.contains("is not active"), "{said}");
    let (done, said) = greenroom(&["inspect", "chat_rom/lobby", "--node", &doors[1]]);
    assert!(!done && said.contains("did you mean \"chat_room\"?"), "{said}");
}
