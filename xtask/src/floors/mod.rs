//! `cargo xtask floors`: how far from its goals the program is on this machine, row by row, with the machine's own floor
//! measured in the same rounds.
//!
//! A round measures the floor, and then each row's runs once; what several rows need runs once for all of them. So what
//! a machine does meanwhile meets all rows, and ratios are of what was measured side by side.

mod rows;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use self::rows::{NET_HTTP, ROWS, Row, Words};
use self::table::Seen;
use crate::step::{cargo, root, run as step, target};

/// Measures the rows that `options` name, or all.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let asked = Asked::of(options)?;
    step("the program", cargo().args(["build", "--release", "--locked", "-p", "greenroom-cli"]))?;
    let built = target()?.join("release/greenroom");
    let here = Bench::of(&built)?;
    let beside = asked.beside.as_deref().map(Bench::of).transpose()?;
    let mut seen: Vec<Seen> = asked.rows.iter().map(|row| Seen::of(row)).collect();
    let mut failed = Vec::new();
    for round in 1..=asked.rounds {
        eprintln!("==> round {round} of {}", asked.rounds);
        // Who comes second in a round comes first in the next.
        let mut both: Vec<(bool, &Bench)> = beside.iter().map(|bench| (true, bench)).chain([(false, &here)]).collect();
        if round % 2 == 0 {
            both.reverse();
        }
        let floor = here.run(FLOOR)?;
        let mut runs = [BTreeMap::new(), BTreeMap::new()];
        for seen in &mut seen {
            for (is_beside, bench) in &both {
                let runs = &mut runs[usize::from(*is_beside)];
                match bench.figure(seen.row, &floor, runs) {
                    Ok(figure) => seen.add(*is_beside, figure),
                    Err(why) => failed.push(format!("{}: {why}", seen.row.name)),
                }
            }
        }
    }
    print!("{}", table::of(&seen, beside.is_some()));
    match failed[..] {
        [] => Ok(()),
        _ => Err(format!("these runs failed, and are in no figure:\n  {}", failed.join("\n  "))),
    }
}

/// What the command line asks for.
struct Asked {
    rounds: usize,
    /// Another program, such as one from before a change.
    beside: Option<PathBuf>,
    rows: Vec<&'static Row>,
}

impl Asked {
    fn of(options: &[&str]) -> Result<Self, String> {
        let mut asked = Self { rounds: ROUNDS, beside: None, rows: Vec::new() };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--rounds" => {
                    let count = options.next().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
                    asked.rounds = count.ok_or("--rounds takes a number above 0")?;
                }
                "--beside" => asked.beside = Some(options.next().ok_or("--beside takes another program")?.into()),
                name => match ROWS.iter().filter(|row| row.name.starts_with(name)).collect::<Vec<_>>() {
                    rows if rows.is_empty() || name.starts_with('-') => {
                        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                        return Err(format!("there is no row {name:?}; there are {}", names.join(", ")));
                    }
                    rows => asked.rows.extend(rows),
                },
            }
        }
        if asked.rows.is_empty() {
            asked.rows = ROWS.iter().collect();
        }
        Ok(asked)
    }
}

/// A program that can `bench`.
struct Bench {
    program: PathBuf,
    certificates: PathBuf,
}

impl Bench {
    fn of(program: &Path) -> Result<Self, String> {
        let certificates = target()?.join("floors/certs");
        let bench = Self { program: program.to_owned(), certificates };
        if !bench.certificates.join("node.pem").exists() {
            for what in ["ca", "node"] {
                let mut command = Command::new(&bench.program);
                command.args(["certs", what]).arg(&bench.certificates).stdout(Stdio::null());
                step("certificates", &mut command)?;
            }
        }
        Ok(bench)
    }

    /// What `row` comes to, with the runs of this round that are there already.
    fn figure(&self, row: &Row, floor: &Value, runs: &mut BTreeMap<Words, Value>) -> Result<f64, String> {
        for words in row.runs {
            if !runs.contains_key(words) {
                runs.insert(*words, self.run(*words)?);
            }
        }
        let documents: Vec<&Value> = row.runs.iter().map(|words| &runs[words]).collect();
        (row.figure)(floor, &documents).ok_or_else(|| "the run says nothing of it".to_owned())
    }

    /// Runs a workload, and gives its results.
    fn run(&self, words: Words) -> Result<Value, String> {
        let mut command = Command::new(&self.program);
        command.arg("bench").args(["--json", "-"]).current_dir(root());
        for word in words.words {
            match *word {
                NET_HTTP => command.arg(net_http()?),
                word => command.arg(word),
            };
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        if words.is_secured {
            command.env("GREENROOM_TLS_DIR", &self.certificates).env("GREENROOM_HTTP_PLAIN", "true");
        }
        let output = command.output();
        let output = output.map_err(|error| format!("{} could not start: {error}", self.program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`bench {}`: {}", words.words.join(" "), said.trim()));
        }
        let document: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`bench {}` printed no JSON: {error}", words.words.join(" ")))?;
        Ok(document["results"].clone())
    }
}

/// The echo by Go's net/http, built if it is not.
fn net_http() -> Result<PathBuf, String> {
    let program = target()?.join("floors/net-http");
    if !program.exists() {
        let mut build = Command::new("go");
        build.args(["build", "-C", "peers/net-http", "-o"]).arg(&program).arg(".");
        step("net/http (needs Go)", &mut build)?;
    }
    Ok(program)
}

const FLOOR: Words = Words { words: &["floor", "--duration", "6s"], is_secured: false };

/// Rounds, unless told otherwise; medians count.
const ROUNDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_asked_for_by_how_they_begin() {
        let asked = Asked::of(&["--rounds", "3", "reliable-create", "idle"]).expect("these are rows");
        let names: Vec<&str> = asked.rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["reliable-create", "reliable-create-syncs", "idle"]);
        assert_eq!(asked.rounds, 3);
    }

    #[test]
    fn a_row_that_is_not_there_is_an_error_that_names_those_that_are() {
        let why = Asked::of(&["idel"]).err().expect("no row begins so");
        assert!(why.contains("idle") && why.contains("\"idel\""), "{why}");
        assert!(Asked::of(&["--rounds", "0"]).is_err());
    }
}
