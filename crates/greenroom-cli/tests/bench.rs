//! `greenroom bench` over node processes: what is counted is true, and no node is left behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn bench(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.arg("bench").args(options.split_whitespace());
    command
}

fn results(options: &str) -> Value {
    let output = bench(options).args(["--json", "-"]).output().expect("the program starts");
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("standard output is the document, no more");
    assert_eq!((&document["results"]["errors"], &document["results"]["lost"]), (&0.into(), &0.into()), "{options}");
    document["results"].clone()
}

#[test]
fn every_workload_runs_on_node_processes() {
    for mode in ["virtual", "distributed"] {
        for style in ["call", "send"] {
            let pairs =
                results(&format!("ping-pong --mode {mode} --style {style} --pairs 4 --rounds 50 --payload 512"));
            assert_eq!(pairs["messages"], 4 * 50 * 2);
            let all = results(&format!("big --mode {mode} --style {style} --actors 6 --rounds 20"));
            assert_eq!(all["messages"], 6 * 5 * 20 * 2);
        }
        assert_eq!(results(&format!("sort --mode {mode} --size 500"))["sorted"], true);
        assert_eq!(results(&format!("tell --mode {mode} --nodes 2 --actors 8 --rounds 500"))["messages"], 2 * 8 * 500);
    }
    assert_eq!(results("idle --mode virtual --nodes 1 --actors 3000")["activations"], 3000);
}

#[test]
fn players_come_to_their_games_and_no_request_is_lost_on_the_way() {
    // A machine that is busy with other things needs more time for the first exchange.
    for seconds in [16, 32, 64, 128, 256] {
        let asked = format!("presence --nodes 2 --players 160 --rate 400 --duration {seconds}s --locality on");
        let results = results(&asked);
        assert_eq!((&results["duplicated"], &results["lost"]), (&0.into(), &0.into()), "{results}");
        assert!(results["messages"].as_u64() > Some(0) && results["moves_paid"].is_u64(), "{results}");
        if results["moves"].as_u64() > Some(0) {
            return;
        }
    }
    panic!("nobody has moved in eight minutes");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_run() {
    for option in ["--json", "--plot"] {
        let output =
            bench(&format!("idle --actors 10 {option} /nowhere/figures")).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("cannot write /nowhere/figures"), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing was measured");
    }
}

#[test]
fn a_simulated_world_is_not_warned_of_strangers() {
    let mut bench = bench("presence-sim --players 16 --nodes 2 --rate 40 --duration 2s --locality on --json -");
    let output = bench.env_remove("RUST_LOG").output().expect("the program starts");
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !warned.contains("INSECURE"), "{warned}");
}

#[test]
fn calls_of_actors_in_a_host_are_measured_beside_its_languages_floor() {
    for form in ["volatile", "persistent", "reliable"] {
        let results = results(&format!("host --sdk rust --form {form} --in-flight 4 --duration 400ms"));
        for figure in ["calls_per_s", "floor_calls_per_s", "ratio"] {
            assert!(results[figure].as_f64() > Some(0.0), "{form}: {figure} in {results}");
        }
        assert!(
            results["latency_us"]["p50"].as_f64() > Some(0.0) && results["host_cpu_us_per_call"].is_number(),
            "{results}"
        );
        assert_eq!(results["linked_ratio"].as_f64() > Some(0.0), form == "reliable", "{results}");
    }
}

#[test]
fn nothing_passes_between_two_clusters_faster_than_the_network() {
    let results = results("geo-latency --wan-rtt 60ms --store-rtt 5ms --rounds 2");
    let cells = results["cells"].as_array().expect("there are cells");
    let at = |row: &str, column: &str, access: &str| {
        let of = |cell: &&Value| cell["row"] == row && cell["column"] == column && cell["access"] == access;
        let cell = cells.iter().find(of).expect("it is in the figure");
        cell["irt"].as_f64().expect("it was measured")
    };
    for (here, there) in [("C", "N"), ("N", "C")] {
        let row = format!("volatile basic, single at {here}");
        for access in ["read", "write"] {
            for column in [format!("{here} first"), format!("{there} first"), format!("{there} repeat")] {
                assert!(at(&row, &column, access) >= 1.0, "{row}, {column}, {access}");
            }
        }
    }
    let far = "persistent basic, single at N";
    assert!(at(far, "N repeat", "write") >= 1.0, "a change goes to the far store");
    let apart = &results["apart"];
    assert_eq!(apart["was_doubled"], true, "both sides go on: {apart}");
    assert!(apart["one_instance_after_s"].is_number(), "and are one again: {apart}");
}

#[test]
fn updates_that_wait_for_a_far_store_go_there_together() {
    let results = results("geo-throughput --wan-rtt 100ms --robots 200 --duration 3s");
    assert!(results["ratio_to_basic_linearizable"].as_f64() > Some(0.0), "both were measured: {results}");
}

#[test]
fn no_more_is_sold_than_there_is_also_when_a_cluster_is_killed() {
    for options in ["", "--ops mixed", "--api basic"] {
        let order = format!("order --kill --wan-rtt 40ms --items 4 --stock 20 --robots 40 --duration 6s {options}");
        let results = results(&order);
        assert_eq!((&results["oversold"], &results["sales_lost"]), (&0.into(), &0.into()), "{options}: {results}");
        assert!(results["runs"][0]["sold"].as_u64() > Some(0), "{options}: {results}");
    }
}

#[test]
fn the_floor_is_measured_between_two_processes() {
    let floor = results("floor --duration 600ms");
    for rate in ["tcp_pipelined_per_s", "tcp_one_way_per_s", "mailbox_call_per_s", "write_mb_per_s"] {
        assert!(floor[rate].as_f64() > Some(0.0), "{rate}");
    }
    for latency in ["tcp_round_trip_us", "sync_us"] {
        assert!(floor[latency]["p50"].as_f64() > Some(0.0), "{latency}");
    }
}

#[test]
fn no_node_outlives_a_driver_that_is_killed() {
    let mut driver = bench("ping-pong --mode virtual --nodes 2 --duration 60s");
    let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let nodes = within("two nodes have started", || {
        let nodes = children(driver.id());
        (nodes.len() == 2).then_some(nodes)
    });
    driver.kill().expect("it is our child");
    driver.wait().expect("it is our child");
    within("the nodes have ended", || nodes.iter().all(|node| has_ended(*node)).then_some(()));
}

fn within<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// A process that nobody has waited for yet has ended, too.
fn has_ended(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.contains("State:") || status.contains("State:\tZ")
}
