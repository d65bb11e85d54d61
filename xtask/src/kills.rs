//! `cargo xtask kills`: money moves between node processes that are killed, and so is the journal's server.

use crate::step::{cargo, run as step};
use crate::test::EVERYTHING;

/// Runs the kill loop over the journals that `options` name, for so many minutes each.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (mut minutes, mut journals) = (1.0, Vec::new());
    for option in options.chunks(2) {
        match *option {
            ["--minutes", number] => {
                minutes = number.parse().map_err(|_| format!("--minutes wants a number, not `{number}`"))?;
            }
            ["--journal", name] => journals.push(journal(name)?),
            _ => return Err("usage: cargo xtask kills [--minutes N] [--journal sqlite|postgres|kafka]..".to_owned()),
        }
    }
    if journals.is_empty() {
        journals.extend(JOURNALS.map(|(_, test)| test));
    }
    let mut command = cargo();
    // As all tests are built, so that nothing is built twice.
    command.arg("test").args(EVERYTHING).args(["--test", "processes", "--"]);
    command.args(["--nocapture", "--exact"]).args(journals);
    command.env("GREENROOM_KILL_SECONDS", format!("{:.0}", 60.0 * minutes)).env("GREENROOM_ENGINES_REQUIRED", "1");
    step("kills", &mut command)
}

fn journal(name: &str) -> Result<&'static str, String> {
    let found = JOURNALS.iter().find(|(journal, _)| *journal == name);
    found
        .map(|(_, test)| *test)
        .ok_or_else(|| format!("there is no loop over `{name}`; take sqlite, postgres or kafka"))
}

/// The journals, and the test over each.
const JOURNALS: [(&str, &str); 3] = [
    ("sqlite", "reliable::each_payment_is_made_once_when_nodes_are_killed_in_a_loop"),
    ("postgres", "reliable::each_payment_is_made_once_over_postgres_when_nodes_and_server_are_killed"),
    ("kafka", "reliable::each_payment_is_made_once_over_kafka_when_nodes_and_broker_are_killed"),
];
