//! Looking at a cluster of processes by way of any of their doors.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
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

#[test]
fn any_door_tells_of_turns_lists_actors_and_ends_them_on_all_nodes() {
    let _machine = crate::alone();
    let nodes = Nodes::on_sqlite(3);
    let (doors, client) = (nodes.doors(), Client::new(HANG, HANG));
    let add = |key: usize| drop(client.call(&doors[key % doors.len()], key, "add", "{\"amount\":1}"));
    (0..KEYS).for_each(add);
    let listed = |said: &Value| -> BTreeSet<String> {
        let actors = said["actors"].as_array().expect("a list");
        actors.iter().map(|actor| actor["node"].as_str().expect("a name").to_owned()).collect()
    };
    let all = until(&doors[1], "/-/actors?kind=counter&limit=500&order=key", |said| said["matched"] == KEYS as u64);
    assert_eq!(listed(&all).len(), 3, "they are on all nodes: {all}");
    // Each that is called from now on is told, wherever it is.
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(HANG * 4)).build().into();
    let request = agent.get(format!("http://{}/-/tail?kind=counter&method=add", doors[0]));
    let answer = request.header("accept", "text/event-stream").call().expect("the door answers");
    let mut lines = BufReader::new(answer.into_body().into_reader()).lines().map_while(Result::ok);
    let mut next = |name: &str| -> Value {
        lines.find(|line| *line == format!("event: {name}")).expect("it goes on");
        let data = lines.next().expect("it goes on");
        serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON")
    };
    let mut followed = next("following");
    while followed["nodes"].as_array().map(Vec::len) != Some(3) {
        followed = next("following");
    }
    (0..KEYS).for_each(add);
    let mut told = BTreeSet::new();
    while told.len() < KEYS {
        told.insert(next("turn")["actor"].as_str().expect("a name").to_owned());
    }
    for actor in all["actors"].as_array().expect("a list") {
        let actor = actor["actor"].as_str().expect("a name");
        let url = format!("http://{}/-/actors/{actor}/deactivate", doors[2]);
        assert_eq!(agent.post(url).send_empty().expect("the door answers").status().as_u16(), 202);
    }
    until(&doors[1], "/-/actors?kind=counter", |said| said["matched"] == 0);
}

const KEYS: usize = 30;
/// Far more than an answer may take.
const HANG: Duration = Duration::from_secs(30);
