//! `cargo xtask kills`: money moves between node processes that are killed, and so is the journal's server; actors move between such nodes; and
//! money moves between actors in Python and in Go, and actors in TypeScript count, whose hosts are killed, frozen and cut off as well.

use crate::step::{cargo, run as step};
use crate::test::EVERYTHING;

/// Runs the kill loop over the journals that `options` name, or that of actors which move, for so many minutes each.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (mut minutes, mut loops, mut hosts) = (1.0, Vec::new(), false);
    let mut options = options;
    while let [option, rest @ ..] = options {
        options = rest.get(1..).unwrap_or_default();
        match (*option, rest) {
            ("--moving", _) => {
                loops.push(MOVING);
                options = rest;
            }
            ("--hosts", _) => {
                hosts = true;
                options = rest;
            }
            ("--minutes", [number, ..]) => {
                minutes = number.parse().map_err(|_| format!("--minutes wants a number, not `{number}`"))?;
            }
            ("--journal", [name, ..]) => loops.push(journal(name)?),
            _ => {
                let usage =
                    "usage: cargo xtask kills [--minutes N] [--journal sqlite|postgres|kafka].. [--moving] [--hosts]";
                return Err(usage.to_owned());
            }
        }
    }
    if hosts {
        crate::languages::kills(60.0 * minutes)?;
        if loops.is_empty() {
            return Ok(());
        }
    }
    if loops.is_empty() {
        loops.extend(JOURNALS.map(|(_, test)| test));
        loops.push(MOVING);
    }
    let mut command = cargo();
    // As all tests are built, so that nothing is built twice.
    command.arg("test").args(EVERYTHING).args(["--test", "processes", "--"]);
    command.args(["--nocapture", "--exact"]).args(loops);
    command.env("GREENROOM_KILL_SECONDS", format!("{:.0}", 60.0 * minutes)).env("GREENROOM_ENGINES_REQUIRED", "1");
    step("kills", &mut command)
}

fn journal(name: &str) -> Result<&'static str, String> {
    let found = JOURNALS.iter().find(|(journal, _)| *journal == name);
    found
        .map(|(_, test)| *test)
        .ok_or_else(|| format!("there is no loop over `{name}`; take sqlite, postgres or kafka"))
}

/// Actors that optimisers move, on nodes that are killed and restarted in turn.
const MOVING: &str =
    "storm::no_save_is_lost_when_nodes_are_killed_while_actors_move_and_a_restart_leaves_no_call_in_doubt";
/// The journals, and the test over each.
const JOURNALS: [(&str, &str); 3] = [
    ("sqlite", "reliable::each_payment_is_made_once_when_nodes_are_killed_in_a_loop"),
    ("postgres", "reliable::each_payment_is_made_once_over_postgres_when_nodes_and_server_are_killed"),
    ("kafka", "reliable::each_payment_is_made_once_over_kafka_when_nodes_and_broker_are_killed"),
];
