//! The file of a schedule, which replays it, and where files are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A schedule in a file. Fields are added, never changed; what is not known is passed over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// The test, by its whole path.
    pub(crate) test: String,
    /// The package that it is in, and its folder.
    pub(crate) package: String,
    pub(crate) folder: String,
    /// The program of tests, without what the compiler adds to its name.
    pub(crate) program: String,
    pub(crate) schedule: String,
    pub(crate) violated: String,
    /// The names of the steps, by which a replay says where it differs.
    #[serde(default)]
    pub(crate) steps: Vec<String>,
}

impl Saved {
    pub(crate) fn new(schedule: &str, violated: &str, steps: Vec<String>) -> Self {
        let variable = |name: &str| env::var(name).unwrap_or_default();
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            test: test_path(),
            package: variable("CARGO_PKG_NAME"),
            folder: variable("CARGO_MANIFEST_DIR"),
            program: program().unwrap_or_default(),
            schedule: schedule.to_owned(),
            violated: violated.to_owned(),
            steps,
        }
    }

    /// Whether it is of the test that runs now.
    pub(crate) fn is_of_this_test(&self) -> bool {
        self.test == test_path()
    }
}

/// The whole path of the test that runs on this thread.
pub(crate) fn test_path() -> String {
    std::thread::current().name().unwrap_or("scenario").to_owned()
}

/// What the test that runs on this thread is called; of a program that is no test, its own name.
pub(crate) fn test_name() -> String {
    match greenroom_sim::test_name() {
        name if name == "main" => program().unwrap_or(name),
        name => name,
    }
}

/// What its files are called: tests of one name in several modules have files of their own.
pub(crate) fn file_name() -> String {
    match test_path() {
        path if path == "main" => test_name(),
        path => path.replace("::", "."),
    }
}

/// Reads a file.
///
/// # Errors
/// What is wrong with it, and what to do.
pub(crate) fn read(path: &Path) -> Result<Saved, String> {
    let told = |why: String| format!("{}: {why}", path.display());
    let len = fs::metadata(path).map_err(|error| told(error.to_string()))?.len();
    if len > BYTES_MAX {
        return Err(told(format!("{len} bytes are too many for a schedule, which has {BYTES_MAX} at most")));
    }
    let text = fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    parse(&text).map_err(told)
}

fn parse(text: &str) -> Result<Saved, String> {
    /// What files of all versions have.
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let none = |error: serde_json::Error| format!("it is no schedule: {error}");
    let Head { format, version } = serde_json::from_str(text).map_err(none)?;
    if format != FORMAT {
        return Err(format!("it is no schedule: its format is {format:?}, not {FORMAT:?}"));
    }
    if version != VERSION {
        return Err(format!("it has version {version}, and this library reads {VERSION}: run the test again"));
    }
    serde_json::from_str(text).map_err(none)
}

/// Where files go: `explore` in the folder that the compiler writes to, or else in that of temporary files.
pub(crate) fn folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(env::temp_dir, Path::to_path_buf).join("explore")
}

/// The program that runs, without the hash behind its name.
fn program() -> Option<String> {
    let program = env::current_exe().ok()?;
    let name = program.file_stem()?.to_str()?;
    Some(name.rsplit_once('-').map_or(name, |(name, _)| name).to_owned())
}

const FORMAT: &str = "greenroom schedule";
const VERSION: u32 = 1;
/// Of a file of a schedule, at most.
const BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = r#"{"format":"greenroom schedule","version":1,"test":"bank::deposits","package":"bank","folder":"/bank",
        "program":"bank","schedule":"4:client 2","violated":"a deposit is lost","steps":["client 1"],"colour":"blue"}"#;

    #[test]
    fn a_file_of_today_is_read_for_ever() {
        let saved = parse(GOLDEN).expect("it is well formed");
        assert_eq!((saved.test.as_str(), saved.schedule.as_str()), ("bank::deposits", "4:client 2"));
        let again = serde_json::to_string(&saved).expect("it is plain data");
        assert_eq!(parse(&again), Ok(saved));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        assert!(parse("{}").is_err_and(|error| error.contains("no schedule")));
        assert!(parse(&GOLDEN.replace("greenroom schedule", "letter")).is_err_and(|error| error.contains("format")));
        assert!(parse(&GOLDEN.replace(":1,", ":9,")).is_err_and(|error| error.contains("version 9")));
        let other = r#"{"format":"greenroom schedule","version":9,"runs":[]}"#;
        assert!(parse(other).is_err_and(|error| error.contains("version 9")), "it says so whatever else is in it");
    }
}
