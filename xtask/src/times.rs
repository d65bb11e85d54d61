//! How long a run of all checks took: a line of JSON for each run, in a file that outlives the checkout.
//!
//! So one sees which step has grown: `jq -r '[.time, .commit, .total] | @tsv' ~/.cache/greenroom/engines/checks/times/runs.jsonl`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use crate::checks;
use crate::step::{root, times};

/// The time, by the system's clock, in seconds.
pub(crate) fn now() -> String {
    said(Command::new("date").args(["--utc", "+%FT%TZ"]))
}

/// Appends this run, which took `total` seconds, to the others.
pub(crate) fn keep(options: &[&str], has_passed: bool, total: f64) {
    let steps: Vec<Value> = times().into_iter().map(|(name, seconds)| json!([name, rounded(seconds)])).collect();
    let git = |arguments: &[&str]| said(Command::new("git").args(arguments).current_dir(root()));
    let run = json!({
        "time": now(),
        "commit": git(&["rev-parse", "HEAD"]),
        "is_changed": !git(&["status", "--porcelain"]).is_empty(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "processor": processor(),
        "load": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        "options": options,
        "has_passed": has_passed,
        "total": rounded(total),
        "steps": steps,
    });
    let Some(folder) = checks::folder("times") else {
        println!("==> no folder for the table of seconds; GREENROOM_ENGINES_CACHE names another one");
        return;
    };
    let file = folder.join("runs.jsonl");
    let appended = OpenOptions::new().create(true).append(true).open(&file);
    match appended.and_then(|mut runs| runs.write_all(format!("{run}\n").as_bytes())) {
        Ok(()) => println!("==> this table is kept in {}", file.display()),
        Err(error) => println!("==> this table is not kept: {}: {error}", file.display()),
    }
}

/// The model of the first processor.
fn processor() -> String {
    let all = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = all.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.to_owned())
}

/// The output of `command`, empty if there is none.
fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
