//! `greenroom bench`: its options, and the run.

mod geo;
mod heartbeat;
mod host;
mod options;
mod presence;

use std::fs::OpenOptions;
use std::path::Path;
use std::process::ExitCode;

pub use self::geo::{Api, At, GeoOptions, Instances, Ops};
pub use self::heartbeat::{BeatThreads, Block, HeartbeatOptions};
pub use self::host::{Echo, Form, HostOptions, Sdk};
pub use self::options::{Bench, Durability, Mode, Workload, duration};
pub use self::presence::{Graph, Locality, PresenceOptions};
use crate::driver::{self, Plan};
use crate::{floor, hosts, output, plot};

/// Runs one workload as the command line says, and prints what came of it. Failure is an error, a lost call, or a run
/// that did not come to its end.
pub fn run(bench: Bench) -> ExitCode {
    if let Some(peer) = bench.peer {
        return exit(floor::serve(peer).map_err(|error| error.to_string()));
    }
    if let Some(echo) = bench.host.echo {
        return exit(hosts::serve(echo));
    }
    exit(measure(&bench))
}

/// Runs one workload and gives the JSON document of 04-workloads: `workload`, `version`, `params`, `results`, `host`,
/// `seconds`.
///
/// # Errors
/// What kept the workload from its end, as a message for people.
pub fn document(bench: &Bench) -> Result<serde_json::Value, String> {
    let plan = Plan::of(bench)?;
    let outcome = driver::run(&plan)?;
    Ok(output::document(&plan, &outcome))
}

fn measure(bench: &Bench) -> Result<(), String> {
    let plan = Plan::of(bench)?;
    let figures = bench.json.as_deref().filter(|file| *file != "-").map(Path::new);
    figures.into_iter().chain(bench.plot.as_deref()).try_for_each(check_place)?;
    let outcome = driver::run(&plan)?;
    let document = output::document(&plan, &outcome);
    match bench.json.as_deref() {
        Some("-") => println!("{document:#}"),
        Some(file) => {
            std::fs::write(file, format!("{document:#}\n")).map_err(|error| format!("cannot write {file}: {error}"))?;
            print!("{}", output::table(&document));
        }
        None => print!("{}", output::table(&document)),
    }
    if let Some(file) = &bench.plot {
        let page = plot::page(&document, &outcome);
        std::fs::write(file, page).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    outcome.verdict()
}

/// Refuses a file that cannot be written before the run that it is for, and leaves none for a run that fails.
fn check_place(file: &Path) -> Result<(), String> {
    let was_there = file.exists();
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    if !was_there {
        // Who cannot take it away has it empty until the run has ended.
        drop(std::fs::remove_file(file));
    }
    Ok(())
}

fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("greenroom bench: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_checked_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.json"), folder.path().join("old.json"));
        std::fs::write(&old, "{}").unwrap();
        assert_eq!((check_place(&new), check_place(&old)), (Ok(()), Ok(())));
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "{}");
        let refused = check_place(&folder.path().join("none/new.json")).unwrap_err();
        assert!(refused.contains("none/new.json"), "{refused}");
    }
}
