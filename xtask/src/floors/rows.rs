//! The rows: what is run, what counts of it, and what is wanted.

use serde_json::Value;

/// One figure and its goal.
pub(super) struct Row {
    /// As the command line names it.
    pub(super) name: &'static str,
    /// What the figure is, with its unit.
    pub(super) what: &'static str,
    pub(super) runs: &'static [Words],
    /// The figure of one round: of the floor's results, and of those of the runs.
    pub(super) figure: fn(&Value, &[&Value]) -> Option<f64>,
    pub(super) goal: Goal,
}

/// Words behind `greenroom bench`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Words {
    pub(super) words: &'static [&'static str],
    /// Whether nodes speak TLS to each other.
    pub(super) is_secured: bool,
}

/// What is wanted.
#[derive(Clone, Copy)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// In the worst of the rounds.
    AlwaysAtLeast(f64),
}

/// Stands for the echo by Go's net/http.
pub(super) const NET_HTTP: &str = "NET_HTTP";

/// All of them.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "one-way-1",
        what: "local one-way, 1 sender to 1 actor, M/s",
        runs: &[plain(&["tell", "--mode", "local", "--senders", "1", "--actors", "1", "--duration", "2s"])],
        figure: |_, runs| millions(runs),
        goal: Goal::AtLeast(20.0),
    },
    Row {
        name: "one-way-2",
        what: "local one-way, 2 to 2, M/s",
        runs: &[plain(&["tell", "--mode", "local", "--senders", "2", "--actors", "2", "--duration", "2s"])],
        figure: |_, runs| millions(runs),
        goal: Goal::AtLeast(20.0),
    },
    Row {
        name: "one-way-64",
        what: "local one-way, 64 to 64, M/s",
        runs: &[plain(&["tell", "--mode", "local", "--senders", "64", "--actors", "64", "--duration", "2s"])],
        figure: |_, runs| millions(runs),
        goal: Goal::AtLeast(20.0),
    },
    Row {
        name: "send",
        what: "local one-way pairs by calls, 64 pairs",
        runs: &[SEND, CALL],
        figure: |_, runs| ratio(at(runs.first()?, "/messages_per_s"), at(runs.get(1)?, "/messages_per_s")),
        goal: Goal::AtLeast(1.0),
    },
    Row {
        name: "send-window",
        what: "local one-way pairs, 100 in flight each, M/s",
        runs: &[plain(&["ping-pong", "--mode", "local", "--style", "send", "--window", "100", "--duration", "2s"])],
        figure: |_, runs| millions(runs),
        goal: Goal::AtLeast(30.0),
    },
    Row {
        name: "distributed",
        what: "64 pairs on two nodes: twice the pipelined TCP floor by it",
        runs: &[BETWEEN],
        figure: |floor, runs| {
            ratio(at(floor, "/tcp_pipelined_per_s").map(|rate| 2.0 * rate), at(runs.first()?, "/messages_per_s"))
        },
        goal: Goal::AtMost(1.5),
    },
    Row {
        name: "tell",
        what: "one-way on two nodes: the one-way TCP floor by it",
        runs: &[plain(&["tell", "--mode", "distributed", "--nodes", "2", "--duration", "3s"])],
        figure: |floor, runs| ratio(at(floor, "/tcp_one_way_per_s"), at(runs.first()?, "/messages_per_s")),
        goal: Goal::AtMost(2.0),
    },
    Row {
        name: "sort",
        what: "sort of 12000, k activations/s, the worst",
        runs: &[plain(&["sort", "--size", "12000", "--duration", "3s"])],
        figure: |_, runs| at(runs.first()?, "/activations_per_s").map(|rate| rate / 1e3),
        goal: Goal::AlwaysAtLeast(300.0),
    },
    Row {
        name: "idle",
        what: "bytes an actor, of 1,000,000",
        runs: &[plain(&["idle"])],
        figure: |_, runs| at(runs.first()?, "/bytes_per_actor"),
        goal: Goal::AtMost(320.0),
    },
    Row {
        name: "store",
        what: "SQLite store, writes by the raw client's",
        runs: &[plain(&["store", "--duration", "8s"])],
        figure: |_, runs| at(runs.first()?, "/ratio"),
        goal: Goal::AtLeast(0.9),
    },
    Row {
        name: "reliable-hop",
        what: "idle reliable hop p50 by 1.5 syncs and 0.1 ms",
        runs: &[plain(&["reliable-latency", "--pairs", "1", "--duration", "2s"])],
        figure: |floor, runs| {
            ratio(at(runs.first()?, "/latency_us/p50"), at(floor, "/sync_us/p50").map(|sync| 1.5 * sync + 100.0))
        },
        goal: Goal::AtMost(1.0),
    },
    Row {
        name: "reliable-hops",
        what: "reliable hops of 64 pairs, k/s",
        runs: &[plain(&["reliable-latency", "--pairs", "64", "--duration", "3s"])],
        figure: |_, runs| at(runs.first()?, "/hops_per_s").map(|rate| rate / 1e3),
        goal: Goal::AtLeast(25.0),
    },
    Row {
        name: "reliable-calls",
        what: "calls under keys through the door, k/s",
        runs: &[plain(&["reliable-calls"])],
        figure: |_, runs| at(runs.first()?, "/calls_per_s").map(|rate| rate / 1e3),
        goal: Goal::AtLeast(20.0),
    },
    Row {
        name: "reliable-create",
        what: "creations by 64 callers to those by one",
        runs: &[CREATE],
        figure: |_, runs| ratio(at(runs.first()?, "/parallel_per_s"), at(runs.first()?, "/sequential_per_s")),
        goal: Goal::AtLeast(20.0),
    },
    Row {
        name: "reliable-create-syncs",
        what: "device syncs of one creation",
        runs: &[CREATE],
        figure: |_, runs| {
            let goals = runs.first()?["goals"].as_array()?;
            goals.iter().find(|goal| goal["goal"] == "device syncs of a creation")?["seen"].as_f64()
        },
        goal: Goal::AtMost(2.0),
    },
    Row {
        name: "pool-server",
        what: "one pool of 10000: a resource in commits",
        runs: &[plain(&["pool-server"])],
        figure: |_, runs| {
            let rows = runs.first()?["rows"].as_array()?;
            let most = rows.iter().filter(|row| row["shape"] == "one pool");
            most.max_by_key(|row| row["resources"].as_u64())?["commits_each"].as_f64()
        },
        goal: Goal::AtMost(8.0),
    },
    Row {
        name: "order",
        what: "versioned, linearizable: CPU of a step, us",
        runs: &[ORDER],
        figure: |_, runs| {
            let row = ordered(runs.first()?, "versioned_linearizable")?;
            let steps = row["steps_per_s"].as_f64()? * ORDER_SECONDS;
            ratio(row["cpu_seconds"].as_f64().map(|seconds| seconds * 1e6), Some(steps))
        },
        goal: Goal::AtMost(50.0),
    },
    Row {
        name: "order-mixed",
        what: "versioned: mixed steps by linearizable ones",
        runs: &[ORDER],
        figure: |_, runs| at(runs.first()?, "/ratio_to_versioned_linearizable"),
        goal: Goal::AtLeast(1.5),
    },
    Row {
        name: "door",
        what: "door by net/http, calls a CPU second, 64 connections",
        runs: &[DOOR],
        figure: |_, runs| at(runs.first()?, "/ratio_per_cpu_second"),
        goal: Goal::AtLeast(1.5),
    },
    Row {
        name: "door-alone",
        what: "door, one connection: p99, ms",
        runs: &[DOOR_ALONE],
        figure: |_, runs| at(runs.first()?, "/latency_us/p99").map(|us| us / 1e3),
        goal: Goal::AtMost(0.6),
    },
    Row {
        name: "tls",
        what: "64 pairs on two nodes: TLS by plain",
        runs: &[Words { is_secured: true, ..BETWEEN }, BETWEEN],
        figure: |_, runs| ratio(at(runs.first()?, "/messages_per_s"), at(runs.get(1)?, "/messages_per_s")),
        goal: Goal::AtLeast(0.7),
    },
];

