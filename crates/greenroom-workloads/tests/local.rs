//! Each workload in this process, small: what is counted must be true, whatever the time it takes.

use clap::Parser;
use greenroom_workloads::cli::{self, Bench};
use serde_json::Value;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    bench: Bench,
}

fn run(options: &str) -> Value {
    let arguments = std::iter::once("bench").chain(options.split_whitespace());
    let document = cli::document(&Program::parse_from(arguments).bench).expect("the run comes to its end");
    for part in ["workload", "version", "params", "results", "host", "seconds"] {
        assert!(!document[part].is_null(), "{options}: no {part}");
    }
    assert!(document["host"]["cores"].as_u64() > Some(0));
    for none in ["errors", "lost"] {
        assert_eq!(document["results"][none], 0, "{options}: {none}");
    }
    document["results"].clone()
}

fn assert_latency(results: &Value) {
    let at = |part: &str| results["latency_us"][part].as_f64().unwrap_or_else(|| panic!("no latency {part}"));
    assert!(at("mean") > 0.0);
    for [less, more] in [["p50", "p90"], ["p90", "p95"], ["p95", "p99"], ["p99", "p999"], ["p999", "max"]] {
        assert!(at(less) <= at(more), "{less} is above {more}");
    }
}

fn assert_talks(options: &str, messages: u64) {
    let results = run(options);
    assert_eq!(results["messages"], messages, "{options}");
    assert!(results["messages_per_s"].as_f64() > Some(0.0));
    assert_latency(&results);
}

#[test]
fn ping_pong_counts_every_ping_and_every_pong() {
    assert_talks("ping-pong --mode local --pairs 5 --rounds 40 --payload 16", 5 * 40 * 2);
    assert_talks("ping-pong --mode local --pairs 5 --rounds 40 --payload 16 --style send", 5 * 40 * 2);
}

#[test]
fn big_counts_every_message_of_everybody_to_everybody() {
    assert_talks("big --mode local --actors 7 --rounds 20", 7 * 6 * 20 * 2);
    assert_talks("big --mode local --actors 7 --rounds 20 --payload 100 --style send", 7 * 6 * 20 * 2);
}

#[test]
fn sort_sorts_with_two_new_actors_a_split() {
    let results = run("sort --mode local --size 100 --seed 7");
    assert_eq!(results["sorted"], true);
    // Lists of 3 and more are split: a tree of 100 has 127 of its nodes above or at the leaves.
    assert_eq!(results["activations"], 127);
    for figure in ["seconds", "activations_per_s"] {
        assert!(results[figure].as_f64() > Some(0.0), "{figure}");
    }
}

#[test]
fn tell_hears_everything_that_was_told() {
    let results = run("tell --senders 3 --actors 10 --rounds 2000");
    assert_eq!(results["messages"], 3 * 10 * 2000);
    assert!(results["messages_per_s"].as_f64() > Some(0.0));
}

#[test]
fn tell_to_one_actor_by_many_senders_is_never_refused() {
    let results = run("tell --senders 50 --actors 1 --rounds 500");
    assert_eq!(results["messages"], 50 * 500);
}

#[test]
fn idle_actors_are_found_again_as_they_were() {
    let results = run("idle --actors 2000");
    assert_eq!(results["activations"], 2000);
    assert_eq!(results["answers"], 2000);
    assert!(results["bytes_per_actor"].is_f64());
}

#[test]
fn a_duration_wins_over_the_number_of_rounds() {
    for workload in ["ping-pong --pairs 2", "ping-pong --pairs 2 --style send", "big --actors 3", "tell --actors 4"] {
        let results = run(&format!("{workload} --mode local --rounds 1 --duration 50ms"));
        assert!(results["messages"].as_u64() > Some(100), "{workload}: {results}");
    }
}

#[test]
fn a_store_is_measured_beside_its_floor_and_left_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let results = run(&format!("store --duration 800ms --store sqlite:{}", path.display()));
    for rate in ["reads_per_s", "writes_per_s", "commits_per_s", "commits_per_sync", "floor_writes_per_s", "ratio"] {
        assert!(results[rate].as_f64() > Some(0.0), "{rate}: {results}");
    }
    assert!(results["commits_per_sync"].as_f64() > Some(5.0), "256 commits at once share syncs: {results}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let left = runtime.block_on(async {
        let opened = greenroom_stores::open(&format!("sqlite:{}", path.display())).await.expect("it is there");
        opened.store.scan("", None, 10, std::time::Duration::from_secs(5)).await.expect("it answers")
    });
    assert!(left.items.is_empty(), "{left:?}");
    assert!(run("store --duration 80ms --store memory:")["ratio"].is_null(), "memory has no engine behind it");
}

