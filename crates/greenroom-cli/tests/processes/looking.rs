//! Looking at a cluster of processes by way of any of their doors.

use std::time::Duration;

use serde_json::Value;

use crate::counters::Client;
use crate::nodes::Nodes;

fn get(door: &str, path: &str) -> Value {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(HANG)).build().into();
    let mut answer = agent.get(format!("http://{door}{path}")).call().expect("the door answers");
    serde_json::from_str(&answer.body_mut().read_to_string().expect("a text")).expect("JSON")
}

/// Asks until what is said is as `wanted`.
fn until(door: &str, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let said = get(door, path);
        if wanted(&said) {
            return said;
        }
        println!("not yet: {said}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn node<'a>(seen: &'a Value, name: &str) -> &'a Value {
    let nodes = seen["clusters"][0]["nodes"].as_array().expect("a list");
    nodes.iter().rev().find(|node| node["name"] == name).expect("a node of the cluster")
}

#[test]
fn any_door_answers_for_the_cluster_and_names_who_was_killed() {
    let _machine = crate::alone();
    let mut nodes = Nodes::on_sqlite(3);
    let (doors, client) = (nodes.doors(), Client::new(HANG, HANG));
    let mut added = 0_u64;
    for key in 0..KEYS {
        client.call(&doors[key % doors.len()], key, "add", "{\"amount\":1}");
        added += 1;
    }
    let answered = |said: &Value| said["silent"] == Value::Array(Vec::new());
    for door in &doors {
        let seen = until(door, "/-/overview?seconds=300", |seen| {
            let active = ["node-0", "node-1", "node-2"].map(|name| node(seen, name)["kinds"]["counter"].as_u64());
            answered(seen) && active.iter().flatten().sum::<u64>() == KEYS as u64
        });
        assert!(node(&seen, "node-1")["resident"].as_u64() > Some(0), "each says what memory it has: {seen}");
        let methods = until(door, "/-/methods?kind=counter", answered);
        let turns: u64 = methods["methods"].as_array().unwrap().iter().filter_map(|one| one["turns"].as_u64()).sum();
        assert!(turns >= added, "the turns of all nodes are added: {methods}");
        until(door, "/-/turns", answered);
    }
    let one = get(&doors[0], "/-/overview?nodes=node-2,nobody");
    assert_eq!(one["silent"][0]["node"], "nobody", "{one}");
    nodes.kill(2);
    let seen = until(&doors[0], "/-/overview", |seen| node(seen, "node-2")["answers"] == false);
    let named = seen["silent"].as_array().unwrap().iter().any(|silent| silent["node"] == "node-2");
    assert!(named || node(&seen, "node-2")["status"] == "dead", "{seen}");
    assert_eq!(node(&seen, "node-1")["answers"], true, "the page goes on: {seen}");
    nodes.revive();
    nodes.all_ready();
    until(&doors[1], "/-/overview", |seen| answered(seen) && node(seen, "node-2")["answers"] == true);
}

const KEYS: usize = 30;
/// Far more than an answer may take.
const HANG: Duration = Duration::from_secs(30);