const CALL: Words = plain(&["ping-pong", "--mode", "local", "--duration", "2s"]);
const SEND: Words = plain(&["ping-pong", "--mode", "local", "--style", "send", "--duration", "2s"]);
const BETWEEN: Words = plain(&["ping-pong", "--mode", "distributed", "--duration", "3s"]);
const CREATE: Words = plain(&["reliable-create", "--duration", "6s"]);
const DOOR: Words = plain(&["door", "--pairs", "64", "--duration", "6s", "--beside", NET_HTTP]);
const DOOR_ALONE: Words = plain(&["door", "--pairs", "1", "--duration", "2s"]);
const ORDER: Words =
    plain(&["order", "--api", "versioned", "--ops", "mixed", "--robots", "1000", "--think", "1ms", "--duration", "5s"]);
const ORDER_SECONDS: f64 = 5.0;

const fn plain(words: &'static [&'static str]) -> Words {
    Words { words, is_secured: false }
}

fn at(results: &Value, path: &str) -> Option<f64> {
    results.pointer(path)?.as_f64()
}

fn ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other.filter(|other| *other > 0.0)?)
}

/// Messages of the first run, in millions a second.
fn millions(runs: &[&Value]) -> Option<f64> {
    at(runs.first()?, "/messages_per_s").map(|rate| rate / 1e6)
}

/// What a run of `order` says of one of its settings.
fn ordered<'a>(results: &'a Value, setting: &str) -> Option<&'a Value> {
    results["runs"].as_array()?.iter().find(|row| row["run"] == setting)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
    }

    #[test]
    fn a_figure_is_made_of_the_floor_and_of_a_run() {
        let row = ROWS.iter().find(|row| row.name == "distributed").expect("there is one");
        let (floor, run) = (json!({"tcp_pipelined_per_s": 600.0}), json!({"messages_per_s": 800.0}));
        assert_eq!((row.figure)(&floor, &[&run]), Some(1.5));
        assert_eq!((row.figure)(&floor, &[&json!({})]), None);
    }
}