#[test]
fn presence_counts_each_request_once_and_all_that_it_takes() {
    for pace in ["--rate 400", "--in-flight 3"] {
        let results = run(&format!("presence --mode local --players 100 --time-scale 600 --duration 3s {pace}"));
        assert_eq!(results["duplicated"], 0, "{results}");
        // Of a request, and of what it takes: a call of the game, and one of each of its eight players, with their answers.
        let [requests, messages] = ["requests", "messages"].map(|figure| results[figure].as_u64().expect("a count"));
        assert!(messages > 0 && messages % 18 == 0 && messages <= requests * 18, "{pace}: {results}");
        assert_eq!(results["remote_fraction"], 0.0, "there is one node");
        assert!(results["new_games"].as_u64() > Some(0), "games of two to three seconds end: {results}");
        assert_eq!(results["rows"].as_array().map(Vec::len), Some(2), "without the optimiser, and with it");
        for series in ["remote_fraction_over_time", "moves_over_time", "cpu_cores_over_time"] {
            assert_eq!(results[series].as_array().map(Vec::len), Some(3), "{series}");
        }
        assert_latency(&results);
    }
}

#[test]
fn players_who_talk_with_anybody_have_no_games() {
    let results = run("presence --mode local --players 50 --graph random --locality on --duration 2s --rate 400");
    assert_eq!((&results["new_games"], &results["duplicated"]), (&0.into(), &0.into()), "{results}");
    let [requests, messages] = ["requests", "messages"].map(|figure| results[figure].as_u64().expect("a count"));
    assert!(messages > 0 && messages % 16 == 0 && messages <= requests * 16, "{results}");
}

#[test]
fn players_of_a_simulated_world_come_to_their_games() {
    let options = "--players 80 --nodes 3 --rate 100 --duration 40s";
    let results = run(&format!("presence-sim {options} --locality both"));
    assert_eq!((&results["duplicated"], &results["lost"]), (&0.into(), &0.into()), "{results}");
    let remote = |leg: usize| results["rows"][leg]["remote"].as_f64().expect("a part");
    // Two thirds where nobody moves.
    assert!(remote(0) > 0.5 && remote(1) < 0.1, "{results}");
    assert!(results["moves"].as_u64() > Some(0) && results["cpu_seconds"].is_null(), "{results}");
    assert!(results["activations_max_by_mean"].as_f64() < Some(1.5), "{results}");
}

#[test]
fn who_has_nothing_to_gain_is_seldom_moved() {
    for graph in ["torn", "adversary"] {
        let options = "--players 30 --nodes 2 --rate 150 --duration 60s --locality on";
        let results = run(&format!("presence-sim --graph {graph} {options}"));
        let [requests, messages] = ["requests", "messages"].map(|figure| results[figure].as_u64().expect("a count"));
        assert!(messages > 0 && messages % 16 == 0 && messages <= requests * 16, "{results}");
        assert_eq!((&results["new_games"], &results["duplicated"]), (&0.into(), &0.into()), "{results}");
        let last = results["moves_per_1000_messages_by_quarter"]["quarter_4"].as_f64().expect("it has four");
        assert!(last < 3.0, "{graph}: {results}");
    }
}

#[test]
fn options_that_leave_nothing_to_run_are_refused_by_name() {
    let bench = Program::parse_from(["bench", "ping-pong", "--pairs", "0"]).bench;
    assert!(cli::document(&bench).is_err_and(|error| error.contains("--pairs 0")));
    for (option, value) in [("--mode", "distributed"), ("--rate", "0"), ("--in-flight", "0"), ("--duration", "1s")] {
        let bench = Program::parse_from(["bench", "presence", option, value]).bench;
        assert!(cli::document(&bench).is_err_and(|error| error.contains(option)), "{option} {value}");
    }
}

#[test]
fn each_actor_that_is_created_is_there_once() {
    let results = run("reliable-create --durability none --pairs 4 --duration 300ms");
    for rate in ["sequential_per_s", "parallel_per_s", "of_one_turn_per_s"] {
        assert!(results[rate].as_f64() > Some(0.0), "{rate}");
    }
    assert_eq!(results["duplicated"], 0);
    assert_eq!(results["goals"].as_array().map(Vec::len), Some(1), "memory is not synced: {results}");
}

#[test]
fn pools_of_every_shape_get_their_resources() {
    let results = run("pool-server --durability none --actors 60 --duration 50ms");
    let rows = results["rows"].as_array().expect("there are rows");
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().all(|row| row["seconds"].as_f64() > Some(0.0)));
    assert_eq!(results["duplicated"], 0);
}

