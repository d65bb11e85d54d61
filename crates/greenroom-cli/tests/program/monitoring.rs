//! The rules, the alerts and the board of `deploy/monitoring` name what nodes measure, and each alert has its page and its tests.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

#[test]
fn every_metric_that_is_named_is_one_of_a_living_node() {
    let page = metrics_of_a_node();
    let measured: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for file in ["records.yaml", "alerts.yaml", "board.json", "alerts_test.yaml"] {
        let text = read(file);
        let named = words(&text).filter(|word| word.starts_with("greenroom_") || word.starts_with("process_"));
        let named: BTreeSet<&str> = named.map(|word| word.strip_suffix("_bucket").unwrap_or(word)).collect();
        let unknown: Vec<_> = named.difference(&measured).collect();
        assert!(unknown.is_empty(), "{file} names what no node measures: {unknown:?}");
        assert!(named.len() >= 5, "{file} names {named:?} only");
    }
}

#[test]
fn every_recorded_series_that_is_named_is_recorded() {
    let records = read("records.yaml");
    let recorded: BTreeSet<&str> = records.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    for file in ["records.yaml", "alerts.yaml", "board.json"] {
        let text = read(file);
        let named: BTreeSet<&str> = words(&text).filter(|word| word.starts_with("greenroom:")).collect();
        let unknown: Vec<_> = named.difference(&recorded).collect();
        assert!(unknown.is_empty(), "{file} names what no rule records: {unknown:?}");
    }
}

#[test]
fn each_alert_has_a_section_of_the_runbook_and_a_test_of_it_firing_and_not() {
    let (alerts, tests) = (read("alerts.yaml"), read("alerts_test.yaml"));
    let runbook = fs::read_to_string(repository().join("docs/guide/runbook.md")).expect("there is one");
    let names: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    for name in &names {
        assert!(alerts.contains(&format!("runbook: docs/guide/runbook.md#{}\n", name.to_lowercase())), "{name}");
        assert!(runbook.contains(&format!("\n## {name}\n")), "the runbook has no section `## {name}`");
        assert!(
            tests.contains(&format!("- {{ alertname: {name}, eval_time: ")),
            "{name} is not tested where it does not hold"
        );
        assert!(tests.contains(&format!("- alertname: {name}\n")), "{name} is not tested where it holds");
    }
    let sections = runbook.lines().filter_map(|line| line.strip_prefix("## Greenroom"));
    assert_eq!(sections.count(), names.len(), "the runbook has a section of an alert that there is not");
}

#[test]
fn the_panels_of_the_board_have_ids_of_their_own_and_do_not_overlap() {
    let board: Value = serde_json::from_str(&read("board.json")).expect("JSON");
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in board["panels"].as_array().expect("panels") {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        let at = |side: &str| panel["gridPos"][side].as_u64().expect("a number");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(x < 24 && taken.insert((x, y)), "{} lies over another panel or the edge", panel["title"]);
            }
        }
    }
    assert!(ids.len() > 20);
}

#[test]
fn the_queries_of_the_board_are_ones_that_prometheus_reads() {
    let board: Value = serde_json::from_str(&read("board.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<_> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
    let mut rules = "groups:\n- name: board\n  rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        rules += &format!("  - record: board:{number}\n    expr: {}\n", Value::from(*query));
    }
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("board.yaml");
    fs::write(&file, rules).expect("it can be written");
    match Command::new("promtool").args(["check", "rules"]).arg(&file).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("SKIPPED: the board's queries: promtool does not start: {error}"),
    }
}

/// What a node says that has all there is to measure: two clusters, a journal, certificates, and a call.
fn metrics_of_a_node() -> String {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    for words in [&["certs", "ca", "certs"][..], &["certs", "node", "certs"]] {
        let made =
            Command::new(PROGRAM).args(words).current_dir(path).stdout(Stdio::null()).status().expect("it starts");
        assert!(made.success());
    }
    let config = "cluster = \"greenroom\"\nhttp_plain = true\n[geo]\nepoch = 1\n[geo.clusters.greenroom]\ngateways = []\n\
                  [geo.clusters.other]\ngateways = [\"127.0.0.1:1\"]\n\
                  [geo.kinds.wallet]\ninstances = \"per_cluster\"\n";
    fs::write(path.join("node.toml"), config).expect("it can be written");
    let mut node = Command::new(PROGRAM);
    node.args(["node", "--config", "node.toml", "--tls-dir", "certs", "--http", "127.0.0.1:0", "--journal", "memory:"]);
    node.current_dir(path).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = node.spawn().expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let line = lines.map_while(Result::ok).find(|line| line.contains("HTTP door")).expect("it joins its cluster");
    let door = line.rsplit(' ').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let posted = ureq::post(format!("{door}/chat_room/lobby/post")).send(r#"{"user":"ada","text":"hi"}"#);
    let page = ureq::get(format!("{door}/metrics")).call().and_then(|mut answer| answer.body_mut().read_to_string());
    let _ = child.kill();
    let _ = child.wait();
    posted.expect("a call");
    page.expect("a page of metrics")
}

/// The names in a text, as Prometheus has them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)))
}

fn read(file: &str) -> String {
    fs::read_to_string(repository().join("deploy/monitoring").join(file)).expect("it is in the repository")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
