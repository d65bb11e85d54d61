//! `greenroom reliable`: what an operator sees of reliable actors on real nodes, and does about messages whose turns fail.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bank::Bank;
use crate::nodes::Nodes;

/// What a command printed; it must succeed.
fn done(node: &str, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(node, args);
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("it prints text")
}

/// What a command said; it must fail.
fn refused(node: &str, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(node, args);
    assert!(!status.success(), "{args:?}: {}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).expect("it says text")
}

fn run(node: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.arg("reliable").args(args).args(["--node", node]);
    command.output().expect("the program runs")
}

/// The parked messages, when there are so many.
fn parked(node: &str, wanted: usize) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let output = run(node, &["parked", "--json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match shown.as_array() {
            Some(parked) if parked.len() == wanted => return parked.clone(),
            _ => assert!(begun.elapsed() < HANG, "not {wanted} messages are parked: {shown}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Where a parked message lies, as commands take it.
fn place(parked: &Value) -> String {
    format!("{}:{}", parked["partition"], parked["slot"].as_str().expect("it has a slot"))
}

/// A number at a node's `/metrics`.
fn metric(door: &str, name: &str) -> f64 {
    let page = ureq::get(format!("http://{door}/metrics")).call().expect("there is a page");
    let page = page.into_body().read_to_string().expect("it is text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not at /metrics:\n{page}")).parse().expect("it is a number")
}

#[test]
fn a_poisoned_message_is_parked_and_retried_when_its_cause_is_gone_and_another_dropped() {
    let _machine = crate::alone();
    let nodes = Nodes::with_journal(2);
    let (doors, bank) = (nodes.doors(), Bank::new(nodes.doors()));
    let (one, other) = (&*doors[0], &*doors[1]);
    let call = |wallet: u64, method: &str, arguments: Value| {
        let begun = Instant::now();
        loop {
            match bank.call(0, wallet, method, &arguments, None) {
                Some(answer) => return answer,
                None => assert!(begun.elapsed() < HANG, "wallet {wallet} does not answer"),
            }
        }
    };
    let got = |wallet: u64| {
        let shown = call(wallet, "look", json!({}));
        (shown["balance"].as_i64().expect("it has a balance"), shown["got"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(done(one, &["parked"]), "nothing is parked\n");
    call(2, "freeze", json!({}));
    call(1, "pay", json!({ "order": "first", "to": "2", "amount": 5 }));
    call(1, "pay", json!({ "order": "second", "to": "2", "amount": 70 }));
    let lying = parked(one, 2);
    assert_eq!(parked(other, 2), lying, "each node shows the same");
    for message in &lying {
        assert_eq!((&message["from"], &message["to"]), (&json!("wallet/1"), &json!("wallet/2")), "{message}");
        let error = message["error"].as_str().unwrap_or_default();
        assert_eq!(message["method"], "take");
        assert!(error.contains("wallet/2 is frozen; thaw it"), "{error}");
    }
    let listed = done(one, &["parked"]);
    assert!(listed.contains(&place(&lying[0])) && listed.contains("wallet/2.take\tfrom wallet/1"), "{listed}");
    assert_eq!(got(2), (0, 0), "nothing of them is done");

    call(2, "thaw", json!({}));
    // They lie in their order.
    let (first, second) = (place(&lying[0]), place(&lying[1]));
    assert_eq!(done(other, &["retry", &first]), "retried wallet/2.take\n");
    assert_eq!(done(one, &["drop", &second]), "dropped wallet/2.take\n");
    parked(one, 0);
    let begun = Instant::now();
    while got(2).1 == 0 {
        assert!(begun.elapsed() < HANG, "what was retried is not done");
    }
    assert_eq!(got(2), (5, 1), "the one that was retried, once");
    assert_eq!(got(1), (-75, 0), "what was dropped is gone with its money");
    for verb in ["retry", "drop"] {
        let said = refused(one, &[verb, &first]);
        assert!(said.contains("no message is parked at") && said.contains("greenroom reliable parked"), "{said}");
    }
}

#[test]
fn partitions_actors_and_metrics_are_shown_and_errors_name_the_remedy() {
    let _machine = crate::alone();
    let nodes = Nodes::with_journal(2);
    let (doors, bank) = (nodes.doors(), Bank::new(nodes.doors()));
    let node = &*doors[0];
    let begun = Instant::now();
    while bank.call(0, 1, "pay", &json!({ "order": "only", "to": "2", "amount": 5 }), Some("only")).is_none() {
        assert!(begun.elapsed() < HANG, "it is not paid");
    }
    while bank.call(1, 2, "look", &json!({}), None).is_none_or(|shown| shown["balance"] != 5) {
        assert!(begun.elapsed() < HANG, "it has not arrived");
    }
    let shown = loop {
        let shown: Value = serde_json::from_str(&done(node, &["partitions", "--json"])).expect("it is JSON");
        let rows = shown.as_array().map_or(&[][..], Vec::as_slice);
        let owned =
            |name: String| rows.iter().filter(|row| row["node"] == name && row["epoch"].as_u64() > Some(0)).count();
        if owned(nodes.name(0)) + owned(nodes.name(1)) == 16 {
            break shown;
        }
        assert!(begun.elapsed() < HANG, "not each has an owner: {shown}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let commits: u64 = shown.as_array().into_iter().flatten().filter_map(|row| row["commits"].as_u64()).sum();
    assert!(commits >= 2, "{shown}");
    let table = done(node, &["partitions"]);
    assert_eq!(table.lines().count(), 18, "{table}");
    assert!(table.contains("answers to calls with idempotency keys are kept"), "{table}");
    assert!(table.starts_with("PARTITION\tNODE\tEPOCH\tACTORS\tWAITING\tOUTGOING"), "{table}");

    let actor: Value = serde_json::from_str(&done(node, &["actor", "wallet/2"])).expect("it is JSON");
    assert_eq!((&actor["actor"], &actor["fields"]["balance"]), (&json!("wallet/2"), &json!(5)), "{actor}");

    let sum = |name: &str| doors.iter().map(|door| metric(door, name)).sum::<f64>();
    assert_eq!(sum("greenroom_reliable_partitions"), 16.0);
    assert!(sum("greenroom_reliable_commits_total") >= 2.0 && sum("greenroom_reliable_turns_total") >= 2.0);
    assert!(sum("greenroom_reliable_commit_seconds_total") > 0.0);
    let begun = Instant::now();
    while sum("greenroom_reliable_waiting") + sum("greenroom_reliable_outgoing") > 0.0 {
        assert!(begun.elapsed() < HANG, "there is lag, and nothing on its way");
        std::thread::sleep(Duration::from_millis(100));
    }

    assert_eq!(done(node, &["waiting"]), "nothing waits\n");

    for (args, remedy) in [
        (&["actor", "wallet"][..], "name the actor as KIND/KEY"),
        (&["retry", "3"][..], "name the message as `greenroom reliable parked` does"),
        (&["drop", "3:1-1"][..], "`greenroom reliable parked` lists those that are"),
        (&["drop", "3:counted-1-1"][..], "`greenroom reliable waiting` lists those that do"),
        (&["waiting", "wallet"][..], "name the actor as KIND/KEY"),
        (&["waiting", "--journal", "sqlite:not-there.db"][..], "there is no file not-there.db"),
        (&["retry", "99:1-1"][..], "there are 16"),
    ] {
        let said = refused(node, args);
        assert!(said.contains(remedy), "{args:?}: {said}");
    }
}

#[test]
fn a_node_without_a_journal_says_so() {
    let _machine = crate::alone();
    let nodes = Nodes::on_sqlite(1);
    for args in [&["partitions"][..], &["parked"], &["waiting"], &["actor", "wallet/1"], &["drop", "3:1-1"]] {
        let said = refused(&nodes.doors()[0], args);
        assert!(said.contains("this node has no journal of reliable actors; ask one that hosts them"), "{said}");
    }
}

const HANG: Duration = Duration::from_secs(60);