#[test]
fn every_beat_is_served_or_counted_as_what_it_came_to() {
    let options = "heartbeat --rate 500 --duration 400ms --settle 100ms --actors 20 --threads 2";
    for (block, blocking) in [("0.5:1ms", None), ("1:1ms", Some(1)), ("0", Some(0))] {
        let results = run(&format!("{options} --block {block}"));
        let count = |name: &str| results[name].as_u64().unwrap_or_else(|| panic!("no {name}: {results}"));
        assert_eq!(count("offered"), count("served") + count("refused"), "{results}");
        assert!(count("served") > 0 && count("served_blocking") <= count("served"), "{results}");
        if let Some(all) = blocking {
            assert_eq!(count("served_blocking"), all * count("served"), "--block {block}");
        } else {
            assert_latency(&results);
        }
        let runs = results["runs"].as_array().expect("there are runs");
        assert_eq!(runs.iter().map(|run| &run["threads"]).collect::<Vec<_>>(), ["fused", "2"]);
        assert_eq!(runs[0]["pool_begun"], 0, "turns that block their shard need no pool: {results}");
        assert!(runs[1]["pool_begun"].as_u64() >= Some(count("served_blocking")), "{results}");
    }
}

#[test]
fn a_seed_decides_which_beats_come_and_which_of_them_block() {
    let counts = |seed: u32| {
        let options = "heartbeat --rate 1000 --duration 300ms --settle 1ms --actors 5 --block 0.5:10us --threads fused";
        let results = run(&format!("{options} --seed {seed}"));
        [results["offered"].clone(), results["served_blocking"].clone()]
    };
    assert_eq!(counts(1), counts(1));
    assert_ne!(counts(1), counts(2));
}

#[test]
fn beats_that_find_too_many_before_them_are_refused_and_counted() {
    let options = "heartbeat --threads fused --shards 1 --block 0 --work 200us --rate 200000 --duration 300ms";
    let arguments = std::iter::once("bench").chain(options.split_whitespace()).chain(["--settle", "1ms"]);
    let document = cli::document(&Program::parse_from(arguments).bench).expect("the run comes to its end");
    let count = |name: &str| document["results"][name].as_u64().expect(name);
    assert!(count("refused") > 0, "{document}");
    assert_eq!(count("offered"), count("served") + count("refused") + count("errors"), "{document}");
}

#[test]
fn a_heat_map_has_a_cell_for_each_number_of_shards_with_each_of_threads() {
    let results = run("heartbeat --heat-map --shards 2 --sweep-shards 1,2 --sweep-threads 1,3 --rate 300 \
                       --duration 200ms --settle 1ms --actors 10 --block 0.5:1ms");
    let cells = results["heat_map"].as_array().expect("there is a heat map");
    let at = |cell: &Value| {
        (cell["shards"].as_u64().expect("shards"), cell["threads"].as_str().expect("threads").to_owned())
    };
    let all: Vec<_> = cells.iter().map(at).collect();
    let wanted = |shards| ["fused", "1", "3", "auto"].map(|threads| (shards, threads.to_owned()));
    assert_eq!(all, [wanted(1), wanted(2)].concat());
    for cell in cells {
        assert!(cell["served_per_s"].as_f64() > Some(0.0) && cell["p99_us"].as_f64() > Some(0.0), "{cell}");
        assert_eq!(cell["pool_begun"] == 0, cell["threads"] == "fused", "{cell}");
    }
    assert_eq!(
        results["goals"].as_array().map(Vec::len),
        Some(3),
        "one beside fused, and one for each line: {results}"
    );
}

#[test]
fn what_heartbeat_cannot_do_is_refused_by_name() {
    for (options, named) in [
        ("--rate 0", "--rate"),
        ("--rate=-1", "--rate"),
        ("--rate inf", "--rate"),
        ("--nodes 2", "--nodes"),
        ("--actors 0", "--actors 0"),
        ("--rate 0.001 --duration 1ms --settle 1ms", "--duration"),
    ] {
        let arguments = ["bench", "heartbeat"].into_iter().chain(options.split_whitespace());
        let said = cli::document(&Program::parse_from(arguments).bench).expect_err(options);
        assert!(said.contains(named), "{options}: {said}");
    }
    for options in ["--block 2:1ms", "--block 0.1", "--threads staged", "--work 5", "--sweep-threads 0", "--repeat 0"] {
        let arguments = ["bench", "heartbeat"].into_iter().chain(options.split_whitespace());
        let said = Program::try_parse_from(arguments).map(|_| ()).expect_err(options).to_string();
        assert!(said.contains(options.split_whitespace().next().expect("it has a name")), "{options}: {said}");
    }
}
