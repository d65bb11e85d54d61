//! `greenroom replay`: runs a schedule again that broke a test, and shows it: as text, step by step, as a page, as a diagram.

mod stepper;

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Args;
use serde::Deserialize;

use self::stepper::{Story, step};

/// Which schedule, and how it is shown.
#[derive(Args)]
pub(crate) struct ReplayCommand {
    /// The file that a failing test has written: target/explore/NAME.schedule
    file: PathBuf,
    /// Go through it step by step
    #[arg(long, conflicts_with_all = ["html", "mermaid"])]
    step: bool,
    /// Print where the page is
    #[arg(long, conflicts_with = "mermaid")]
    html: bool,
    /// Print the text of a Mermaid diagram
    #[arg(long)]
    mermaid: bool,
    /// The package's folder, if it is not where the file says
    #[arg(long, value_name = "FOLDER")]
    package: Option<PathBuf>,
}

/// What is read of the file; the test reads the rest.
#[derive(Deserialize)]
struct Saved {
    format: String,
    version: u32,
    test: String,
    folder: PathBuf,
    program: String,
}

/// Runs the test under the schedule, and shows what it did.
pub(crate) fn run(command: &ReplayCommand) -> Result<(), String> {
    let path = fs::canonicalize(&command.file).map_err(|error| told(&command.file, &error))?;
    let saved = read(&path)?;
    let folder = command.package.as_ref().unwrap_or(&saved.folder);
    if !folder.join("Cargo.toml").is_file() {
        return Err(format!("{} has no Cargo.toml: say with --package where the test's package is", folder.display()));
    }
    let shown = tempfile::tempdir().map_err(|error| format!("no folder for what is shown: {error}"))?;
    let story = shown.path().join("story.json");
    let output = test(folder, &saved)
        .env("GREENROOM_REPLAY", &path)
        .env("GREENROOM_STORY", &story)
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}; install Rust, or put it into PATH"))?;
    let Some(story) = fs::read_to_string(&story).ok() else { return Err(quiet(&saved, &output)) };
    let story: Story = serde_json::from_str(&story)
        .map_err(|error| format!("the test tells its schedule in a form that this program does not know: {error}"))?;
    let mut out = io::stdout().lock();
    let written = if command.step {
        step(&story, &mut io::stdin().lock(), &mut out)
    } else if command.mermaid {
        out.write_all(story.mermaid.as_bytes())
    } else if command.html {
        writeln!(out, "{}", story.page)
    } else {
        out.write_all(story.text.as_bytes()).and_then(|()| out.write_all(b"\n"))
    };
    // Who reads it may have seen enough.
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.to_string()) })
}

fn read(path: &Path) -> Result<Saved, String> {
    let len = fs::metadata(path).map_err(|error| told(path, &error))?.len();
    if len > BYTES_MAX {
        return Err(told(path, &format!("{len} bytes are too many for a schedule, which has {BYTES_MAX} at most")));
    }
    let text = fs::read_to_string(path).map_err(|error| told(path, &error))?;
    let saved: Saved = serde_json::from_str(&text).map_err(|error| {
        told(path, &format!("it is no schedule of a test ({error}); failing tests write them to target/explore"))
    })?;
    if saved.format != "greenroom schedule" || saved.version != 1 {
        let (format, version) = (&saved.format, saved.version);
        return Err(told(
            path,
            &format!("it is {format:?} version {version}; this program reads greenroom schedules of version 1"),
        ));
    }
    let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | ':' | '-'));
    let bad = [&saved.test, &saved.program].into_iter().find(|name| name.starts_with('-') || !is_name(name));
    bad.map_or(Ok(()), |name| Err(told(path, &format!("{name:?} is no name of a test"))))?;
    Ok(saved)
}

fn told(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

/// What runs the test alone.
fn test(folder: &Path, saved: &Saved) -> Command {
    let Saved { test, program, .. } = saved;
    let mut command = Command::new("cargo");
    if test == "main" && folder.join("examples").join(format!("{program}.rs")).is_file() {
        command.args(["run", "-q", "--manifest-path"]).arg(folder.join("Cargo.toml")).args(["--example", program]);
        return command;
    }
    command.args(["test", "-q", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let tests = folder.join("tests");
    if tests.join(format!("{program}.rs")).is_file() || tests.join(program).join("main.rs").is_file() {
        command.args(["--test", program]);
    }
    command.args(["--", test, "--exact", "--nocapture"]);
    command
}

/// Why nothing is shown.
fn quiet(saved: &Saved, output: &Output) -> String {
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().rev().take(LINES_MAX).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    };
    if !output.status.success() {
        return format!("{} could not be run:\n{}", saved.test, last(&output.stderr));
    }
    let has_run = String::from_utf8_lossy(&output.stdout).contains("\nrunning 1 test") || saved.test == "main";
    if !has_run {
        return format!(
            "{} is not there any more: it was renamed, taken away, or is behind a feature; run the tests again, and failing ones \
             write new files",
            saved.test
        );
    }
    format!("{} does not break under this schedule any more:\n{}", saved.test, last(&output.stdout))
}

/// Asks for a line; `None` at the end of what there is.
fn line(from: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    Ok((from.read_line(&mut line)? > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}

const BYTES_MAX: u64 = 16 << 20;
const LINES_MAX: usize = 30;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_test_that_is_gone_is_told_from_one_that_does_not_break_any_more() {
        let (format, folder) = (String::new(), PathBuf::new());
        let saved = Saved { format, version: 1, test: "bank::deposits".to_owned(), folder, program: "bank".to_owned() };
        let says = |stdout: &str| {
            let output = Output { status: ExitStatus::from_raw(0), stdout: stdout.into(), stderr: Vec::new() };
            quiet(&saved, &output)
        };
        let gone = says("\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n");
        assert!(gone.starts_with("bank::deposits is not there any more"), "{gone}");
        let mended = says("\nrunning 0 tests\n\nrunning 1 test\ndeposits: ok: 1 schedules\n");
        assert!(mended.starts_with("bank::deposits does not break under this schedule any more"), "{mended}");
    }
}
